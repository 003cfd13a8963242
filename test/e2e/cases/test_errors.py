"""Bad input: one message that names the thing and what to do, where a person looks for it."""

import contextlib
import os
import subprocess
import uuid

import pytest

import plugin_rpc
from npunode import driver
from npunode.cluster import AGENT, wait_for
from objects import LIST_CHIPS, claim, container, on_chip, pod, request, template

CHIP = 4
NODE = f"/dev/davinci{CHIP}"
FAILED_PREPARE = "FailedPrepareDynamicResources"


def claim_pod(name="victim"):
    return pod(name, container(LIST_CHIPS, claims=["npu"]), claims={"npu": "chip"})


@contextlib.contextmanager
def replaced_node(major=None):
    """Removes a chip's device node, or gives it another major, for a while."""
    status = os.stat(NODE)
    os.unlink(NODE)
    try:
        if major is not None:
            os.mknod(NODE, status.st_mode, os.makedev(major, CHIP))
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(NODE)
        os.mknod(NODE, status.st_mode, status.st_rdev)
        os.chmod(NODE, status.st_mode & 0o7777)
        os.chown(NODE, status.st_uid, status.st_gid)


def test_missing_device_node(ns, note):
    ns.create(template("chip", request(selectors=[on_chip(CHIP)])))
    with replaced_node():
        ns.create(claim_pod())
        note(ns.wait_message("victim", FAILED_PREPARE, NODE))


def test_wrong_major(ns, note):
    ns.create(template("chip", request(selectors=[on_chip(CHIP)])))
    with replaced_node(major=240):
        ns.create(claim_pod())
        note(ns.wait_message("victim", FAILED_PREPARE, NODE, "240"))


def test_cdi_directory_not_writable(ns, note):
    ns.create(template("chip"))
    mode = os.stat("/var/run/cdi").st_mode & 0o7777
    # Root without CAP_DAC_OVERRIDE, as the plugin runs, is bound by the mode.
    os.chmod("/var/run/cdi", 0o555)
    try:
        ns.create(claim_pod())
        note(ns.wait_message("victim", FAILED_PREPARE, "/run/cdi/"))
    finally:
        os.chmod("/var/run/cdi", mode)


def test_claim_without_allocation(ns, note):
    created, = ns.create(claim("unallocated"))
    error = plugin_rpc.prepare(ns.name, created["metadata"]["uid"], "unallocated")
    note(error)
    assert "unallocated" in error and "allocat" in error.replace("unallocated", "")


def test_wrong_uid(ns, note):
    created, = ns.create(claim("recreated"))
    error = plugin_rpc.prepare(ns.name, str(uuid.uuid4()), "recreated")
    note(error)
    assert "recreated" in error and created["metadata"]["uid"] in error


def test_claim_that_does_not_exist(ns, note):
    error = plugin_rpc.prepare(ns.name, str(uuid.uuid4()), "nowhere")
    note(error)
    assert "nowhere" in error


@pytest.mark.smoke
def test_agent_without_libdcmi(cluster, note):
    """The agent says which library it looked for; it is no pod's business yet."""
    program = os.path.join(driver.installed(cluster.work), "bin", AGENT)
    log = os.path.join(cluster.services.logs, "agent-without-libdcmi.log")
    with open(log, "w") as output:
        agent = subprocess.Popen([program, f"--control-socket={cluster.work}/lonely.sock",
                                  "--libdcmi=/nonexistent/libdcmi.so"], stdout=output, stderr=output)

    def said():
        with open(log) as file:
            return next((line.strip() for line in file if "/nonexistent/libdcmi.so" in line), None)
    try:
        note(wait_for("the agent names the library", said, seconds=10))
    finally:
        agent.kill()
        agent.wait()
