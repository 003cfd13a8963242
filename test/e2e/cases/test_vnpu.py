"""Parts of chips: made for a pod, seen by nobody else, gone with it."""

import os
import re

import pytest

from npunode import driver
from npunode.cluster import seconds_until, wait_for
from objects import FOREVER, LIST_CHIPS, container, on_chip, pod, request, template
from vnpus import (assert_none, assert_one_each, device_nodes, part_pod, part_template, slice_versions, taints,
                   vnpu_of)

ALLOWED, REFUSED = "No such device or address", "Operation not permitted"
CHIP = 1
FIRST_ID = 100 + 16 * CHIP
CONTROL_NODES = {"davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist"}
on_310p, on_910b = pytest.mark.chips("4x310P3"), pytest.mark.chips("8x910B4")


def character_devices(major):
    """A script that prints the names of the container's device nodes of that major."""
    return ('for node in $(find /dev -type c); do '
            f'[ $(stat -c %t $node) = {major:x} ] && basename $node; done')


@pytest.mark.smoke
@on_310p
def test_pod_of_the_device_plugin(cluster, ns):
    """A pod that asks for the device plugin's name of a vNPU: unchanged, and nothing stays behind."""
    cluster.kubectl("apply", "-f", os.path.join(driver.REPOSITORY, "deploy/manifests/compatibility-classes.yaml"))
    slices = slice_versions(cluster)
    major = os.major(os.stat(f"/dev/davinci{CHIP}").st_rdev)
    ns.create(pod("article", container(f"{character_devices(major)}; {FOREVER}",
                                       resources={"limits": {"huawei.com/Ascend310P-2c": "1"}})))
    ns.wait_pod("article")
    (vnpu_id, vnpu), = cluster.vnpus().items()
    assert vnpu["template"] == "vir02"
    assert set(ns.logs("article").split()) == {f"davinci{vnpu_id}"} | CONTROL_NODES
    ns.delete_pod("article")
    assert_none(cluster)
    assert slice_versions(cluster) == slices, "a slice was written because a claim came or went"


@on_310p
def test_claim_says_template_and_id(cluster, ns):
    ns.create(part_template("vir02_1c", CHIP), part_pod("told", CHIP))
    ns.wait_pod("told")
    vnpu_id = vnpu_of(ns, "told")
    name = ns.pod("told")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]

    def written():
        return ns.claim(name)["status"].get("devices")
    device, = wait_for("status of the device", written)
    assert device["device"].startswith(f"npu-{CHIP}-vir02-1c-")
    assert device["data"]["vnpu"] == {"template": "vir02_1c", "id": vnpu_id}
    assert cluster.vnpus()[vnpu_id]["template"] == "vir02_1c"
    assert device["data"]["chips"][0]["physicalID"] == CHIP


@pytest.mark.parametrize(("kind", "uid"), [
    pytest.param("vir02_1c", 0, marks=on_310p),
    pytest.param("vir02_1c", 1000, marks=[on_310p, pytest.mark.smoke]),
    pytest.param("vir05_1c_8g", 0, marks=on_910b),
    pytest.param("vir05_1c_8g", 1000, marks=on_910b)])
def test_only_the_own_vnpu_opens(cluster, ns, kind, uid):
    """Two pods on one chip: an init container may make nodes for anything; opening them is another matter."""
    major = os.major(os.stat(f"/dev/davinci{CHIP}").st_rdev)
    minors = [CHIP, *range(FIRST_ID, FIRST_ID + 4)]
    make = "".join(f"mknod /nodes/{minor} c {major} {minor}; chmod 0666 /nodes/{minor}; " for minor in minors)
    opens = ('cd /dev; for node in davinci[0-9]* davinci_manager /nodes/*; do echo "$node: $( (: <> $node) 2>&1 )"; '
             f'done; {character_devices(major)}; id -u')
    mounts = {"volumeMounts": [{"name": "nodes", "mountPath": "/nodes"}]}
    ns.create(part_template(kind, CHIP), part_pod("neighbour", CHIP))
    ns.wait_pod("neighbour")
    ns.create(pod("locked", container(
                      f"{opens}; {FOREVER}", claims=["npu"], **mounts,
                      securityContext={"runAsUser": uid, "allowPrivilegeEscalation": False,
                                       "capabilities": {"drop": ["ALL"]}}),
                  claims={"npu": f"part-of-{CHIP}"}, volumes=[{"name": "nodes", "emptyDir": {}}],
                  initContainers=[container(make, name="maker", **mounts,
                                            securityContext={"capabilities": {"add": ["MKNOD"]}})]))
    ns.wait_pod("locked")
    vnpus = cluster.vnpus()
    own, = set(vnpus) - {vnpu_of(ns, "neighbour")}
    assert {vnpu["physicalID"] for vnpu in vnpus.values()} == {CHIP}
    lines = wait_for("all printed", lambda: [line for text in [ns.logs("locked")] if text.endswith(f"\n{uid}\n")
                                             for line in text.splitlines()])
    opened = dict(line.split(": ", 1) for line in lines if ": " in line)
    nodes = {line for line in lines[:-1] if ": " not in line}
    assert nodes == {f"davinci{own}"} | CONTROL_NODES
    allowed = {node for node, said in opened.items() if ALLOWED in said}
    refused = {node for node, said in opened.items() if REFUSED in said}
    assert allowed == {f"davinci{own}", "davinci_manager", f"/nodes/{own}"}, opened
    assert refused == {f"/nodes/{minor}" for minor in minors if minor != own}, opened
    for name in ("locked", "neighbour"):
        ns.delete_pod(name)
    assert_none(cluster)


@on_310p
def test_chip_and_its_parts_exclude_each_other(cluster, ns):
    ns.create(part_template("vir02_1c", CHIP), template("whole", request(selectors=[on_chip(CHIP)])),
              part_pod("part", CHIP))
    ns.wait_pod("part")
    ns.create(pod("whole", container(f"{LIST_CHIPS}; {FOREVER}", claims=["npu"]), claims={"npu": "whole"}))
    ns.wait_message("whole", "FailedScheduling")
    assert_one_each(cluster, ns, ["part"])
    ns.delete_pod("part")
    ns.wait_pod("whole")
    assert ns.logs("whole").split() == [f"davinci{CHIP}"]
    ns.create(part_pod("part", CHIP))
    ns.wait_message("part", "FailedScheduling")
    assert_none(cluster)


@on_910b
def test_measured_against_a_whole_chip(cluster, ns, note):
    """How much later a container starts when its part of a chip has to be made first."""
    took = {"part": [], "whole": []}
    for chip in range(6):
        kind = ("part", "whole")[chip % 2]
        source = part_template("vir05_1c_8g", chip) if kind == "part" else template(
            f"part-of-{chip}", request(selectors=[on_chip(chip)]))
        name = f"{kind}-{chip}"
        ns.create(source, part_pod(name, chip))
        took[kind].append(seconds_until(
            lambda name=name: ns.pod(name)["status"]["phase"] == "Running", f"{name} runs", poll=0.005))
    prepared = {kind: sorted(float(ms) for ms in re.findall(
        rf'claim prepared.*claim="?{ns.name}/{kind}-\d-.*\bms=([\d.]+)', cluster.plugin_log())) for kind in took}
    for kind, seconds in took.items():
        assert len(prepared[kind]) == 3, f"Prepare is not in the log: {prepared}"
        note(f"{kind}: pod runs after {sorted(seconds)[1] * 1000:.0f} ms, Prepare {prepared[kind][1]:.1f} ms "
             f"(medians of 3; Prepare at most {prepared[kind][-1]:.1f} ms)")
    assert prepared["part"][1] < 2000


@on_310p
def test_static_mode(cluster, ns, note):
    """What an administrator made is offered within seconds, survives pods, and leaves when he destroys it."""
    name = f"npu-{CHIP}-vir02-1c-0"
    cluster.configure(vnpuMode="static")
    try:
        wait_for("whole chips only", lambda: sorted(cluster.devices()) == [f"npu-{i}" for i in range(4)])
        vnpu_id = cluster.admin_creates_vnpu(CHIP, "vir02_1c")
        note(f"offered {seconds_until(lambda: name in cluster.devices(), name):.2f} s after it was made")
        wait_for("the whole chip is not to be had", lambda: taints(cluster, f"npu-{CHIP}") == ["divided"])
        ns.create(part_template("vir02_1c", CHIP), part_pod("user", CHIP))
        ns.wait_pod("user")
        assert vnpu_of(ns, "user") == vnpu_id
        ns.create(part_pod("second", CHIP))
        ns.wait_message("second", "FailedScheduling")
        ns.delete_pod("second")
        ns.delete_pod("user")
        assert set(cluster.vnpus()) == device_nodes() == {vnpu_id}
        cluster.admin_destroys_vnpu(vnpu_id)
        note(f"gone {seconds_until(lambda: name not in cluster.devices(), name):.2f} s after it was destroyed")
        wait_for("the whole chip is to be had", lambda: not taints(cluster, f"npu-{CHIP}"))
    finally:
        cluster.configure(vnpuMode="dynamic", vnpuChangeNodeModes=True)
    wait_for("parts are offered again", lambda: name in cluster.devices())
