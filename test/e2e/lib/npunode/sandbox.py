"""What keeps the node apart from the machine: namespaces, private directories, cgroups.

The outer process makes the cgroups and starts `unshare`; everything else happens
inside and vanishes with the namespaces."""

import ctypes
import os
import re
import signal
import stat

from npunode.steps import NodeError, run, wait_for

CGROUP_ROOT = "/sys/fs/cgroup"
# Directories the node writes to; each gets an overlay, so the machine's own stay as they are.
OVERLAID = ("/etc", "/var/lib", "/var/log", "/usr/local", "/opt")
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0),
            "kmsg": (1, 11), "fuse": (10, 229)}

UNSHARE = ("unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")


def die_with_parent():
    """For Popen(preexec_fn=): the child gets SIGKILL when this process ends, however it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Cgroups:
    """One directory of our own in every hierarchy, the only thing that outlives the namespaces."""

    PREFIX = "ascend-dra-e2e-"

    def __init__(self):
        self.name = f"{self.PREFIX}{os.getpid()}"
        self._hierarchies = [CGROUP_ROOT]
        if not os.path.exists(f"{CGROUP_ROOT}/cgroup.controllers"):
            self._hierarchies = sorted(entry.path for entry in os.scandir(CGROUP_ROOT)
                                       if entry.is_dir(follow_symlinks=False))

    def create(self):
        for hierarchy in self._hierarchies:
            self._remove_stale(hierarchy)
            folder = os.path.join(hierarchy, self.name)
            os.mkdir(folder)
            for name in ("cpuset.cpus", "cpuset.mems"):
                source = os.path.join(hierarchy, name)
                if os.path.exists(source) and os.path.exists(f"{folder}/{name}"):
                    with open(source) as parent, open(f"{folder}/{name}", "w") as child:
                        child.write(parent.read())

    def remove(self):
        for hierarchy in self._hierarchies:
            self._remove_tree(os.path.join(hierarchy, self.name))

    def _remove_stale(self, hierarchy):
        """A run that was killed could not remove its cgroups."""
        for entry in os.scandir(hierarchy):
            match = re.fullmatch(rf"{self.PREFIX}(\d+)", entry.name)
            if match and not os.path.exists(f"/proc/{match[1]}"):
                self._remove_tree(entry.path)

    def _remove_tree(self, top):
        def empty():
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    pass
                except OSError:
                    return False  # the kernel is still reaping its processes
            return True
        wait_for(f"cgroup {top} empty", empty, seconds=20)


def enter(work, node_name, node_ip):
    """Run once inside the new namespaces: private directories, /dev, network, host name."""
    run("mount", "--make-rprivate", "/")
    scratch = f"{work}/scratch"
    os.makedirs(scratch)
    _tmpfs(scratch)
    for path in OVERLAID:
        os.makedirs(path, exist_ok=True)
        upper, temporary = (f"{scratch}{path}/{kind}" for kind in ("upper", "work"))
        os.makedirs(upper)
        os.makedirs(temporary)
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={upper},workdir={temporary}", path)
    for path in ("/run", "/var/lib/kubelet", "/var/lib/containerd", "/etc/cdi"):
        os.makedirs(path, exist_ok=True)
        _tmpfs(path)
    run("mount", "--make-rshared", "/var/lib/kubelet")
    os.makedirs("/run/lock")
    os.makedirs("/run/cdi")
    _private_dev(f"{scratch}/dev")
    _network(node_name, node_ip)


def _tmpfs(path):
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path)


def _private_dev(aside):
    """Else a mknod would show up on the whole machine."""
    os.makedirs(aside)
    _tmpfs(aside)
    for name, (major, minor) in _DEVICES.items():
        os.mknod(f"{aside}/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        os.chmod(f"{aside}/{name}", 0o666)
    os.mkdir(f"{aside}/pts")
    run("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620", "devpts", f"{aside}/pts")
    os.symlink("pts/ptmx", f"{aside}/ptmx")
    os.mkdir(f"{aside}/shm")
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{aside}/shm")
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
                         ("stderr", "/proc/self/fd/2")):
        os.symlink(target, f"{aside}/{name}")
    run("mount", "--move", aside, "/dev")


def _network(node_name, node_ip):
    run("hostname", node_name)
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "node0", "type", "bridge")
    run("ip", "address", "add", f"{node_ip}/24", "dev", "node0")
    run("ip", "link", "set", "node0", "up")
    run("ip", "route", "add", "default", "via", node_ip)
    with open("/proc/sys/net/ipv4/ip_forward", "w") as file:
        file.write("1")
    # The address of the kubernetes Service: kube-proxy is not needed for one rule.
    for chain in ("PREROUTING", "OUTPUT"):
        run("iptables", "-t", "nat", "-A", chain, "-d", "10.0.0.1", "-p", "tcp", "--dport", "443",
            "-j", "DNAT", "--to-destination", f"{node_ip}:6443")


def check_machine():
    """One clear message for what the machine lacks."""
    if os.geteuid() != 0:
        raise NodeError("the node needs root: it makes namespaces, mounts and cgroups")
    packages = {"runc": "runc", "ip": "iproute2", "iptables": "iptables", "openssl": "openssl",
                "busybox": "busybox-static", "gcc": "gcc", "unshare": "util-linux", "mount": "mount",
                "hostname": "hostname"}
    path = os.environ["PATH"].split(":") + ["/usr/sbin", "/sbin"]
    missing = sorted(package for program, package in packages.items()
                     if not any(os.access(f"{folder}/{program}", os.X_OK) for folder in path))
    if missing:
        raise NodeError(f"missing programs: apt-get install --no-install-recommends {' '.join(missing)}")
