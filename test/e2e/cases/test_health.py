"""A chip that drops off the bus, and one that falls sick."""

import signal
import time

import pytest

from npunode.cluster import seconds_until, wait_for
from objects import FOREVER, container, on_chip, pod, request, template

CHIP, NAME = 3, "npu-3"


def without(devices, name):
    return {key: device for key, device in devices.items() if key != name}


def tainted(device):
    return [taint for taint in device.get("taints", []) if taint["key"] == "npu.huawei.com/unhealthy"]


def withdrawn(cluster):
    device = cluster.devices().get(NAME)
    return device is None or tainted(device)


@pytest.fixture
def chip_restored(cluster):
    before = cluster.devices()
    yield before
    cluster.chip(CHIP, present="true", health="0")
    wait_for("the mock node is as before", lambda: cluster.devices() == before, seconds=90)


@pytest.mark.smoke
def test_chip_pulled_out_and_put_back(cluster, chip_restored, note):
    cluster.chip(CHIP, present="false")
    gone = seconds_until(lambda: withdrawn(cluster), f"{NAME} withdrawn")
    assert without(cluster.devices(), NAME) == without(chip_restored, NAME), "other devices changed"
    cluster.chip(CHIP, present="true")
    back = seconds_until(lambda: cluster.devices() == chip_restored, f"{NAME} back", seconds=90)
    note(f"withdrawn after {gone * 1000:.0f} ms, back after {back * 1000:.0f} ms")
    assert gone < 2


@pytest.mark.smoke
def test_held_chip_stays_published(cluster, ns, chip_restored, note):
    """The scheduler counts what is published: a held chip must not disappear."""
    ns.create(template("chip", request(selectors=[on_chip(CHIP)])),
              pod("holder", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_pod("holder")
    cluster.chip(CHIP, present="false")
    took = seconds_until(lambda: tainted(cluster.devices()[NAME]), f"{NAME} tainted")
    note(f"tainted after {took * 1000:.0f} ms")
    assert took < 2
    assert without(cluster.devices(), NAME) == without(chip_restored, NAME), "other devices changed"
    # Nothing evicts the pod, and the chip goes to nobody else.
    assert ns.pod("holder")["status"]["phase"] == "Running"
    ns.create(pod("second", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_message("second", "FailedScheduling")
    assert NAME in cluster.devices()


def test_sick_chip_is_tainted_and_recovers(cluster, chip_restored, note):
    start = time.monotonic()
    cluster.chip(CHIP, health="3")
    wait_for(f"{NAME} tainted", lambda: tainted(cluster.devices()[NAME]), seconds=15)
    note(f"tainted after {time.monotonic() - start:.1f} s")
    assert without(cluster.devices(), NAME) == without(chip_restored, NAME), "other devices changed"


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


@pytest.mark.smoke
def test_pod_status_says_that_its_chip_is_sick(cluster, ns, chip_restored, note):
    ns.create(template("chip", request(selectors=[on_chip(CHIP)])),
              pod("holder", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_pod("holder")
    wait_told(ns, "holder", "Healthy")
    start = time.monotonic()
    cluster.chip(CHIP, health="3")
    _, message = wait_told(ns, "holder", "Unhealthy")
    note(f"Unhealthy after {time.monotonic() - start:.1f} s: {message}")
    assert message
    start = time.monotonic()
    cluster.chip(CHIP, health="0")
    wait_told(ns, "holder", "Healthy", seconds=120)
    note(f"Healthy again after {time.monotonic() - start:.1f} s")
    assert ns.pod("holder")["status"]["phase"] == "Running"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_sick_chip_is_never_called_healthy_by_a_restarted_kubelet(cluster, ns, chip_restored, note, signal_number):
    ns.create(template("chip", request(selectors=[on_chip(CHIP)])),
              pod("holder", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_pod("holder")
    cluster.chip(CHIP, health="3")
    sick = wait_told(ns, "holder", "Unhealthy")
    cluster.restart_kubelet(signal_number)
    # The whole time in which it may say something else, not only until it is right for the first time.
    start, right_since, seen = time.monotonic(), None, []
    while time.monotonic() < start + 25:
        now = told(ns, "holder")
        if not seen or seen[-1] != now:
            seen.append(now)
            right_since = time.monotonic() - start if now == sick else None
        time.sleep(0.02)
    note(f"after the restart: {seen}, right since {right_since:.1f} s" if right_since is not None else f"{seen}")
    assert all(state is None or state[0] != "Healthy" for state in seen), seen
    assert right_since is not None and right_since < 10, seen
    # And it listens: this is not only what the API server remembers.
    cluster.chip(CHIP, health="0")
    wait_told(ns, "holder", "Healthy", seconds=120)
