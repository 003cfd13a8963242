"""An A3 module goes out whole: both dies to one container."""

import pytest

from objects import LIST_CHIPS, container, pod, request, template

pytestmark = pytest.mark.chips("16xA3")


@pytest.mark.smoke
def test_one_means_a_module(cluster, ns):
    assert sorted(cluster.devices()) == sorted(f"npu-{i}-{i + 1}" for i in range(0, 16, 2))
    chips = ns.run_pod(template("module"), pod("one", container(LIST_CHIPS, claims=["npu"]),
                                               claims={"npu": "module"})).split()
    numbers = sorted(int(chip.removeprefix("davinci")) for chip in chips)
    assert len(numbers) == 2 and numbers[0] % 2 == 0 and numbers[1] == numbers[0] + 1, chips


def test_extended_resource_gives_modules(ns):
    chips = ns.run_pod(pod("two", container(LIST_CHIPS, resources={"limits": {"huawei.com/Ascend910": "2"}}))).split()
    assert len(chips) == 4


def test_all_modules(ns):
    chips = ns.run_pod(template("all", request(count=8)),
                       pod("all", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "all"})).split()
    assert len(chips) == 16
