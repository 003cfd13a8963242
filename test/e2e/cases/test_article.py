"""The pods of the device plugin's integration guide, unchanged but for image and command."""

import os

import pytest
import yaml

from npunode.cluster import wait_for
from objects import LIST_CHIPS, FOREVER, container, pod

MANIFESTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "manifests")
LIBRARIES = "ls /usr/local/Ascend/driver/lib64/driver /usr/local/Ascend/driver/lib64/common"
CONTROL_NODES = {"davinci_manager", "devmm_svm", "hisi_hdc"}


def manifest(name, image, spec, script):
    """A manifest with image and command swapped; spec() finds the pod spec in it."""
    with open(os.path.join(MANIFESTS, name)) as file:
        body = yaml.safe_load(file)
    main = spec(body)["containers"][0]
    main.pop("args", None)
    main.update(image=image, command=["sh", "-c", script])
    return body


@pytest.mark.smoke
def test_single_card_pod(cluster, ns):
    script = f"({LIST_CHIPS}); echo --; ls /dev; echo --; {LIBRARIES}; {FOREVER}"
    ns.create(manifest("single-card-pod.yaml", cluster.image, lambda body: body["spec"], script))
    ns.wait_pod("npu-test-pod")
    chips, nodes, libraries = (part.split() for part in ns.logs("npu-test-pod").split("--\n"))
    assert len(chips) == 1, f"one chip was asked for, the pod sees {chips}"
    assert CONTROL_NODES <= set(nodes), f"control nodes are missing from {nodes}"
    assert any(name.startswith("lib") for name in libraries), f"no driver library: {libraries}"


def test_eight_card_job(cluster, ns):
    data = os.path.join(cluster.work, "training-data")
    os.makedirs(data, exist_ok=True)
    cluster.api.create("/api/v1/persistentvolumes", {
        "metadata": {"name": "training-data"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                 "hostPath": {"path": data}, "claimRef": {"namespace": ns.name, "name": "training-data-pvc"}}})
    try:
        ns.create({"kind": "PersistentVolumeClaim", "metadata": {"name": "training-data-pvc"},
                   "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                            "resources": {"requests": {"storage": "1Gi"}}}})
        job = manifest("eight-card-job.yaml", cluster.image, lambda body: body["spec"]["template"]["spec"],
                       f"({LIST_CHIPS}) > /data/chips; ({LIST_CHIPS}); {FOREVER}")
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
        ns.create(job)
        name = wait_for("pod of the job", lambda: [
            item["metadata"]["name"] for item in cluster.api.get(f"{ns.path}/pods")["items"]])[0]
        ns.wait_pod(name)
        assert ns.logs(name).split() == [f"davinci{i}" for i in range(8)]
        with open(f"{data}/chips") as file:
            assert len(file.read().split()) == 8

        ninth = pod("ninth", container(f"{LIST_CHIPS}; {FOREVER}",
                                       resources={"limits": {"huawei.com/Ascend910": "1"}}))
        ns.create(ninth)
        reason = ns.wait_message("ninth", "FailedScheduling")
        assert "0/1 nodes are available" in reason
        assert ns.pod("ninth")["status"]["phase"] == "Pending"
        cluster.api.delete(f"/apis/batch/v1/namespaces/{ns.name}/jobs/llm-training-job?propagationPolicy=Background")
        ns.wait_pod("ninth")
        assert len(ns.logs("ninth").split()) == 1
    finally:
        cluster.api.delete("/api/v1/persistentvolumes/training-data")
