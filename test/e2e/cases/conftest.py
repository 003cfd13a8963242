import os
import re
import sys

import pytest

from npunode.cluster import Cluster
from npunode.fake_nodes import BoundNamespace

DEFAULT_CHIPS = "8x910B3"


def pytest_addoption(parser):
    parser.addoption("--chips", default=DEFAULT_CHIPS, help="run the cases for this mock node")


def pytest_collection_modifyitems(config, items):
    def chips(item):
        marker = item.get_closest_marker("chips")
        return marker.args[0] if marker else DEFAULT_CHIPS
    other = [item for item in items if chips(item) != config.getoption("--chips")]
    items[:] = [item for item in items if item not in other]
    config.hook.pytest_deselected(items=other)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.failed and "cluster" in item.fixturenames:
        cluster = item.funcargs.get("cluster")
        if cluster:
            folder = os.path.join(cluster.services.logs, re.sub(r"\W+", "-", f"{item.name}-{report.when}"))
            cluster.collect_logs(folder)
    return report


@pytest.fixture(scope="session")
def cluster():
    if "E2E_MOCK" not in os.environ:
        sys.exit("the cases run inside a node: use test/e2e/run.sh")
    return Cluster()


NOTES = pytest.StashKey[list]()


@pytest.fixture
def note(request):
    """note("text"): a line for the end of the run: numbers measured, messages a user would see."""
    notes = request.config.stash.setdefault(NOTES, [])
    return lambda text: notes.append(f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter, config):
    notes = config.stash.get(NOTES, [])
    if notes:
        terminalreporter.section("measured and said")
        for text in notes:
            terminalreporter.write_line(text)


@pytest.fixture
def ns(cluster, request):
    """A namespace of this test alone; at its end no chip is held."""
    namespace = cluster.namespace(_namespace_name(request))
    yield namespace
    namespace.close()


@pytest.fixture
def bound(cluster, request):
    """The same for pods that are bound to nodes without a kubelet and never run."""
    namespace = BoundNamespace(cluster, _namespace_name(request), None)
    yield namespace
    namespace.close()


def _namespace_name(request):
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].strip("-")
