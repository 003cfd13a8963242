"""Numbers of the real node; the limits only catch what is badly wrong."""

import pytest

from npunode.cluster import AGENT, PLUGIN, seconds_until, wait_for
from objects import LIST_CHIPS, container, pod, template


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


def label(cluster, value):
    cluster.api.merge(f"/api/v1/nodes/{cluster.node_name}", {"metadata": {"labels": {"accelerator": value}}})


@pytest.mark.smoke
def test_start_to_first_slice(cluster, note):
    """The driver leaves the node and comes back: from the plugin's process to its first slice."""
    label(cluster, None)
    try:
        wait_for("driver gone", lambda: not cluster.driver_pids(PLUGIN), seconds=90)
        cluster.api.delete("/apis/resource.k8s.io/v1/resourceslices")
        wait_for("slices gone", lambda: not cluster.slices())
    finally:
        label(cluster, "huawei-npu")
    wait_for("plugin started", lambda: cluster.driver_pids(PLUGIN), poll=0.005)
    took = seconds_until(cluster.slices, "first slice")
    cluster.wait_driver_ready()
    note(f"plugin start to first slice: {took * 1000:.0f} ms")
    assert took < 5


@pytest.mark.smoke
def test_resident_memory(cluster, ns, note):
    ns.run_pod(template("chip"), pod("once", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "chip"}))
    for name in (PLUGIN, AGENT):
        pid, = cluster.driver_pids(name)
        mib = resident_mib(pid)
        note(f"{name}: {mib:.1f} MiB resident")
        assert mib < 64
