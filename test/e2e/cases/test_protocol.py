"""What the driver says beyond CDI ids: device status, metadata in containers, configuration."""

import json

import pytest

from npunode.api import ApiError
from npunode.cluster import wait_for
from objects import DRIVER, FOREVER, container, on_chip, pod, request, template

POLICY = "npu-config.npu.huawei.com"
BINDING = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{POLICY}"
CONFIG = {"apiVersion": "npu.huawei.com/v1alpha1", "kind": "NpuConfig"}


@pytest.mark.smoke
def test_device_status_and_metadata(ns):
    """The claim's status names each chip with its address; the container reads the same from a file."""
    path = f"/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/npu/train/{DRIVER}-metadata.json"
    ns.create(template("chip", request("train", selectors=[on_chip(3)])),
              pod("reader", container(f"cat {path}; {FOREVER}", claims=[("npu", "train")]), claims={"npu": "chip"}))
    ns.wait_pod("reader")
    versions = [json.loads(line) for line in ns.logs("reader").splitlines()]
    assert [v["apiVersion"] for v in versions] == ["metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1"]
    device, = versions[0]["requests"][0]["devices"]
    assert device["name"] == "npu-3" and device["driver"] == DRIVER
    assert device["attributes"]["physicalID"] == {"int": 3}
    assert versions[0]["podClaimName"] == "npu" and versions[0]["requests"][0]["name"] == "train"

    name = ns.pod("reader")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    status, = wait_for("status.devices of the claim", lambda: ns.claim(name)["status"].get("devices"), seconds=20)
    assert (status["driver"], status["device"]) == (DRIVER, "npu-3")
    conditions = {condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]}
    assert conditions == {"Ready": ("True", "Prepared"), "Healthy": ("True", "Healthy")}
    assert status["data"]["chips"][0]["physicalID"] == 3
    assert status["networkData"] == device["networkData"], "the address for rank tables"


@pytest.mark.smoke
@pytest.mark.parametrize("field, word", [
    ({"sharedUze": "Warn"}, "sharedUze"), ({"sharedUse": "Maybe"}, "sharedUse"), ({"kind": "GpuConfig"}, "kind")],
    ids=["field", "value", "kind"])
def test_wrong_configuration_is_refused(ns, note, field, word):
    with pytest.raises(ApiError) as refused:
        ns.create(template("chip", request(), config={**CONFIG, **field}))
    assert POLICY in str(refused.value) and word in str(refused.value)
    note(str(refused.value).splitlines()[0][:300])


def test_right_configuration_is_accepted(ns):
    ns.run_pod(template("chip", request(), config={**CONFIG, "sharedUse": "Expected"}),
               pod("user", container("true", claims=["npu"]), claims={"npu": "chip"}))


@pytest.mark.smoke
def test_wrong_configuration_that_passed_admission(ns, cluster, note):
    """Written before the policy was: the pod's event names the field, and the claim can be deleted."""
    binding = cluster.api.get(BINDING)
    cluster.api.delete(BINDING)
    try:
        created = wait_for("admission without the policy", lambda: _created(
            ns, template("chip", request(), config={**CONFIG, "deviceShare": True})), seconds=30)
        assert created
        # The claim is made from the template by a controller: it must not meet the policy either.
        ns.create(pod("victim", container("true", claims=["npu"]), claims={"npu": "chip"}))
        note(ns.wait_message("victim", "FailedPrepareDynamicResources", "deviceShare"))
    finally:
        for field in ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"):
            binding["metadata"].pop(field, None)
        cluster.api.create(BINDING.rsplit("/", 1)[0], binding)


def _created(ns, item):
    try:
        return ns.create(item)
    except ApiError:
        return None


@pytest.mark.smoke
def test_cli_in_the_plugin_shows_who_holds_what(ns, cluster, note):
    """The commands of the README."""
    ns.create(template("chip", request(selectors=[on_chip(5)])),
              pod("holder", container(FOREVER, claims=["npu"]), claims={"npu": "chip"}))
    ns.wait_pod("holder")
    name = ns.pod("holder")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    line, = [line for line in cluster.ascend_dra("claims", "list").splitlines() if f"{ns.name}/{name} " in line]
    assert "npu-5" in line and line.endswith("ok"), line
    note(" ".join(line.split()))
    shown = cluster.ascend_dra("claims", "show", f"{ns.name}/{name}")
    assert ns.claim(name)["metadata"]["uid"] in shown and "davinci5" in shown
    cluster.ascend_dra("claims", "verify")  # fails if there is a finding
