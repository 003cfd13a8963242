"""Command line of node.sh: the part outside the namespaces, and the part that runs inside."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from npunode import driver, images, sandbox
from npunode.controlplane import Node
from npunode.logs import collect_logs
from npunode.steps import NodeError, run

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.normpath(os.path.join(HERE, "../../programs/build.sh"))
NODE_NAME = "npu-node-1"
USAGE = """node.sh run [OPTIONS] -- COMMAND...
       node.sh shell [OPTIONS]

Brings up a real one-node Kubernetes with a mock NPU node and the driver, all in
namespaces of its own, and runs COMMAND (or a shell) there. Its exit status is
COMMAND's; nothing stays behind but the log directory named after a failure.

COMMAND finds: KUBECONFIG, kubectl and the node's programs in PATH, E2E_IMAGE (an
image with a shell and small tools), E2E_NODE (the node's name), E2E_WORK (files of
this run), E2E_MOCK (the live mock node; edit it to break chips)."""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="node.sh", usage=USAGE)
    parser.add_argument("action", choices=("run", "shell"), help=argparse.SUPPRESS)
    parser.add_argument("--chips", default="8x910B3", help="mock node: 8x910B3 (default), 16xA3, ...")
    parser.add_argument("--vnpu-mode", choices=("off", "static", "dynamic"), default="off",
                        help="how the driver divides chips (default off)")
    parser.add_argument("--no-driver", action="store_true", help="the bare node, without the driver")
    parser.add_argument("--build", help="build directory to install the driver from (default: build/release, "
                                        "brought up to date first)")
    parser.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    own, command = arguments, []
    if "--" in arguments:
        split = arguments.index("--")
        own, command = arguments[:split], arguments[split + 1:]
    options = parser.parse_args(own)
    if options.command:
        parser.error(f"unexpected {options.command[0]!r}: the command goes after --")
    options.command = command
    if options.action == "run" and not command:
        parser.error("run needs a command after --")
    if options.action == "shell":
        options.command = [os.environ.get("SHELL", "/bin/bash")]
    return options


def outside(options):
    sandbox.check_machine()
    programs = run(PROGRAMS).strip()
    work = tempfile.mkdtemp(prefix="ascend-dra-e2e.")
    cgroups = sandbox.Cgroups()
    status = 1
    try:
        paths = images.build(options, work)
        cgroups.create()
        environment = {**os.environ, "E2E_WORK": work, "E2E_NODE": NODE_NAME, "E2E_PROGRAMS": programs,
                       "E2E_CGROUP": cgroups.name, "E2E_IMAGES": ":".join(paths)}
        child = subprocess.Popen([*sandbox.UNSHARE, sys.executable, "-m", "npunode", "--inside", *sys.argv[1:]],
                                 env=environment, preexec_fn=sandbox.die_with_parent)
        # Ctrl-C reaches the command by itself; this process only waits. unshare blocks SIGTERM.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: child.kill())
        status = child.wait()
    finally:
        cgroups.remove()
        logs = os.path.join(work, "logs")
        if status and os.path.isdir(logs):
            kept = tempfile.mkdtemp(prefix="ascend-dra-e2e-logs.")
            shutil.copytree(logs, kept, dirs_exist_ok=True)
            print(f"node.sh: logs are in {kept}", file=sys.stderr)
        shutil.rmtree(work, ignore_errors=True)
    return status if status >= 0 else 128 - status


def inside(options):
    """Process 1 of the namespace: reaps orphans, ends with the child's status, and all others with it."""
    child = os.fork()
    if child == 0:
        os._exit(_guarded(options))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) % 256


def _guarded(options):
    try:
        return node(options)
    except (NodeError, OSError) as error:
        print(f"node.sh: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def node(options):
    work, name, programs = (os.environ[f"E2E_{key}"] for key in ("WORK", "NODE", "PROGRAMS"))
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"
    # Not the machine's: what tools cache belongs to this run, and no proxy leads to this node.
    os.environ["KUBECACHEDIR"] = os.path.join(work, "kubectl-cache")
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        os.environ.pop(variable, None)
    kubernetes = Node(work, programs.split(":"), name, os.environ["E2E_CGROUP"])
    sandbox.enter(work, name, kubernetes.IP)
    status = 1
    try:
        kubernetes.start(os.environ["E2E_IMAGES"].split(":"))
        os.environ.update(KUBECONFIG=kubernetes.kubeconfig, E2E_IMAGE=images.WORKLOAD)
        if not options.no_driver:
            driver.deploy(kubernetes, options.chips, options.vnpu_mode)
        status = subprocess.run(options.command).returncode
    finally:
        if status:
            collect_logs(kubernetes)
    return status if status >= 0 else 128 - status


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        return inside(parse(arguments[1:]))
    try:
        return outside(parse(arguments))
    except NodeError as error:
        sys.exit(f"node.sh: {error}")


sys.exit(main())
