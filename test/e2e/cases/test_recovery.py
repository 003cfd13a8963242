"""Killed processes, a restarted kubelet, a lost CDI directory, a rollout: pods do not notice."""

import glob
import os
import signal
import time

import pytest

from npunode import driver
from npunode.cluster import AGENT, PLUGIN, wait_for
from objects import FOREVER, LIST_CHIPS, container, on_chip, pod, request, template


def started(status):
    """What changes when a container is restarted."""
    return [(c["containerID"], c["restartCount"]) for c in status["status"]["containerStatuses"]]


def slice_ids(cluster):
    return {item["metadata"]["uid"] for item in cluster.slices()}


@pytest.mark.smoke
@pytest.mark.parametrize("program", [PLUGIN, AGENT])
def test_killed_while_pods_run(cluster, ns, program):
    slices = slice_ids(cluster)
    ns.create(template("chip", request(selectors=[on_chip(0)])), template("any"),
              pod("running", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    before = started(ns.wait_pod("running"))
    ns.create(pod("leaving", container(FOREVER, claims=["npu"]), claims={"npu": "any"}))
    ns.wait_pod("leaving")
    cluster.kill(program)
    ns.create(pod("new", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "any"}))
    ns.delete_pod("leaving")
    ns.wait_pod("new", "Succeeded")
    cluster.wait_driver_ready()
    assert started(ns.pod("running")) == before, "the running container was restarted"
    assert slice_ids(cluster) == slices, "a slice vanished and was made again"
    ns.delete_pod("running")
    assert ns.run_pod(template("again", request(selectors=[on_chip(0)])),
                      pod("next", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "again"})).split() == ["davinci0"]


def test_agent_down_whole_chips_still_start(cluster, ns):
    """The plugin prepares whole chips from what it knows while the agent cannot answer."""
    agents = cluster.driver_pids(AGENT)
    for pid in agents:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert len(ns.run_pod(template("chip"), pod("alone", container(LIST_CHIPS, claims=["npu"]),
                                                    claims={"npu": "chip"})).split()) == 1
    finally:
        for pid in agents:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass  # its probe failed meanwhile and the kubelet replaced it
    cluster.wait_driver_ready()


@pytest.mark.smoke
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_kubelet_restarted(cluster, ns, note, signal_number):
    ns.create(template("chip", request(selectors=[on_chip(1)])),
              pod("running", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    before = started(ns.wait_pod("running"))
    slices, devices = slice_ids(cluster), cluster.devices()
    cluster.restart_kubelet(signal_number)
    wait_for("kubelet wiped the slices", lambda: slice_ids(cluster) != slices, seconds=60, poll=0.01)
    wiped = time.monotonic()
    wait_for("slices are back", lambda: cluster.devices() == devices, seconds=30, poll=0.01)
    took = time.monotonic() - wiped
    note(f"slices back {took * 1000:.0f} ms after the wipe")
    assert took < 2
    wait_for("kubelet reports the pod again", lambda: ns.pod("running")["status"]["phase"] == "Running")
    assert started(ns.pod("running")) == before, "the running container was restarted"
    ns.delete_pod("running")
    assert ns.run_pod(pod("next", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "chip"})).split() == ["davinci1"]


@pytest.mark.smoke
def test_cdi_directory_emptied(ns):
    ns.create(template("chip"),
              pod("restarting", container(f"{LIST_CHIPS}; while ! [ -e /tmp/stop ]; do sleep 0.1; done; exit 1",
                                          claims=["npu"]), claims={"npu": "chip"}, restartPolicy="Always"))
    ns.wait_pod("restarting")
    chips = ns.logs("restarting")
    for path in glob.glob("/var/run/cdi/*"):
        os.unlink(path)
    ns.exec("restarting", "touch /tmp/stop")

    def running_again():
        status = ns.pod("restarting")["status"]["containerStatuses"][0]
        return status["restartCount"] == 1 and status["ready"]
    wait_for("container restarted", running_again, explain=lambda: ns.describe("restarting"))
    assert ns.logs("restarting") == chips != ""


@pytest.mark.smoke
def test_rollout_with_overlap(cluster, ns, note):
    """Pods are started all through a rollout; none fails, none sees an error."""
    old = set(cluster.driver_pids(PLUGIN))
    slices = slice_ids(cluster)
    ns.create(template("chip"))
    cluster.api.request("PATCH", driver.DAEMONSET_PATH, {"spec": {"template": {"metadata": {
        "annotations": {"rollout": str(time.time())}}}}}, "application/strategic-merge-patch+json")
    # The API server's node authorizer may learn of a pod's claim after the kubelet asks for it.
    not_ours = "no relationship found between node"
    count = 0
    while count < 3 or old & set(cluster.driver_pids(PLUGIN)):
        name = f"during-{count}"
        assert len(ns.run_pod(pod(name, container(LIST_CHIPS, claims=["npu"]), claims={"npu": "chip"})).split()) == 1
        failures = [line for line in ns.messages(name).splitlines() if "Failed" in line and not_ours not in line]
        assert not failures, "\n".join(failures)
        ns.delete_pod(name)
        count += 1
        assert count < 60, "the old driver pod does not end"
    cluster.wait_driver_ready()
    assert slice_ids(cluster) == slices, "a slice vanished and was made again"
    note(f"{count} pods started during the rollout")
