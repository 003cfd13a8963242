"""What a power cut does to the node, for cases that check what is there afterwards."""

import contextlib
import glob
import os
import signal
import uuid

import grpc
import pytest

from npunode import driver
from npunode.cluster import PLUGIN, PLUGIN_DIRECTORY, wait_for
from npunode.controlplane import CONTAINERD_SOCKET

CDI = "/var/run/cdi"


def kill_containers(cluster):
    """Every process below the kubelet's cgroup, as a power cut does."""
    # Of version 1 of cgroups one hierarchy is enough.
    top = next(path for pattern in ("", "*/") for path in glob.glob(f"/sys/fs/cgroup/{pattern}{cluster.node.cgroup}"))

    def alive():
        pids = set()
        for path in glob.glob(f"{top}/kubepods/**/cgroup.procs", recursive=True):
            with contextlib.suppress(OSError), open(path) as file:
                pids |= {int(line) for line in file.read().split()}
        for pid in pids - {0}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return pids
    assert alive(), "no container runs"
    wait_for("all containers ended", lambda: not alive(), seconds=30)


def restart_containerd(cluster):
    def answers():
        # The socket alone proves nothing: a killed one leaves it behind, and a new one listens before it is ready.
        with grpc.insecure_channel(f"unix:{CONTAINERD_SOCKET}") as channel:
            version = channel.unary_unary("/runtime.v1.RuntimeService/Version", request_serializer=None,
                                          response_deserializer=None)
            with contextlib.suppress(grpc.RpcError):
                return version(b"", timeout=1)
    cluster.services.restart("containerd")
    wait_for("containerd answers", answers)


def patch_daemonset(cluster, containers):
    cluster.api.request("PATCH", driver.DAEMONSET_PATH, {"spec": {"template": {"spec": {"containers": containers}}}},
                        "application/strategic-merge-patch+json")
    wait_for("driver rolled out", lambda: driver.daemonset_ready(cluster.api) and len(cluster.driver_pids(PLUGIN)) == 1,
             seconds=90)


def power_cut(cluster, boot_id, meanwhile=lambda: None):
    """Ends every container and program at once, calls meanwhile(), and starts the node's programs again."""
    cluster.services.stop("kubelet", signal.SIGKILL)
    cluster.services.stop("containerd", signal.SIGKILL)
    kill_containers(cluster)
    for path in glob.glob(f"{CDI}/*"):
        os.unlink(path)
    with open(boot_id, "w") as file:
        file.write(f"{uuid.uuid4()}\n")
    meanwhile()
    restart_containerd(cluster)
    cluster.services.restart("kubelet")


def wait_restarted(ns, names, seconds=240):
    """Waits until the only container of each pod is a new one and ready."""
    def back():
        for name in names:
            status = ns.pod(name)["status"]
            containers = status.get("containerStatuses", [])
            if not containers or not containers[0]["ready"] or containers[0]["restartCount"] == 0:
                return False
        return True
    wait_for("pods run again", back, seconds=seconds, explain=lambda: "\n".join(ns.describe(name) for name in names))


@pytest.fixture
def boot_id(cluster):
    """The plugin reads the boot id from this file: a container's /proc shows the machine's, which nobody can change."""
    path = f"{PLUGIN_DIRECTORY}/e2e-boot-id"
    with open(path, "w") as file:
        file.write(f"{uuid.uuid4()}\n")
    containers = cluster.api.get(driver.DAEMONSET_PATH)["spec"]["template"]["spec"]["containers"]
    arguments = next(item["args"] for item in containers if item["name"] == "plugin")
    patch_daemonset(cluster, [{"name": "plugin", "args": [*arguments, f"--boot-id-file={path}"]}])
    yield path
    patch_daemonset(cluster, [{"name": "plugin", "args": arguments}])
    os.unlink(path)
