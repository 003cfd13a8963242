"""What a person wants to see after a failure, beside the logs of the programs."""

import os
import shutil
import subprocess

_QUERIES = {
    "pods.yaml": ("get", "pods", "-A", "-o", "yaml"),
    "events.txt": ("get", "events", "-A", "--sort-by=.lastTimestamp"),
    "slices.yaml": ("get", "resourceslices", "-o", "yaml"),
    "claims.yaml": ("get", "resourceclaims", "-A", "-o", "yaml"),
    "describe-pods.txt": ("describe", "pods", "-A"),
}


def collect_logs(node, into=None):
    """Copies container logs, CDI files and the state of the cluster into the log directory."""
    folder = into or node.services.logs
    os.makedirs(folder, exist_ok=True)
    for source, name in (("/var/log/pods", "containers"), ("/run/cdi", "cdi")):
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(folder, name), dirs_exist_ok=True)
    if node.kubeconfig is None or not node.services.alive("kube-apiserver"):
        return
    for name, query in _QUERIES.items():
        with open(os.path.join(folder, name), "w") as file:
            subprocess.run([node.program("kubectl"), "--kubeconfig", node.kubeconfig, "--request-timeout=5s", *query],
                           stdout=file, stderr=subprocess.STDOUT)
