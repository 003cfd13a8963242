"""Isolation by the kernel's word.

The mock's device nodes have a major without a driver: open() says ENXIO where the
device cgroup lets the container through, and EPERM where it does not."""

import os

import pytest

from objects import LIST_CHIPS, container, on_chip, pod, request, template

ALLOWED, REFUSED = "No such device or address", "Operation not permitted"
OWN, OTHER = 2, 6


def opens(path):
    return f"(: <> {path}) 2>&1 || true; "


@pytest.mark.smoke
@pytest.mark.parametrize("uid", [0, 1000, 12345])
def test_only_the_own_chip_opens(ns, uid):
    """An init container may make nodes for any chip; opening them is another matter."""
    major = os.major(os.stat(f"/dev/davinci{OWN}").st_rdev)
    make = "".join(f"mknod /nodes/made{chip} c {major} {chip}; chmod 0666 /nodes/made{chip}; " for chip in (OWN, OTHER))
    mounts = {"volumeMounts": [{"name": "nodes", "mountPath": "/nodes"}]}
    script = (opens(f"/dev/davinci{OWN}") + opens("/dev/davinci_manager") + opens(f"/nodes/made{OWN}")
              + opens(f"/nodes/made{OTHER}") + f"{LIST_CHIPS}; id -u")
    ns.create(
        template("chip", request(selectors=[on_chip(OWN)])),
        pod("locked", container(
                script, claims=["npu"], **mounts,
                securityContext={"runAsUser": uid, "allowPrivilegeEscalation": False,
                                 "capabilities": {"drop": ["ALL"]}}),
            claims={"npu": "chip"}, volumes=[{"name": "nodes", "emptyDir": {}}],
            initContainers=[container(make + "ls -l /nodes", name="maker", **mounts,
                                      securityContext={"capabilities": {"add": ["MKNOD"]}})]))
    ns.wait_pod("locked", "Succeeded")
    own, manager, made_own, made_other, chips, user = ns.logs("locked").splitlines()
    assert ALLOWED in own, f"its own chip: {own}"
    assert ALLOWED in manager, f"the control node: {manager}"
    assert ALLOWED in made_own, f"a node made for its own chip: {made_own}"
    assert REFUSED in made_other, f"a node made for another chip: {made_other}"
    assert (chips, user) == (f"davinci{OWN}", str(uid))


def test_mounted_host_node_is_refused(ns):
    """A hostPath of the neighbour's node shows it, the kernel refuses it."""
    script = opens(f"/dev/davinci{OWN}") + opens("/neighbour") + "ls -l /neighbour"
    output = ns.run_pod(
        template("chip", request(selectors=[on_chip(OWN)])),
        pod("mounting", container(script, claims=["npu"],
                                  volumeMounts=[{"name": "neighbour", "mountPath": "/neighbour"}]),
            claims={"npu": "chip"},
            volumes=[{"name": "neighbour", "hostPath": {"path": f"/dev/davinci{OTHER}", "type": "CharDevice"}}]))
    own, neighbour, _ = output.splitlines()
    assert ALLOWED in own and REFUSED in neighbour, output


def test_pod_without_claim_sees_no_chip(ns):
    assert ns.run_pod(pod("plain", container(LIST_CHIPS))).split() == []


def test_a_claim_adds_no_capability(ns):
    """The driver adds no rights: without a claim and with one, the container's capabilities are the same."""
    script = "grep CapEff /proc/self/status"
    ns.create(template("chip"), pod("with", container(script, claims=["npu"]), claims={"npu": "chip"}),
              pod("without", container(script)))
    for name in ("with", "without"):
        ns.wait_pod(name, "Succeeded")
    assert ns.logs("with") == ns.logs("without")
