"""What the cases of vNPUs share."""

import os
import re

from npunode.cluster import wait_for
from objects import DRIVER, FOREVER, LIST_CHIPS, container, on_chip, pod, request, template

VNPU_CLASS = "vnpu.huawei.com"
FAILED_PREPARE = "FailedPrepareDynamicResources"


def part(name, chip):
    """A request for a part of one chip, by the template's name."""
    return request(deviceClassName=VNPU_CLASS, selectors=[
        f'device.attributes["{DRIVER}"].?template.orValue("") == "{name}"', on_chip(chip)])


def part_template(name, chip):
    return template(f"part-of-{chip}", part(name, chip))


def part_pod(name, chip, script=f"{LIST_CHIPS}; {FOREVER}", **spec):
    """A pod that says which chips it sees and stays; its claim is of part_template()."""
    return pod(name, container(script, claims=["npu"]), claims={"npu": f"part-of-{chip}"}, **spec)


def vnpu_of(ns, name):
    """The id of the only chip that the pod's container sees."""
    def seen():
        return re.fullmatch(r"davinci(\d+)\n", ns.logs(name))
    return int(wait_for(f"pod {name} tells its chip", seen, explain=lambda: ns.logs(name))[1])


def device_nodes():
    return {int(name.removeprefix("vdavinci")) for name in os.listdir("/dev") if name.startswith("vdavinci")}


def assert_one_each(cluster, ns, names, others=()):
    """Each pod has one vNPU, and apart from `others` there is no other: on the chips and in /dev."""
    ids = sorted([*(vnpu_of(ns, name) for name in names), *others])
    assert sorted(cluster.vnpus()) == ids
    wait_for(f"device nodes of {ids}", lambda: sorted(device_nodes()) == ids,
             explain=lambda: f"there are {device_nodes()}")


def assert_none(cluster):
    assert cluster.vnpus() == {}
    wait_for("no device node of a vNPU", lambda: not device_nodes(), explain=lambda: f"there are {device_nodes()}")


def slice_versions(cluster):
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in cluster.slices()}


def taints(cluster, name):
    return [taint["value"] for taint in cluster.devices()[name].get("taints", [])]
