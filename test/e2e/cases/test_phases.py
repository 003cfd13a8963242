"""Kubelet, plugin or the node end in the middle of a prepare or unprepare: every chip has one owner afterwards."""

import contextlib
import fcntl
import glob
import os
import signal
import time

import pytest

from npunode import driver
from npunode.cluster import PLUGIN, PLUGIN_DIRECTORY, wait_for
from objects import FOREVER, LIST_CHIPS, container, on_chip, pod, request, template
from reboot import CDI, boot_id, power_cut, restart_containerd, wait_restarted  # noqa: F401 (a fixture)

LOCKS = f"{PLUGIN_DIRECTORY}/locks"
FAILED_PREPARE = "FailedPrepareDynamicResources"
# The API server's node authorizer may learn of a pod's claim after the kubelet asks for it.
NOT_OURS = "no relationship found between node"
# Unlike objects.FOREVER it stays a shell, whose command line shows its script.
SHELL_FOREVER = "while :; do sleep 1; done"


@contextlib.contextmanager
def locked(name):
    """Holds a lock file of the plugin, as a call of another instance would."""
    os.makedirs(LOCKS, exist_ok=True)
    with open(f"{LOCKS}/{name}", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def plugin_waits_for(cluster, name):
    """Whether the plugin has the lock file open, which it has only while it wants the lock or holds it."""
    for pid in cluster.driver_pids(PLUGIN):
        for link in glob.glob(f"/proc/{pid}/fd/*"):
            with contextlib.suppress(OSError):
                if os.readlink(link).endswith(f"/locks/{name}"):
                    return True
    return False


def processes(marker):
    """Pids of containers whose script has the marker."""
    pids = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path) as file:
            command = file.read().split("\0")
            if command[0] == "sh" and f": {marker};" in command[2]:
                pids.append(int(path.split("/")[2]))
    return pids


def claim_uid(ns, pod_name):
    name = ns.pod(pod_name)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    return ns.claim(name)["metadata"]["uid"]


def chip_pod(name, script=LIST_CHIPS, **spec):
    return pod(name, container(script, claims=["npu"]), claims={"npu": "chip"}, **spec)


def chip_template(chip):
    return template("chip", request(selectors=[on_chip(chip)]))


def interrupt(cluster, what):
    """Ends kubelet or plugin at once; returns when the new one runs."""
    if what == "kubelet":
        cluster.restart_kubelet(signal.SIGKILL)
    else:
        cluster.kill(PLUGIN)


def assert_one_owner(cluster, uid):
    """The claim has its record and its CDI file, and no other claim has anything."""
    assert cluster.held_claims() == [uid]
    assert [os.path.basename(path) for path in glob.glob(f"{CDI}/*")] == [f"k8s.npu.huawei.com-claim_{uid}.json"]


def assert_nobody_owns(cluster):
    assert cluster.held_claims() == []
    assert glob.glob(f"{CDI}/*") == []


@pytest.mark.parametrize("what", ["kubelet", "plugin"])
def test_ended_during_prepare(cluster, ns, note, what):
    """REC: the chip's lock is held up, so the prepare is under way when its caller or its process ends."""
    ns.create(chip_template(3))
    with locked("chip-3"):
        ns.create(chip_pod("preparing", f"{LIST_CHIPS}; {FOREVER}"))
        wait_for("the plugin prepares", lambda: plugin_waits_for(cluster, "chip-3"),
                 explain=lambda: ns.describe("preparing"))
        assert cluster.held_claims() == []
        interrupt(cluster, what)
    start = time.monotonic()
    ns.wait_pod("preparing", seconds=150)
    note(f"running {time.monotonic() - start:.1f} s after the lock was free")
    assert ns.logs("preparing").split() == ["davinci3"]
    assert_one_owner(cluster, claim_uid(ns, "preparing"))
    ns.delete_pod("preparing")
    assert ns.run_pod(chip_pod("next")).split() == ["davinci3"]


@pytest.mark.parametrize("what", ["kubelet", "plugin"])
def test_ended_during_unprepare(cluster, ns, note, what):
    """REC: the claim's gate is held up, so the unprepare is under way when its caller or its process ends."""
    ns.create(chip_template(3), chip_pod("leaving", f"{LIST_CHIPS}; {FOREVER}"))
    ns.wait_pod("leaving")
    uid = claim_uid(ns, "leaving")
    with locked(f"claim-{uid}"):
        ns.api.delete(f"{ns.path}/pods/leaving")
        wait_for("the plugin unprepares", lambda: plugin_waits_for(cluster, f"claim-{uid}"))
        interrupt(cluster, what)
        assert uid in cluster.held_claims()
    start = time.monotonic()
    wait_for("the claim is unprepared", lambda: not cluster.held_claims(), seconds=150,
             explain=lambda: ns.describe("leaving"))
    note(f"unprepared {time.monotonic() - start:.1f} s after the lock was free")
    ns.wait_gone("leaving")
    assert_nobody_owns(cluster)
    assert ns.run_pod(chip_pod("next")).split() == ["davinci3"]


@pytest.mark.parametrize("stubborn", ["ignores TERM", "long preStop"])
def test_force_deleted_pod_and_its_successor(ns, note, stubborn):
    """ORD-01: the API server hands the chip on before the node has; two containers never have it at once."""
    script = "trap '' TERM; " if stubborn == "ignores TERM" else ""
    old = container(f": old; {script}{SHELL_FOREVER}", claims=["npu"])
    if stubborn == "long preStop":
        old["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 20"]}}}
    ns.create(chip_template(2), pod("old", old, claims={"npu": "chip"}, terminationGracePeriodSeconds=20))
    ns.wait_pod("old")
    assert processes("old")
    ns.api.delete(f"{ns.path}/pods/old", grace_seconds=0)
    deleted = time.monotonic()
    ns.create(chip_pod("new", f": new; {LIST_CHIPS}; {SHELL_FOREVER}"))

    def new_runs():
        # In this order: one that starts between the two looks is seen beside an old one only if that still lived.
        new, olds = processes("new"), processes("old")
        assert not (new and olds), f"both containers have the chip: pids {olds} and {new}"
        return new
    wait_for("the new pod runs", new_runs, seconds=150, poll=0.01, explain=lambda: ns.describe("new"))
    waited = time.monotonic() - deleted
    ns.wait_pod("new")
    assert ns.logs("new").split() == ["davinci2"]
    failures = [line for line in ns.messages("new").splitlines() if FAILED_PREPARE in line and NOT_OURS not in line]
    note(f"{waited:.1f} s from the deletion to the next container; events: {failures or 'none'}")
    for line in failures:
        assert "chip 2 " in line and "/old-npu-" in line, f"does not name the device and who holds it: {line}"


def test_node_rebooted(cluster, ns, note, boot_id):
    """REC: records survive, /run and every container do not; pods come back on the chips they had."""
    script = f"{LIST_CHIPS}; {FOREVER}"
    ns.create(template("chip"), template("two", request(count=2)))
    names = {"one": "chip", "pair": "two"}
    for name, source in names.items():
        ns.create(pod(name, container(script, claims=["npu"]), claims={"npu": source}, restartPolicy="Always"))
    before = {}
    for name in names:
        ns.wait_pod(name)
        before[name] = ns.logs(name).split()
    uids = sorted(claim_uid(ns, name) for name in names)
    assert sorted(cluster.held_claims()) == uids

    start = time.monotonic()
    power_cut(cluster, boot_id)
    wait_restarted(ns, names)
    note(f"pods run again {time.monotonic() - start:.1f} s after the power cut")
    cluster.wait_driver_ready(120)
    for name, chips in before.items():
        assert ns.logs(name).split() == chips, name
    assert sorted(cluster.held_claims()) == uids
    assert len(glob.glob(f"{CDI}/*")) == len(uids)
    # All eight chips can be had: nothing leaked.
    for name in names:
        ns.delete_pod(name)
    ns.create(template("all", request(allocationMode="All")))
    assert len(ns.run_pod(pod("all", container(LIST_CHIPS, claims=["npu"]), claims={"npu": "all"})).split()) == 8


@pytest.fixture
def small_cdi_directory(cluster):
    """A CDI directory on a file system of its own, which a test can fill."""
    def renew_users():
        # The runtime watches the directory that was there when it started, and a pod's mount is as old as the pod.
        restart_containerd(cluster)
        old = set(cluster.driver_pids(PLUGIN))
        cluster.kubectl("--namespace", driver.NAMESPACE, "delete", "pod", "--selector",
                        "app.kubernetes.io/name=ascend-dra", "--wait=false")
        wait_for("new driver pod", lambda: cluster.driver_pids(PLUGIN) and not old & set(cluster.driver_pids(PLUGIN)),
                 seconds=90)
        cluster.wait_driver_ready(90)
    driver.run("mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", CDI)
    try:
        renew_users()
        yield CDI
    finally:
        driver.run("umount", CDI)
        renew_users()


def test_cdi_directory_full(cluster, ns, note, small_cdi_directory):
    """A full disk is a clear message, and heals by itself."""
    filler = f"{small_cdi_directory}/filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    ns.create(chip_template(6), chip_pod("waiting"))
    note(ns.wait_message("waiting", FAILED_PREPARE, "/run/cdi/", "No space left"))
    leftovers = [path for path in glob.glob(f"{small_cdi_directory}/.*") + glob.glob(f"{small_cdi_directory}/*")
                 if path != filler]
    assert leftovers == [], "a part of a file stayed behind"
    os.unlink(filler)
    start = time.monotonic()
    ns.wait_pod("waiting", "Succeeded", seconds=150)
    note(f"ran {time.monotonic() - start:.1f} s after there was room")
    assert ns.logs("waiting").split() == ["davinci6"]
