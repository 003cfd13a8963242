"""Nodes without a kubelet: the real driver publishes the slices of a mock node, the real scheduler binds pods to
it, and nothing ever runs there."""

import copy
import json
import os
import shutil
import time

from npunode import driver
from npunode.cluster import Namespace
from npunode.steps import NodeError, run, wait_for

NODES = "/api/v1/nodes"
LABEL = "e2e.npu.huawei.com/no-kubelet"


def create_node(api, name):
    """A Node that is Ready as long as the node controller waits for a kubelet; pods tolerate what comes then."""
    api.create(NODES, {"apiVersion": "v1", "kind": "Node",
                       "metadata": {"name": name, "labels": {LABEL: "true", "kubernetes.io/hostname": name}}})
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    room = {"cpu": "1000", "memory": "1000Gi", "pods": "2000"}
    api.merge(f"{NODES}/{name}/status", {"status": {
        "capacity": room, "allocatable": room,
        "conditions": [{"type": "Ready", "status": "True", "reason": "NoKubelet", "message": "",
                        "lastHeartbeatTime": now, "lastTransitionTime": now}]}})


def pool(api, name):
    """The slices of a node, as the scheduler orders them."""
    return sorted((item for item in driver.slices(api) if item["spec"]["pool"]["name"] == name),
                  key=lambda item: item["metadata"]["name"])


def copy_pool(api, slices, name):
    """Publishes the slices as those of another node; no driver stands behind them."""
    for item in slices:
        source = item["spec"]["pool"]["name"]
        spec = copy.deepcopy(item["spec"])
        spec["nodeName"] = spec["pool"]["name"] = name
        api.create(driver.SLICES_PATH, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                                        "metadata": {"name": item["metadata"]["name"].replace(source, name)},
                                        "spec": spec})


def delete_node(api, name):
    api.delete(f"{NODES}/{name}")
    for item in pool(api, name):
        api.delete(f"{driver.SLICES_PATH}/{item['metadata']['name']}")


class FakeNode:
    """The real agent and plugin as processes of this machine. Use it in a with statement."""

    def __init__(self, cluster, name, kind, edit=None, **config):
        """kind: a mock node; edit(node.json as a dict) changes it; config: keys of the DriverConfig."""
        self.name, self.kind = name, kind
        self._api, self._services, self._edit = cluster.api, cluster.services, edit
        self._config = {"vnpuMode": "dynamic", "vnpuChangeNodeModes": True, **config}
        self._root = os.path.join(cluster.work, "fake", name)
        self._installed = driver.installed(cluster.work)

    def __enter__(self):
        create_node(self._api, self.name)
        self._create_mock_node()
        self._start()
        self._services.wait(f"{self.name}-plugin", f"slices of {self.name}", self._complete)
        return self

    def __exit__(self, *_):
        # Both first: the plugin restores slices that somebody deletes.
        for program in ("plugin", "agent"):
            self._services.stop(f"{self.name}-{program}")
        delete_node(self._api, self.name)
        shutil.rmtree(self._root)

    def slices(self):
        return pool(self._api, self.name)

    def devices(self):
        return {device["name"]: device for item in self.slices() for device in item["spec"].get("devices", [])}

    def versions(self):
        """What changes with every write to a slice."""
        return {item["metadata"]["name"]: (item["metadata"]["uid"], item["metadata"]["resourceVersion"],
                                           item["metadata"]["generation"], item["spec"]["pool"]["generation"])
                for item in self.slices()}

    def _create_mock_node(self):
        run(f"{self._installed}/bin/ascend-mock-node", "create", "--node", self.kind, "--root", self._path("host"),
            "--no-device-nodes")
        if self._edit:
            path = self._path("host/etc/ascend-dra/mock-node/node.json")
            with open(path) as file:
                node = json.load(file)
            self._edit(node)
            with open(path, "w") as file:
                json.dump(node, file)
        with open(self._path("config.yaml"), "w") as file:
            json.dump({"apiVersion": "npu.huawei.com/v1alpha1", "kind": "DriverConfig", **self._config}, file)
        for folder in ("control", "cdi", "kubelet/plugins", "kubelet/plugins_registry", "kubelet/pod-resources"):
            os.makedirs(self._path(folder))

    def _start(self):
        host, socket = self._path("host"), self._path("control/agent.sock")
        self._services.start(
            f"{self.name}-agent", f"{self._installed}/bin/ascend-npu-agent", "--control-socket", socket,
            "--libdcmi", f"{self._installed}/lib/ascend-dra/mock/libdcmi.so", "--sysfs", f"{host}/sys",
            "--hccn-conf", f"{host}/etc/hccn.conf",
            environment={"ASCEND_MOCK_NODE": f"{host}/etc/ascend-dra/mock-node"})
        self._services.start(
            f"{self.name}-plugin", f"{self._installed}/bin/ascend-dra-kubeletplugin", "--node-name", self.name,
            "--kubeconfig", os.environ["KUBECONFIG"], "--kubelet-root", self._path("kubelet"),
            "--cdi-root", self._path("cdi"), "--agent-socket", socket, "--host-root", host,
            "--proc-devices", f"{host}/etc/ascend-dra/mock-proc-devices", "--config", self._path("config.yaml"),
            "--health-port", "-1", "--allocations-socket", "")

    def _complete(self):
        """All slices are there. Parts too, if there will be any: the node's modes are changed first."""
        slices = self.slices()
        if not slices or any(item["spec"]["pool"]["resourceSliceCount"] != len(slices) for item in slices):
            return False
        types = {device["attributes"]["type"]["string"] for device in self.devices().values()}
        parts = self._config["vnpuMode"] == "dynamic" and not self.kind.endswith("A3")
        return types == ({"npu", "vnpu"} if parts else {"npu"})

    def _path(self, name):
        return os.path.join(self._root, name)


class BoundNamespace(Namespace):
    """A namespace of pods that are bound and never run: nothing but the API server has to let go of them."""

    def verdicts(self):
        """Pod -> name of its node, "" if it is unschedulable, None while nobody knows."""
        return {item["metadata"]["name"]: self._verdict(item) for item in self.api.get(f"{self.path}/pods")["items"]}

    def _verdict(self, pod):
        if node := pod["spec"].get("nodeName"):
            return node
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["reason"] == "SchedulerError":
                raise NodeError(f"pod {pod['metadata']['name']}: {condition['message']}")
            if condition["type"] == "PodScheduled" and condition["reason"] == "Unschedulable":
                return ""
        return None

    def wait_verdict(self, name, seconds=60):
        """Name of the pod's node, or "" if the scheduler has found none."""
        def known():
            verdict = self._verdict(self.pod(name))
            return None if verdict is None else (verdict,)  # "" is an answer too
        return wait_for(f"pod {name} scheduled or not", known, seconds=seconds, poll=0.01,
                        explain=lambda: self.describe(name))[0]

    def wait_bound(self, name, seconds=30):
        return wait_for(f"pod {name} bound", lambda: self._verdict(self.pod(name)), seconds=seconds, poll=0.01,
                        explain=lambda: self.describe(name))

    def allocated(self):
        """Claim -> devices, of the claims that are allocated."""
        return {item["metadata"]["name"]: [result["device"] for result in
                                           item["status"]["allocation"]["devices"]["results"]]
                for item in self.api.get(self.claims)["items"] if item.get("status", {}).get("allocation")}

    def remove(self, *names):
        """Deletes pods and their claims of the same names, and waits until the devices are free."""
        for name in names:
            self.api.delete(f"{self.path}/pods/{name}", grace_seconds=0)
            self.api.delete(f"{self.claims}/{name}")
        def left():
            return {item["metadata"]["name"] for item in self.api.get(self.claims)["items"]} & set(names)
        wait_for(f"claims of {self.name} gone", lambda: not left(), seconds=60, explain=lambda: sorted(left()))

    def close(self, seconds=300):
        self.api.delete(f"{self.path}/pods", grace_seconds=0)
        self.api.delete(self.claims)
        wait_for(f"claims of {self.name} gone", lambda: not self.api.get(self.claims)["items"], seconds=seconds)
        self.api.delete(f"/api/v1/namespaces/{self.name}")
