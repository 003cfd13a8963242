"""What the cases use: the running node, seen from a process inside it."""

import json
import os
import signal
import subprocess
import time

from npunode import driver
from npunode.api import Api, ApiError
from npunode.controlplane import Node
from npunode.logs import collect_logs
from npunode.steps import NodeError, run, wait_for

PLUGIN, AGENT = "ascend-dra-kubeletplugin", "ascend-npu-agent"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
PLUGIN_DIRECTORY = "/var/lib/kubelet/plugins/npu.huawei.com"


class Cluster:
    def __init__(self):
        self.work, self.node_name = os.environ["E2E_WORK"], os.environ["E2E_NODE"]
        self.image, self.mock = os.environ["E2E_IMAGE"], os.environ["E2E_MOCK"]
        self.api = Api(os.environ["KUBECONFIG"])
        self.node = Node(self.work, os.environ["E2E_PROGRAMS"].split(":"), self.node_name, os.environ["E2E_CGROUP"])
        self.node.kubeconfig = os.environ["KUBECONFIG"]
        self.services = self.node.services

    def kubectl(self, *arguments, stdin=None):
        return run("kubectl", *arguments, stdin=stdin)

    def collect_logs(self, folder):
        collect_logs(self.node, folder)

    # The driver's processes and the node's.

    def driver_pids(self, name):
        """Process ids of a driver program (PLUGIN or AGENT), oldest first."""
        pids = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/cmdline") as file:
                        command = file.read().split("\0")
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if os.path.basename(command[0]) == name and command[1:2] != ["ping"]:
                    pids.append(int(entry))
        return sorted(pids)

    def kill(self, name, signal_number=signal.SIGKILL):
        """Kills the driver program and waits until a new process of it runs and the pod is ready."""
        old = self.driver_pids(name)
        if not old:
            raise NodeError(f"{name} is not running")
        for pid in old:
            os.kill(pid, signal_number)
        wait_for(f"new {name}", lambda: set(self.driver_pids(name)) - set(old), seconds=60)

    def wait_driver_ready(self, seconds=60):
        wait_for("driver ready", lambda: driver.daemonset_ready(self.api) and self.slices(), seconds=seconds)

    def restart_kubelet(self, signal_number=signal.SIGTERM):
        self.services.restart("kubelet", signal_number)

    # Devices.

    def slices(self):
        return driver.slices(self.api)

    def devices(self):
        """Published devices by name."""
        return {device["name"]: device for item in self.slices() for device in item["spec"].get("devices", [])}

    def chip(self, physical_id, **settings):
        """Changes a chip of the mock node: present="false", health="3"."""
        for key, value in settings.items():
            run("ascend-mock-node", "chip", "--node-dir", self.mock, "--physical-id", str(physical_id),
                "--set", f"{key}={value}")

    def happens(self, *arguments):
        """To the mock node: "lose", "return", "network", "fault list", ... of ascend-mock-node."""
        return run("ascend-mock-node", *arguments, "--node-dir", self.mock)

    def bus_id(self, physical_id):
        with open(os.path.join(self.mock, "node.json")) as file:
            chips = json.load(file)["chips"]
        return next(chip["pci"]["busID"] for chip in chips if chip["physicalID"] == physical_id)

    def add_fault(self, physical_id, code, text):
        self.happens("fault", "add", "--chip", str(physical_id), "--code", code, "--severity", "critical",
                     "--text", text)

    def clear_fault(self, physical_id, code):
        self.happens("fault", "clear", "--chip", str(physical_id), "--code", code)

    def clear_faults(self):
        for fault in json.loads(self.happens("fault", "list"))["faults"]:
            self.clear_fault(fault["physicalID"], fault["code"])

    # vNPUs of the mock node, and what its library does wrong.

    def vnpus(self):
        """What is on the chips, by id."""
        listed = json.loads(run("ascend-mock-node", "vnpu", "list", "--node-dir", self.mock))["vnpus"]
        return {vnpu["id"]: vnpu for vnpu in listed}

    def admin_creates_vnpu(self, physical_id, template):
        """As an administrator does, unknown to the driver; the id."""
        return int(run("ascend-mock-node", "vnpu", "create", "--node-dir", self.mock, "--physical-id",
                       str(physical_id), "--template", template))

    def admin_destroys_vnpu(self, vnpu_id):
        run("ascend-mock-node", "vnpu", "destroy", "--node-dir", self.mock, "--id", str(vnpu_id))

    def set_vnpu(self, vnpu_id, setting):
        """busy=true, containerUsed=false, ..."""
        run("ascend-mock-node", "vnpu", "set", "--node-dir", self.mock, "--id", str(vnpu_id), setting)

    def library_call(self, function, physical_id, *behaviour):
        """Lets a function of libdcmi misbehave on one chip: --return=-8020, --hang, --crash, --after-work."""
        run("ascend-mock-node", "call", "--node-dir", self.mock, "--name", function, "--physical-id",
            str(physical_id), *behaviour)

    def library_behaves(self):
        run("ascend-mock-node", "call", "--node-dir", self.mock, "--clear")

    def set_mock(self, key, value):
        """Changes one key of the node's description; None removes it."""
        path = os.path.join(self.mock, "node.json")
        with open(path) as file:
            node = json.load(file)
        node.pop(key, None)
        if value is not None:
            node[key] = value
        with open(f"{path}.new", "w") as file:
            json.dump(node, file, indent=2)
        os.rename(f"{path}.new", path)

    def configure(self, **settings):
        """Replaces the DriverConfig and rolls the driver out with it."""
        driver.configure(self.api, **settings)
        old = set(self.driver_pids(PLUGIN))
        self.api.request("PATCH", driver.DAEMONSET_PATH, {"spec": {"template": {"metadata": {
            "annotations": {"rollout": str(time.time())}}}}}, "application/strategic-merge-patch+json")
        wait_for("rolled out", lambda: driver.daemonset_ready(self.api) and not old & set(self.driver_pids(PLUGIN)),
                 seconds=90)

    def held_claims(self):
        """UIDs of the claims the plugin has prepared."""
        try:
            return [name for name in os.listdir(f"{PLUGIN_DIRECTORY}/claims") if len(name) == 36]
        except FileNotFoundError:
            return []

    def plugin_log(self, container="plugin"):
        """What the driver's container logged, all instances of it."""
        return self.kubectl("--namespace", driver.NAMESPACE, "logs", "--selector", "app.kubernetes.io/name=ascend-dra",
                            "--container", container, "--tail=-1")

    def ascend_dra(self, *arguments):
        """Runs the command-line tool in the plugin's container, as an operator would."""
        return self.kubectl("--namespace", driver.NAMESPACE, "exec", "daemonset/ascend-dra", "--container", "plugin",
                            "--", "ascend-dra", *arguments)

    def namespace(self, name, labels=None):
        return Namespace(self, name, labels)


class Namespace:
    """A namespace of one test; close() frees every chip it used."""

    def __init__(self, cluster, name, labels):
        self.cluster, self.api, self.name = cluster, cluster.api, name
        self.path = f"/api/v1/namespaces/{name}"
        self.claims = CLAIMS.format(name)
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})
        wait_for(f"ServiceAccount default in {name}", lambda: self.api.get(f"{self.path}/serviceaccounts/default"))

    def create(self, *objects):
        paths = {"Pod": f"{self.path}/pods", "ResourceClaim": self.claims,
                 "ResourceClaimTemplate": self.claims.replace("resourceclaims", "resourceclaimtemplates"),
                 "Job": f"/apis/batch/v1/namespaces/{self.name}/jobs",
                 "PersistentVolumeClaim": f"{self.path}/persistentvolumeclaims"}
        return [self.api.create(paths[item["kind"]], item) for item in objects]

    def pod(self, name):
        return self.api.get(f"{self.path}/pods/{name}")

    def claim(self, name):
        return self.api.get(f"{self.claims}/{name}")

    def wait_pod(self, name, phase="Running", seconds=90):
        """Waits for a phase; a Running pod has all containers ready."""
        def reached():
            pod = self.pod(name)
            status = pod["status"] if pod else {}
            if status.get("phase") == "Failed" and phase != "Failed":
                raise NodeError(f"pod {name} failed\n{self.describe(name)}")
            if status.get("phase") != phase:
                return None
            if phase == "Running" and not all(c["ready"] for c in status.get("containerStatuses", [])):
                return None
            return pod
        return wait_for(f"pod {name} {phase}", reached, seconds=seconds, explain=lambda: self.describe(name))

    def run_pod(self, *objects, phase="Succeeded", container=None):
        """Creates the objects, the last one a pod, waits for its end and returns what it printed."""
        name = self.create(*objects)[-1]["metadata"]["name"]
        self.wait_pod(name, phase)
        return self.logs(name, container)

    def logs(self, name, container=None):
        """What the pod printed; of a running pod at least its first line, which may come after it counts as ready."""
        query = f"?container={container}" if container else ""

        def printed():
            running = self.pod(name)["status"].get("phase") == "Running"
            text = self.api.text(f"{self.path}/pods/{name}/log{query}")
            return (text,) if text or not running else None
        try:
            return wait_for(f"pod {name} prints", printed, seconds=20)[0]
        except NodeError:
            return ""

    def exec(self, name, script, container=None):
        options = ("--container", container) if container else ()
        return self.cluster.kubectl("--namespace", self.name, "exec", name, *options, "--", "sh", "-c", script)

    def messages(self, name):
        """The pod's events as one text: type reason: message."""
        items = self.api.get(f"{self.path}/events?fieldSelector=involvedObject.name={name}")["items"]
        return "\n".join(f"{item['type']} {item['reason']}: {item['message']}" for item in items)

    def wait_message(self, name, *words, seconds=100):
        """Waits for an event of the pod that has all the words, and returns that line."""
        def found():
            lines = self.messages(name).splitlines()
            return next((line for line in lines if all(word in line for word in words)), None)
        return wait_for(f"event of pod {name} with {words}", found, seconds=seconds,
                        explain=lambda: self.describe(name))

    def delete_pod(self, name, seconds=90):
        self.api.delete(f"{self.path}/pods/{name}")
        self.wait_gone(name, seconds)

    def wait_gone(self, name, seconds=90):
        wait_for(f"pod {name} gone", lambda: self.pod(name) is None, seconds=seconds,
                 explain=lambda: self.describe(name))

    def describe(self, name):
        done = subprocess.run(["kubectl", "--namespace", self.name, "describe", "pod", name], capture_output=True,
                              text=True)
        return done.stdout + done.stderr

    def close(self, seconds=90):
        """Deletes pods and claims, waits until no chip is held by them, then drops the namespace."""
        self.api.delete(f"/apis/batch/v1/namespaces/{self.name}/jobs?propagationPolicy=Background")
        self.api.delete(f"{self.path}/pods", grace_seconds=1)
        wait_for(f"pods of {self.name} gone", lambda: not self.api.get(f"{self.path}/pods")["items"], seconds=seconds)
        uids = {claim["metadata"]["uid"] for claim in self.api.get(self.claims)["items"]}
        self.api.delete(self.claims)
        wait_for(f"claims of {self.name} unprepared", lambda: not uids & set(self.cluster.held_claims()),
                 seconds=seconds)
        wait_for(f"claims of {self.name} gone", lambda: not self.api.get(self.claims)["items"], seconds=seconds)
        self.api.delete(f"/api/v1/namespaces/{self.name}")


def seconds_until(condition, what, seconds=30, poll=0.01):
    """How long a condition takes to become true, in seconds."""
    start = time.monotonic()
    wait_for(what, condition, seconds=seconds, poll=poll)
    return time.monotonic() - start


__all__ = ["AGENT", "ApiError", "Cluster", "Namespace", "NodeError", "PLUGIN", "PLUGIN_DIRECTORY", "seconds_until",
           "wait_for"]
