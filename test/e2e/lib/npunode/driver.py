"""The driver on the node: its image, its mock NPUs, its deployment."""

import glob
import json
import os
import re
import subprocess

from npunode.steps import NodeError, run, tail, wait_for

REPOSITORY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../.."))
MANIFEST = os.path.join(REPOSITORY, "deploy/manifests/ascend-dra.yaml")
MOCK_PATCH = os.path.join(REPOSITORY, "deploy/manifests/mock-patch.yaml")
NAMESPACE, DAEMONSET = "ascend-dra-system", "ascend-dra"
DAEMONSET_PATH = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{DAEMONSET}"
SLICES_PATH = "/apis/resource.k8s.io/v1/resourceslices"
CONFIG_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{DAEMONSET}"
MOCK_NODE = "/etc/ascend-dra/mock-node"
_PROGRAMS = ("ascend-npu-agent", "ascend-dra-kubeletplugin", "ascend-dra", "ascend-mock-node", "ascend_mock_dcmi")


def build_programs():
    """Builds what ships, if it is not up to date; the build directory."""
    def cmake(*arguments):
        done = subprocess.run(["cmake", *arguments], cwd=REPOSITORY, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise NodeError(f"building the driver failed: cmake {' '.join(arguments)}\n" + done.stdout[-4000:])
    cmake("--preset", "release")
    cmake("--build", "--preset", "release", "--target", *_PROGRAMS)
    return os.path.join(REPOSITORY, "build/release")


def build_image(build, work, make_image):
    """Installs the build and packs it under the image name of the manifest; the path of the tar."""
    if not os.path.exists(os.path.join(build, "cmake_install.cmake")):
        raise NodeError(f"--build {build}: not a CMake build directory")
    with open(MANIFEST) as file:
        name = re.search(r"image: (\S+)", file.read())[1]
    tree, output = installed(work), os.path.join(work, "ascend-dra.tar")
    # Not the CDI library, which is a package of its own.
    run("cmake", "--install", build, "--component", "driver", "--prefix", tree, "--strip")
    make_image("--name", name, "--tree", f"{tree}:/usr", "--busybox", "--output", output)
    return output


def installed(work):
    return os.path.join(work, "install")


def create_mock_node(work, chips):
    """Puts the mock's devices, driver files and node description where a real node has its own."""
    run(_mock_tool(work), "create", "--node", chips, "--root", "/")


def _mock_tool(work):
    return os.path.join(installed(work), "bin/ascend-mock-node")


def start_kernel(node):
    """Stands for the kernel driver: makes and removes the device nodes of vNPUs."""
    node.services.start("mock-kernel", _mock_tool(node.work), "kernel", "--node-dir", MOCK_NODE, "--root", "/")

    def ready():
        with open(node.services.log("mock-kernel")) as log:
            return "ready" in log.read().split()
    node.services.wait("mock-kernel", "the mock's kernel is ready", ready)


def configure(api, **settings):
    """Replaces the DriverConfig; a driver reads it when it starts."""
    config = {"apiVersion": "npu.huawei.com/v1alpha1", "kind": "DriverConfig", **settings}
    api.merge(CONFIG_PATH, {"data": {"config.yaml": json.dumps(config)}})


def deploy(node, chips, vnpu_mode="off"):
    """From a bare node to a ready driver; sets E2E_MOCK for the command."""
    create_mock_node(node.work, chips)
    start_kernel(node)
    os.environ["E2E_MOCK"] = MOCK_NODE
    os.environ["PATH"] = f"{installed(node.work)}/bin:{os.environ['PATH']}"
    install(node.api, node.name, vnpu_mode)


def install(api, node_name, vnpu_mode="off"):
    """Applies the manifests as an operator would, and waits for the driver's slices."""
    run("kubectl", "apply", "-f", MANIFEST)
    run("kubectl", "--namespace", NAMESPACE, "patch", "daemonset", DAEMONSET, "--patch-file", MOCK_PATCH)
    if vnpu_mode != "off":
        # Nodes come with recovery on, which parts made on demand must not have.
        configure(api, vnpuMode=vnpu_mode, vnpuChangeNodeModes=True)
    run("kubectl", "label", "--overwrite", "node", node_name, "accelerator=huawei-npu")
    wait_for("driver ready (DaemonSet ready, ResourceSlice published)",
             lambda: daemonset_ready(api) and slices(api) and (vnpu_mode != "dynamic" or _divided(api)), seconds=60,
             explain=_why)


def _divided(api):
    """Whether parts of chips are offered."""
    return any(device["attributes"].get("template") for item in slices(api)
               for device in item["spec"].get("devices", []))


def daemonset_ready(api):
    """All pods are of the newest template and ready."""
    daemonset = api.get(DAEMONSET_PATH)
    status = daemonset["status"]
    wanted = status.get("desiredNumberScheduled", 0)
    return (status.get("observedGeneration") == daemonset["metadata"]["generation"] and wanted > 0
            and status.get("updatedNumberScheduled") == status.get("numberReady") == wanted
            == status.get("currentNumberScheduled"))


def slices(api):
    return [item for item in api.get(SLICES_PATH)["items"] if item["spec"]["driver"] == "npu.huawei.com"]


def _why():
    parts = [run("kubectl", "--namespace", NAMESPACE, "get", "events")]
    for log in sorted(glob.glob(f"/var/log/pods/{NAMESPACE}_*/*/*.log")):
        parts.append(f"tail of {log}:\n{tail(log)}")
    return "\n".join(parts)
