"""Chips that fall sick, drop off the bus and get well: what the scheduler, pods and their users see of it."""

import signal
import time

import pytest

from npunode import driver
from npunode.cluster import PLUGIN, seconds_until, wait_for
from objects import FOREVER, LIST_CHIPS, container, on_chip, pod, request, template

CHIP, NAME = 3, "npu-3"
CODE, TEXT, LEVEL = "80E18402", "HBM multi bit ecc error", "SeparateNPU"


def without(devices, name):
    return {key: device for key, device in devices.items() if key != name}


def taint(cluster, name=NAME):
    """The driver's taint of the device; None if it has none."""
    taints = [entry for entry in cluster.devices()[name].get("taints", [])
              if entry["key"] == "npu.huawei.com/unhealthy"]
    return taints[0] if taints else None


def level(cluster, name=NAME):
    return (taint(cluster, name) or {}).get("value")


def generations(cluster):
    return {item["metadata"]["name"]: item["spec"]["pool"] for item in cluster.slices()}


@pytest.fixture
def chip_restored(cluster):
    """To be named before ns: a device that is held keeps the form in which it was allocated."""
    before, bus_id = cluster.devices(), cluster.bus_id(CHIP)
    yield before
    cluster.clear_faults()
    cluster.happens("return", "--chip", str(CHIP), "--bus-id", bus_id, "--logic-id", str(CHIP))
    wait_for("the mock node is as before", lambda: cluster.devices() == before, seconds=120)
    # Each relapse within ten minutes makes the next recovery take longer: not that of the next case.
    for chip in range(len(before)):
        cluster.ascend_dra("chips", "release", str(chip))


def told(ns, name):
    """What the pod's status says about its device: (health, message); None before it says anything."""
    for status in ns.pod(name)["status"].get("containerStatuses", []):
        for claim in status.get("allocatedResourcesStatus", []):
            for resource in claim["resources"]:
                return resource["health"], resource.get("message", "")
    return None


def wait_told(ns, name, health, seconds=30):
    return wait_for(f"pod {name} is told {health}",
                    lambda: (found := told(ns, name)) and found[0] == health and found, seconds=seconds,
                    explain=lambda: f"its status says {told(ns, name)}")


class Seen:
    """All that a pod's status says during a time, to the end of it."""

    def __init__(self, ns, name):
        self.ns, self.name, self.start, self.states, self.times = ns, name, time.monotonic(), [], []

    def look(self):
        now = told(self.ns, self.name)
        if not self.states or self.states[-1] != now:
            self.states.append(now)
            self.times.append(time.monotonic() - self.start)

    def look_while(self, condition):
        while condition(time.monotonic() - self.start):
            self.look()
            time.sleep(0.02)

    def never_healthy_and_right(self, sick, seconds):
        assert all(state is None or state[0] != "Healthy" for state in self.states), self.states
        assert self.states[-1] == sick, self.states
        # The first entry is what was there before.
        assert len(self.states) == 1 or self.times[-1] < seconds, list(zip(self.times, self.states))


def holder(ns, chip=CHIP):
    """A running pod with this chip; its status says that it is well."""
    ns.create(template("chip", request(selectors=[on_chip(chip)])),
              pod("holder", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_pod("holder")
    wait_told(ns, "holder", "Healthy")


@pytest.mark.smoke
def test_new_pods_avoid_a_sick_chip(cluster, chip_restored, ns, note):
    pools, claims = generations(cluster), template("seven", request(count=7))
    start = time.monotonic()
    cluster.add_fault(CHIP, CODE, TEXT)
    wait_for(f"{NAME} tainted", lambda: taint(cluster), seconds=15, poll=0.01)
    took = time.monotonic() - start
    note(f"tainted {took * 1000:.0f} ms after the fault")
    sick = taint(cluster)
    assert (sick["value"], sick["effect"]) == (LEVEL, "NoSchedule")
    assert without(cluster.devices(), NAME) == without(chip_restored, NAME), "other devices changed"
    assert generations(cluster) == pools
    assert took < 2

    ns.create(claims, template("any"), template("chip", request(selectors=[on_chip(CHIP)])),
              pod("seven", container(f"{LIST_CHIPS}; {FOREVER}", claims=["npu"]), claims={"npu": "seven"}))
    ns.wait_pod("seven")
    assert ns.logs("seven").split() == [f"davinci{chip}" for chip in range(8) if chip != CHIP]
    ns.create(pod("eighth", container(f"{LIST_CHIPS}; {FOREVER}", claims=["npu"]), claims={"npu": "any"}))
    note(ns.wait_message("eighth", "FailedScheduling"))
    assert ns.pod("eighth")["status"]["phase"] == "Pending"

    cluster.clear_fault(CHIP, CODE)
    note(f"no taint {seconds_until(lambda: not taint(cluster), 'no taint', 60):.1f} s after the fault was cleared")
    assert cluster.devices() == chip_restored
    assert generations(cluster) == pools
    ns.wait_pod("eighth")
    assert ns.logs("eighth").split() == [f"davinci{CHIP}"]


@pytest.mark.smoke
def test_pod_status_says_that_its_chip_is_sick(cluster, chip_restored, ns, note):
    holder(ns)
    start = time.monotonic()
    cluster.add_fault(CHIP, CODE, TEXT)
    _, message = wait_told(ns, "holder", "Unhealthy")
    note(f"Unhealthy after {time.monotonic() - start:.1f} s: {message}")
    assert LEVEL in message and CODE in message and TEXT in message
    note(ns.wait_message("holder", "NpuUnhealthy", CODE, TEXT))
    start = time.monotonic()
    cluster.clear_fault(CHIP, CODE)
    wait_told(ns, "holder", "Healthy", seconds=120)
    note(f"Healthy again after {time.monotonic() - start:.1f} s")
    ns.wait_message("holder", "NpuHealthy")
    assert ns.pod("holder")["status"]["phase"] == "Running"


@pytest.mark.smoke
def test_pod_with_an_extended_resource_gets_the_event(cluster, chip_restored, ns, note):
    """The kubelet shows no health in its status."""
    ns.create(pod("extended", container(f"{LIST_CHIPS}; {FOREVER}",
                                        resources={"limits": {"huawei.com/Ascend910": "1"}})))
    ns.wait_pod("extended")
    chip = ns.logs("extended").strip().removeprefix("davinci")
    cluster.add_fault(chip, CODE, TEXT)
    note(ns.wait_message("extended", "NpuUnhealthy", CODE, TEXT, seconds=20))
    note(f"its status says {told(ns, 'extended')}")
    cluster.clear_fault(chip, CODE)
    ns.wait_message("extended", "NpuHealthy", seconds=60)


def test_pods_are_evicted_where_that_is_wanted(cluster, chip_restored, ns, note):
    cluster.configure(vnpuMode="off", health={"evictOn": [LEVEL]})
    try:
        job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "training"},
               "spec": {"backoffLimit": 3, "template": {"spec": pod(
                   "unused", container(f"{LIST_CHIPS}; {FOREVER}", claims=["npu"]), claims={"npu": "any"})["spec"]}}}
        ns.create(template("any"), job)

        def pods():
            return {item["metadata"]["name"]: item for item in cluster.api.get(f"{ns.path}/pods")["items"]}
        first = wait_for("pod of the job", lambda: list(pods()))[0]
        ns.wait_pod(first)
        chip = int(ns.logs(first).strip().removeprefix("davinci"))
        start = time.monotonic()
        cluster.add_fault(chip, CODE, TEXT)
        wait_for("tainted", lambda: taint(cluster, f"npu-{chip}"), seconds=15, poll=0.01)
        assert taint(cluster, f"npu-{chip}")["effect"] == "NoExecute"
        second = wait_for("replacement", lambda: [name for name in pods() if name != first], seconds=60)[0]
        note(f"replaced {time.monotonic() - start:.1f} s after the fault")
        note(ns.wait_message(first, "DeviceTaintManagerEviction"))
        ns.wait_gone(first)
        ns.wait_pod(second)
        assert ns.logs(second).strip() != f"davinci{chip}"
        note(f"it runs on {ns.logs(second).strip()} after {time.monotonic() - start:.1f} s")
        assert pods().keys() == {second}
    finally:
        cluster.clear_faults()
        wait_for("no taint", lambda: not any("taints" in device for device in cluster.devices().values()), seconds=60)
        cluster.configure(vnpuMode="off")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_sick_chip_and_a_restarted_kubelet(cluster, chip_restored, ns, note, signal_number):
    holder(ns)
    cluster.add_fault(CHIP, CODE, TEXT)
    sick = wait_told(ns, "holder", "Unhealthy")
    added = taint(cluster)
    cluster.restart_kubelet(signal_number)
    # The whole time in which it may say something else, not only until it is right for the first time.
    seen = Seen(ns, "holder")
    seen.look_while(lambda passed: passed < 25)
    note(f"after the restart: {list(zip(seen.times, seen.states))}")
    seen.never_healthy_and_right(sick, 10)
    assert taint(cluster) == added
    # And it listens: this is not only what the API server remembers.
    cluster.clear_fault(CHIP, CODE)
    wait_told(ns, "holder", "Healthy", seconds=120)


def test_sick_chip_stays_sick_during_a_rollout(cluster, chip_restored, ns, note):
    holder(ns)
    cluster.add_fault(CHIP, CODE, TEXT)
    sick, added, old = wait_told(ns, "holder", "Unhealthy"), taint(cluster), set(cluster.driver_pids(PLUGIN))
    cluster.api.request("PATCH", driver.DAEMONSET_PATH, {"spec": {"template": {"metadata": {
        "annotations": {"rollout": str(time.time())}}}}}, "application/strategic-merge-patch+json")
    seen = Seen(ns, "holder")
    taints = []

    def look(_):
        if not taints or taints[-1] != taint(cluster):
            taints.append(taint(cluster))
        return bool(old & set(cluster.driver_pids(PLUGIN)))
    seen.look_while(look)
    replaced = time.monotonic() - seen.start
    seen.look_while(lambda passed: passed < replaced + 20)
    note(f"rolled out in {replaced:.1f} s: {list(zip(seen.times, seen.states))}")
    seen.never_healthy_and_right(sick, replaced + 10)
    assert taints == [added]
    cluster.clear_fault(CHIP, CODE)
    wait_told(ns, "holder", "Healthy", seconds=120)


@pytest.mark.smoke
def test_lost_card_and_its_return_elsewhere(cluster, chip_restored, ns, note):
    holder(ns)
    identity = cluster.devices()[NAME]["attributes"]["uuid"]
    start = time.monotonic()
    cluster.happens("lose", "--chip", str(CHIP))
    wait_for(f"{NAME} tainted", lambda: taint(cluster), seconds=15, poll=0.01)
    took = time.monotonic() - start
    # At first it may still be listed, absent.
    wait_for(f"{NAME} lost", lambda: level(cluster) == "lost", seconds=15, poll=0.01)
    note(f"tainted {took * 1000:.0f} ms after the card was lost, as lost {(time.monotonic() - start) * 1000:.0f} ms")
    assert without(cluster.devices(), NAME) == without(chip_restored, NAME), "other devices changed"
    note(wait_told(ns, "holder", "Unhealthy"))
    # Nothing evicts the pod, and the chip goes to nobody else, now and when the pod has ended.
    assert ns.pod("holder")["status"]["phase"] == "Running"
    ns.delete_pod("holder")
    wait_for("no claim", lambda: not cluster.held_claims())
    ns.create(pod("second", container(f"{LIST_CHIPS}; {FOREVER}", claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_message("second", "FailedScheduling")
    assert level(cluster) == "lost"
    cluster.happens("return", "--chip", str(CHIP), "--bus-id", "0000:7f:00.0", "--logic-id", "0")
    note(f"back after {seconds_until(lambda: not taint(cluster), 'no taint', 90):.1f} s")
    assert cluster.devices()[NAME]["attributes"]["uuid"] == identity
    ns.wait_pod("second")
    assert ns.logs("second").split() == [f"davinci{CHIP}"]
    assert took < 2


@pytest.mark.smoke
def test_chip_is_isolated_by_hand(cluster, chip_restored, ns, note):
    holder(ns)
    note(cluster.ascend_dra("chips", "isolate", str(CHIP), "--reason", "fan is loud").strip())
    wait_for(f"{NAME} tainted", lambda: level(cluster) == "ManuallySeparateNPU", seconds=5)
    _, message = wait_told(ns, "holder", "Unhealthy")
    assert "fan is loud" in message
    assert ns.pod("holder")["status"]["phase"] == "Running"
    cluster.ascend_dra("chips", "release", str(CHIP))
    wait_told(ns, "holder", "Healthy", seconds=60)
    wait_for("no taint", lambda: not taint(cluster), seconds=10)
