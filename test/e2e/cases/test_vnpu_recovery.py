"""What goes wrong with vNPUs: one live claim keeps one vNPU, no other of ours stays, none of others is touched."""

import time

import pytest

from npunode import driver
from npunode.cluster import AGENT, PLUGIN, seconds_until, wait_for
from objects import LIST_CHIPS, container, on_chip, pod, request, template
from reboot import boot_id, power_cut, wait_restarted  # noqa: F401 (a fixture)
from test_recovery import started
from vnpus import (FAILED_PREPARE, assert_none, assert_one_each, device_nodes, part_pod, part_template,
                   slice_versions, taints, vnpu_of)

CREATE, DESTROY = "dcmi_create_vdevice", "dcmi_set_destroy_vdevice"
SMALL = "vir02_1c"
on_310p, on_910b = pytest.mark.chips("4x310P3"), pytest.mark.chips("8x910B4")


@pytest.fixture(autouse=True)
def node_restored(cluster):
    """Whatever a case did to the node's library."""
    yield
    cluster.library_behaves()
    cluster.set_mock("vnpuNodes", None)
    for chip in range(4):
        cluster.chip(chip, present="true")


def counters(cluster, chip):
    """What is published of a chip's counter set."""
    return next(item["counters"] for part in cluster.slices() for item in part["spec"].get("sharedCounters", [])
                if str(chip) in item["name"].split("-"))


@on_310p
def test_create_fails(cluster, ns, note):
    """The library refuses, fails after it made the vNPU, or is slower than the kubelet waits: the pods start later."""
    refused, lost, slow = 0, 1, 3
    cluster.library_call(CREATE, slow, "--delay=45s")
    ns.create(part_template(SMALL, slow), part_pod("slow", slow))
    cluster.library_call(CREATE, refused, "--return=-8020")
    cluster.library_call(CREATE, lost, "--return=-8005", "--after-work")
    ns.create(part_template(SMALL, refused), part_template(SMALL, lost), part_pod("refused", refused),
              part_pod("lost", lost))
    note(ns.wait_message("refused", FAILED_PREPARE, f"vNPU {SMALL} of chip {refused} cannot be created", "-8020",
                         "the chip is in use"))
    note(ns.wait_message("lost", FAILED_PREPARE, f"vNPU {SMALL} of chip {lost} cannot be created", "-8005",
                         "what it had made nevertheless was destroyed again"))
    # Not at the moment of another try. The one record is of the claim for which something may still be made.
    wait_for("nothing stayed", lambda: not cluster.vnpus() and not device_nodes() and len(cluster.held_claims()) == 1,
             explain=lambda: f"vNPUs {cluster.vnpus()}, records {cluster.held_claims()}")
    cluster.library_behaves()
    for name in ("refused", "lost"):
        ns.wait_pod(name)
    assert_one_each(cluster, ns, ["refused", "lost"])
    note(ns.wait_message("slow", FAILED_PREPARE, f"vNPU {SMALL} of chip {slow} cannot be created", CREATE))
    ns.wait_pod("slow")
    assert_one_each(cluster, ns, ["refused", "lost", "slow"])


@on_310p
def test_agent_killed_right_after_create(cluster, ns, note):
    """The vNPU is made and nobody was told: the next call finds it by the intent in the record."""
    chip = 2
    agents = cluster.driver_pids(AGENT)
    cluster.library_call(CREATE, chip, "--crash", "--after-work")
    ns.create(part_template(SMALL, chip), part_pod("orphan", chip))
    wait_for("the agent died", lambda: cluster.driver_pids(AGENT) != agents, seconds=60, poll=0.01)
    start = time.monotonic()
    cluster.library_behaves()
    made, = cluster.vnpus()
    ns.wait_pod("orphan", seconds=120)
    note(f"running {time.monotonic() - start:.1f} s after the agent died")
    assert_one_each(cluster, ns, ["orphan"])
    note(f"vNPU made before the death: {made}, of the pod: {vnpu_of(ns, 'orphan')}; events:\n" + ns.messages("orphan"))
    cluster.wait_driver_ready()
    ns.delete_pod("orphan")
    assert_none(cluster)


@on_310p
def test_device_node_never_appears(cluster, ns, note):
    chip = 3
    cluster.set_mock("vnpuNodes", {"never": True})
    ns.create(part_template(SMALL, chip), part_pod("nodeless", chip))
    note(ns.wait_message("nodeless", FAILED_PREPARE, "/dev/vdavinci", "is missing"))
    cluster.set_mock("vnpuNodes", None)
    start = time.monotonic()
    ns.wait_pod("nodeless", seconds=120)
    note(f"running {time.monotonic() - start:.1f} s after the kernel made nodes again")
    assert_one_each(cluster, ns, ["nodeless"])


@on_310p
def test_device_node_appears_late(cluster, ns):
    """Inside the call: no failed start, no event."""
    cluster.set_mock("vnpuNodes", {"delayMs": 1500})
    ns.create(part_template(SMALL, 3), part_pod("late", 3))
    ns.wait_pod("late")
    assert FAILED_PREPARE not in ns.messages("late")
    assert_one_each(cluster, ns, ["late"])


@on_310p
def test_chip_lost_and_vnpu_destroyed_by_others(cluster, ns, note):
    """Pods end although what they had is gone; what was on the lost chip is destroyed when it is back."""
    lost, emptied = 2, 3
    names = {"lost": lost, "emptied": emptied}
    for name, chip in names.items():
        ns.create(part_template(SMALL, chip), part_pod(name, chip))
    for name in names:
        ns.wait_pod(name)
    stays = vnpu_of(ns, "lost")
    cluster.admin_destroys_vnpu(vnpu_of(ns, "emptied"))
    cluster.chip(lost, present="false")
    held = f"npu-{lost}-vir02-1c-0"
    wait_for("the held part is tainted", lambda: taints(cluster, held), seconds=30)
    for name in names:
        ns.delete_pod(name, seconds=60)
    assert set(cluster.vnpus()) == {stays}, "the mock keeps what is on a chip that is away"
    cluster.chip(lost, present="true")
    note(f"destroyed {seconds_until(lambda: not cluster.vnpus(), 'destroyed', 60):.1f} s after the chip was back")
    assert_none(cluster)
    wait_for("no record", lambda: not cluster.held_claims())
    wait_for("the chip is to be had whole", lambda: not taints(cluster, f"npu-{lost}"), seconds=60)


@on_910b
def test_destroy_busy_and_hanging(cluster, ns, note):
    """One chip's driver is busy, another's hangs: their claims wait, all other chips work meanwhile."""
    kind, busy, hanging, other = "vir05_1c_8g", 0, 1, 2
    names = {"busy": busy, "hanging": hanging}
    for name, chip in names.items():
        ns.create(part_template(kind, chip), part_pod(name, chip))
    for name in names:
        ns.wait_pod(name)
    ids = {name: vnpu_of(ns, name) for name in names}
    cluster.set_vnpu(ids["busy"], "busy=true")
    cluster.library_call(DESTROY, hanging, "--hang")
    for name in names:
        ns.api.delete(f"{ns.path}/pods/{name}")
    whole, part = f"npu-{hanging}", f"npu-{hanging}-vir05-1c-8g-1"
    note(f"hanging chip tainted after {seconds_until(lambda: taints(cluster, whole) == ['stuck'], 'stuck', 60):.1f} s")
    assert taints(cluster, part) == ["stuck"]
    assert taints(cluster, f"npu-{other}") == [] == taints(cluster, f"npu-{other}-vir05-1c-8g-0")

    ns.create(part_template(kind, other), part_pod("beside", other))
    start = time.monotonic()
    ns.wait_pod("beside", seconds=20)
    assert set(cluster.vnpus()) == {*ids.values(), vnpu_of(ns, "beside")}
    ns.delete_pod("beside", seconds=20)
    note(f"on another chip a pod started and ended in {time.monotonic() - start:.1f} s meanwhile")
    assert set(cluster.vnpus()) == set(ids.values())

    # The kubelet makes no event of an unprepare that fails; the log says it.
    said = f"vNPU {ids['busy']} (vir05_1c_8g) of chip {busy} cannot be destroyed; it is tried again"
    note(wait_for("the log says that the vNPU is busy", lambda: next(
        (line for line in cluster.plugin_log().splitlines() if said in line and "-8020" in line), None)))
    assert len(cluster.held_claims()) == 2
    cluster.set_vnpu(ids["busy"], "busy=false")
    cluster.library_behaves()
    note("all clear after "
         f"{seconds_until(lambda: not cluster.held_claims() and not cluster.vnpus(), 'cleared', 120):.1f} s")
    for name in names:
        ns.wait_gone(name)
    assert_none(cluster)
    wait_for("no taint", lambda: not taints(cluster, whole) and not taints(cluster, part), seconds=60)


@on_910b
def test_killed_while_vnpus_are_in_use(cluster, ns):
    """A vNPU of a running pod stays, whatever the library says about its use; so does one of somebody else."""
    kind, chip, foreign_chip = "vir10_3c_16g", 3, 4
    foreign = cluster.admin_creates_vnpu(foreign_chip, kind)
    try:
        ns.create(part_template(kind, chip), part_pod("running", chip))
        before = started(ns.wait_pod("running"))
        own = vnpu_of(ns, "running")
        for program in (AGENT, PLUGIN):
            cluster.kill(program)
            assert_one_each(cluster, ns, ["running"], others=[foreign])
            assert cluster.vnpus()[own]["containerUsed"] is False
        # The new ones make and destroy one on the same chip, so they have looked at what is there.
        ns.create(part_pod("visitor", chip))
        ns.wait_pod("visitor")
        assert_one_each(cluster, ns, ["running", "visitor"], others=[foreign])
        ns.delete_pod("visitor")
        assert_one_each(cluster, ns, ["running"], others=[foreign])
        cluster.wait_driver_ready()
        assert started(ns.pod("running")) == before, "the running container was restarted"
        ns.delete_pod("running")
        assert set(cluster.vnpus()) == {foreign}
    finally:
        cluster.admin_destroys_vnpu(foreign)


@on_910b
def test_node_rebooted(cluster, ns, note, boot_id):
    """Without recovery no vNPU survives a boot: each pod gets a new one, and only one."""
    kind, chip = "vir05_1c_8g", 5
    names = ["first", "second"]
    ns.create(part_template(kind, chip))
    for name in names:
        ns.create(part_pod(name, chip, restartPolicy="Always"))
    for name in names:
        ns.wait_pod(name)
    assert_one_each(cluster, ns, names)
    held = sorted(cluster.held_claims())

    def boot():
        driver.run("ascend-mock-node", "reboot", "--node-dir", cluster.mock)
        assert_none(cluster)
    start = time.monotonic()
    power_cut(cluster, boot_id, boot)
    wait_restarted(ns, names)
    note(f"pods run again {time.monotonic() - start:.1f} s after the power cut")
    assert_one_each(cluster, ns, names)
    assert sorted(cluster.held_claims()) == held
    for name in names:
        ns.delete_pod(name)
    assert_none(cluster)
    cluster.wait_driver_ready(120)


@on_910b
def test_foreign_vnpu_survives_the_driver(cluster, ns, note):
    """It is counted, its chip is not handed out whole, and nobody destroys it: not even the driver's removal."""
    kind, chip = "vir10_3c_16g", 6
    cores = counters(cluster, chip)["aicore"]["value"]
    foreign = cluster.admin_creates_vnpu(chip, kind)
    try:
        note("taken off the counters after "
             f"{seconds_until(lambda: taints(cluster, f'npu-{chip}') == ['divided'], 'divided'):.1f} s")
        assert (cores, counters(cluster, chip)["aicore"]["value"]) == ("20", "10")
        slices = slice_versions(cluster)
        ns.create(part_template(kind, chip), template("whole", request(selectors=[on_chip(chip)])),
                  part_pod("beside", chip))
        ns.wait_pod("beside")
        assert_one_each(cluster, ns, ["beside"], others=[foreign])
        for name, pod_object in (("third", part_pod("third", chip)), ("all", pod(
                "all", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "whole"}))):
            ns.create(pod_object)
            ns.wait_message(name, "FailedScheduling")
            ns.delete_pod(name)
        ns.delete_pod("beside")
        assert slice_versions(cluster) == slices, "a slice was written because a claim came or went"

        cluster.api.merge(f"/api/v1/nodes/{cluster.node_name}", {"metadata": {"labels": {"accelerator": None}}})
        cluster.kubectl("--namespace", driver.NAMESPACE, "delete", "daemonset", driver.DAEMONSET)
        wait_for("driver gone", lambda: not cluster.driver_pids(PLUGIN) + cluster.driver_pids(AGENT), seconds=90)
        assert set(cluster.vnpus()) == {foreign}
        driver.install(cluster.api, cluster.node_name, "dynamic")
        assert set(cluster.vnpus()) == {foreign}
        wait_for("divided still", lambda: taints(cluster, f"npu-{chip}") == ["divided"])
    finally:
        cluster.admin_destroys_vnpu(foreign)
    wait_for("whole again", lambda: not taints(cluster, f"npu-{chip}") and
             counters(cluster, chip)["aicore"]["value"] == cores)
