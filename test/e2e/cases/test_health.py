"""A chip that drops off the bus, and one that falls sick."""

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
