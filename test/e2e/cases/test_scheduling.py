"""The real scheduler and the driver's own slices: what it hands out is exactly what the hardware can hold.

Nodes without a kubelet: pods are bound there and never run."""

import random

import pytest
import yaml

from hardware import WHOLE, Chips
from npunode import driver
from npunode.cluster import wait_for
from npunode.fake_nodes import LABEL, FakeNode
from npunode.scheduler import Scheduler
from objects import DRIVER, FOREVER, claim, container, pod, request

VNPU_CLASS = "vnpu.huawei.com"
CLASSES = [f"{driver.REPOSITORY}/deploy/manifests/{name}.yaml" for name in ("ascend-dra", "compatibility-classes")]
FILL_ROUNDS = 4
SEED = 20250611


def attribute(name, value):
    return f'device.attributes["{DRIVER}"].?{name}.orValue("") == "{value}"'


def wish_request(wish):
    if wish == WHOLE:
        return request()
    return request(deviceClassName=VNPU_CLASS, selectors=[attribute("template", wish)])


def unrun_pod(name, node=None, claims=("npu",), **fields):
    """For a node, or any of those without a kubelet."""
    selector = {"kubernetes.io/hostname": node.name} if node else {LABEL: "true"}
    return pod(name, container(FOREVER, claims=claims, **fields),
               claims={entry: f"claim/{name}" for entry in claims}, nodeSelector=selector,
               tolerations=[{"operator": "Exists"}])


def submit(namespace, node, wishes, prefix="p"):
    """One pod with one claim for each wish, in this order; the wishes by pod."""
    pods = {f"{prefix}-{number}": wish for number, wish in enumerate(wishes)}
    # All claims first, so that no pod has to wait for its own and is overtaken.
    namespace.create(*(claim(name, wish_request(wish)) for name, wish in pods.items()))
    namespace.create(*(unrun_pod(name, node) for name in pods))
    return pods


def held(namespace):
    """The devices of all claims; each was handed out once."""
    devices = [device for devices in namespace.allocated().values() for device in devices]
    assert len(devices) == len(set(devices)), devices
    return devices


def wait_settled(namespace, kind, pods):
    """Waits until every pod is bound or rightly refused; the bound ones."""
    def settled():
        verdicts = namespace.verdicts()
        chips = Chips(kind, held(namespace))
        assert not chips.problems()
        open_pods = [name for name in pods if verdicts[name] is None or (not verdicts[name] and chips.fits(pods[name]))]
        return None if open_pods else [name for name in pods if verdicts[name]]
    def why():
        verdicts = namespace.verdicts()
        waiting = next(name for name in pods if not verdicts[name])
        return f"held: {held(namespace)}\n{namespace.describe(waiting)}"
    return wait_for("every pod bound that fits", settled, seconds=30, explain=why)


@pytest.mark.parametrize("kind", ["8x910B4", "8x910B3", "4x310P3", "8x910A", "16xA3"])
def test_fill(cluster, bound, note, kind):
    """Fill, release in random order, refill. As much as in-order first fit places, never more than fits."""
    rng = random.Random(f"{SEED} {kind}")
    pods, tally = {}, [0, 0]
    with FakeNode(cluster, f"fill-{kind.lower()}", kind) as node:
        versions = node.versions()
        for number in range(FILL_ROUNDS):
            simulated = Chips(kind, held(bound))
            wishes = simulated.wishes(rng)
            pods.update(submit(bound, node, wishes, f"r{number}"))
            placed = wait_settled(bound, kind, pods)
            expected = sum(len(chip.parts) for chip in simulated.chips.values())
            assert len(placed) >= expected, Chips(kind, held(bound)).chips
            tally[0] += len(placed)
            tally[1] += len(pods) - len(placed)
            released = rng.sample(placed, len(placed) * 2 // 3) + [name for name in pods if name not in placed]
            rng.shuffle(released)
            bound.remove(*released)
            pods = {name: wish for name, wish in pods.items() if name not in released}
        bound.remove(*pods)
        whole = Chips(kind).chips
        bound.create(claim("all", request(count=len(whole))), unrun_pod("all", node))
        assert bound.wait_bound("all") == node.name
        assert len(held(bound)) == len(whole)
        # Claims that come and go are the scheduler's account alone.
        assert node.versions() == versions
    note(f"{FILL_ROUNDS} rounds: {tally[0]} times bound, {tally[1]} times rightly refused")


@pytest.mark.smoke
def test_whole_chip_and_parts_exclude_each_other(cluster, bound):
    """On one chip, both ways; who waits is bound as soon as the other lets go."""
    with FakeNode(cluster, "one-chip", "8x910B4", excludedChips=list(range(1, 8))) as node:
        assert {name for name in node.devices() if "vir" not in name} == {"npu-0"}
        submit(bound, node, [WHOLE], "whole")
        bound.wait_bound("whole-0")
        submit(bound, node, ["vir05_1c_8g"], "part")
        assert bound.wait_verdict("part-0") == ""
        bound.remove("whole-0")
        bound.wait_bound("part-0")
        submit(bound, node, [WHOLE], "whole")
        assert bound.wait_verdict("whole-0") == ""
        bound.remove("part-0")
        bound.wait_bound("whole-0")
        assert held(bound) == ["npu-0"]


def compatibility(b4, p3, a3):
    """Extended resource -> nodes that have it, of a cluster of these three."""
    return {"huawei.com/Ascend910": {b4, a3}, "huawei.com/Ascend310P": {p3},
            "huawei.com/Ascend910-5c.1cpu.8g": {b4}, "huawei.com/Ascend910-10c.3cpu.16g": {b4},
            "huawei.com/Ascend910-10c.3cpu.16g.ndvpp": {b4}, "huawei.com/Ascend910-10c.4cpu.16g.dvpp": {b4},
            "huawei.com/Ascend310P-1c": {p3}, "huawei.com/Ascend310P-2c": {p3}, "huawei.com/Ascend310P-4c": {p3},
            "huawei.com/Ascend310P-2c.1cpu": {p3}, "huawei.com/Ascend310P-4c.3cpu": {p3},
            "huawei.com/Ascend310P-4c.3cpu.ndvpp": {p3}, "huawei.com/Ascend310P-4c.4cpu.dvpp": {p3}}


@pytest.fixture(scope="module")
def device_classes(cluster):
    """All of deploy/manifests, by name; those that the node did not have go away again."""
    classes = {}
    for path in CLASSES:
        with open(path) as file:
            for item in yaml.safe_load_all(file):
                if item["kind"] == "DeviceClass":
                    classes[item["metadata"]["name"]] = item
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    new = [name for name in classes if cluster.api.get(f"{path}/{name}") is None]
    for name in new:
        cluster.api.create(path, classes[name])
    yield classes
    for name in new:
        cluster.api.delete(f"{path}/{name}")


@pytest.mark.smoke
def test_mixed_cluster(cluster, bound, device_classes, note):
    """910B4, 310P and A3 together: no class and no claim ends in an error on an attribute that a node lacks."""
    scheduler = Scheduler(cluster)
    with (FakeNode(cluster, "mixed-b4", "8x910B4") as b4, FakeNode(cluster, "mixed-p3", "4x310P3") as p3,
          FakeNode(cluster, "mixed-a3", "16xA3") as a3):
        everywhere, parts = {b4.name, p3.name, a3.name}, {b4.name, p3.name}
        by_resource = compatibility(b4.name, p3.name, a3.name)
        pods = []  # (pod, its nodes; "" = none, the objects)
        for number, (name, item) in enumerate(sorted(device_classes.items())):
            resource = item["spec"].get("extendedResourceName")
            nodes = {"npu.huawei.com": everywhere, "vnpu.huawei.com": parts}.get(name, by_resource.get(resource, {""}))
            by_claim, by_name = f"class-{number}", f"resource-{number}"
            pods.append((by_claim, nodes, [claim(by_claim, request(deviceClassName=name)), unrun_pod(by_claim)]))
            if resource:
                pods.append((by_name, nodes, [unrun_pod(by_name, claims=(), resources={"limits": {resource: "1"}})]))
        selectors = {
            "family-310p": (attribute("family", "310P"), {p3.name}),
            "family-a3": (attribute("family", "A3"), {a3.name}),
            "module": (f'device.attributes["{DRIVER}"].?module.orValue("") != ""', {a3.name}),
            "hccs": (attribute("hccsGroup", "hccs-0"), {b4.name, a3.name}),
            "super-pod": (f'device.attributes["{DRIVER}"].?superPodID.orValue(-1) >= 0', {a3.name}),
            "memory": (f'device.capacity["{DRIVER}"].memory.compareTo(quantity("128Gi")) >= 0', {a3.name}),
            "nothing": (attribute("family", "920"), {""}),
        }
        for name, (selector, nodes) in selectors.items():
            pods.append((name, nodes, [claim(name, request(selectors=[selector])), unrun_pod(name)]))
        for name, nodes, objects in pods:
            bound.create(*objects)
            assert bound.wait_verdict(name) in nodes, f"{name}: {nodes}\n{bound.describe(name)}"
            bound.remove(name)  # room for the next
        # What the above would look like otherwise: the same question without orValue().
        before = scheduler.attempts()
        careless = f'device.attributes["{DRIVER}"].superPodID >= 0'
        bound.create(claim("careless", request(selectors=[careless])), unrun_pod("careless"))
        result, _ = scheduler.wait_attempt(before)
        assert result != "scheduled"
        assert "no such key: superPodID" in bound.wait_message("careless", "FailedScheduling")
        events = cluster.api.get(f"{bound.path}/events")["items"]
        failed = {item["involvedObject"]["name"] for item in events if "no such key" in item["message"]}
        assert failed == {"careless"}
        note(f"{len(device_classes)} classes, {len(pods)} pods")


def with_match(claim_object, *names):
    claim_object["spec"]["devices"]["constraints"] = [{"matchAttribute": name} for name in names]
    return claim_object


GROUPS = [("8x910A", f"{DRIVER}/hccsGroup", 4), ("16x910B2C", f"{DRIVER}/hccsGroup", 8),
          ("16xA3", f"{DRIVER}/module", 2), ("16x910B2C", "resource.kubernetes.io/pcieRoot", 4)]


@pytest.mark.parametrize("kind,name,size", GROUPS, ids=["ring", "mesh", "module", "pcie-root"])
def test_match_attribute(cluster, bound, kind, name, size):
    """Claims of as many chips as a group has fill all groups and mix none; one chip more has no place."""
    def independent_dies(node):
        node["multiDiePolicy"] = "independent"
    with FakeNode(cluster, "groups", kind, edit=independent_dies if kind.endswith("A3") else None) as node:
        domain, _, short = name.partition("/")
        devices = node.devices()
        def group(device):
            attributes = devices[device]["attributes"]
            return attributes[short if domain == DRIVER else name]["string"]
        count = int(kind.split("x")[0])
        bound.create(with_match(claim("too-many", request(count=size + 1)), name), unrun_pod("too-many", node))
        assert bound.wait_verdict("too-many") == ""
        bound.remove("too-many")
        names = [f"group-{number}" for number in range(count // size)]
        for pod_name in names:
            bound.create(with_match(claim(pod_name, request(count=size)), name), unrun_pod(pod_name, node))
            bound.wait_bound(pod_name)
        groups = [{group(device) for device in devices} for devices in bound.allocated().values()]
        assert all(len(group) == 1 for group in groups) and len(set().union(*groups)) == len(names), groups
        assert len(held(bound)) == count
