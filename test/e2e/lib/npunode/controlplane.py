"""Starts the node's programs with their configuration: etcd to kubelet."""

import json
import os

from npunode.api import Api
from npunode.pki import Pki
from npunode.services import Services
from npunode.steps import NodeError, run

POD_NETWORK = "10.201.0.0/24"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "docker.io/local/pause:1"
# The default of 50 (20 for the controllers) is for clusters where many share the API server; a case with hundreds
# of pods would only measure that.
REQUESTS_PER_SECOND = 1000


class Node:
    """Paths are below `work`; `programs` lists the directories of the binaries."""

    IP = "10.200.0.1"

    def __init__(self, work, programs, name, cgroup):
        self.work, self.name, self.cgroup = work, name, cgroup
        self._programs = programs
        self.services = Services(work)
        self._pki = None
        self.kubeconfig = None
        self.api = None

    def start(self, images):
        """Everything up to a Ready node; `images` are OCI tars to import meanwhile."""
        self._start_containerd()
        self._make_certificates()
        self._start_etcd()
        self._start_api_server()
        self._import(images)
        self._wait_api_server()
        self._start_controllers()
        self._start_kubelet()
        self.services.wait("kubelet", f"node {self.name} Ready", self._ready)
        self.services.wait("kube-controller-manager", "ServiceAccount default exists",
                           lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default"))

    def program(self, name):
        for folder in self._programs:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK):
                return path
        raise NodeError(f"{name} is not in {', '.join(self._programs)}: run test/e2e/programs/build.sh")

    def _config(self, name, text):
        path = os.path.join(self.work, "config", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text, indent=1))
        return path

    def _start_containerd(self):
        cni = os.path.join(self.work, "config", "cni")
        self._config("cni/10-bridge.conflist", {
            "cniVersion": "1.0.0", "name": "e2e", "plugins": [{
                "type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]],
                         "routes": [{"dst": "0.0.0.0/0"}]}}]})
        config = self._config("containerd.toml", f"""\
version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
[grpc]
  address = '{CONTAINERD_SOCKET}'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{PAUSE_IMAGE}'
[plugins.'io.containerd.cri.v1.runtime']
  # Lowering oom_score_adj needs CAP_SYS_RESOURCE, which build machines lack.
  restrict_oom_score_adj = true
  disable_apparmor = true
  cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{os.path.dirname(self.program("bridge"))}']
    conf_dir = '{cni}'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = 'runc'
""")
        self.services.start("containerd", self.program("containerd"), "--config", config)

    def _make_certificates(self):
        self._pki = Pki(os.path.join(self.work, "pki"), f"https://{self.IP}:6443")
        names = f"DNS:kubernetes,DNS:kubernetes.default.svc,IP:10.0.0.1,IP:{self.IP},IP:127.0.0.1"
        self._pki.issue("kube-apiserver", "/CN=kube-apiserver", names)
        self._pki.issue("kube-apiserver-kubelet", "/CN=kube-apiserver-kubelet")
        self._pki.issue("admin", "/O=system:masters/CN=admin")
        for name in ("kube-controller-manager", "kube-scheduler"):
            self._pki.issue(name, f"/CN=system:{name}")
        self._pki.issue("kubelet", f"/O=system:nodes/CN=system:node:{self.name}", f"DNS:{self.name},IP:{self.IP}")
        self.kubeconfig = self._pki.kubeconfig("admin")
        self.api = Api(self.kubeconfig)

    def _start_etcd(self):
        self.services.start("etcd", self.program("etcd"), "--data-dir", os.path.join(self.work, "etcd"),
                            "--unsafe-no-fsync", "--log-level=warn",
                            "--listen-client-urls=http://127.0.0.1:2379",
                            "--advertise-client-urls=http://127.0.0.1:2379",
                            "--listen-peer-urls=http://127.0.0.1:2380")

    def _start_api_server(self):
        pki = self._pki.path
        self.services.start(
            "kube-apiserver", self.program("kube-apiserver"),
            "--etcd-servers=http://127.0.0.1:2379", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", f"--client-ca-file={pki('ca.crt')}",
            f"--tls-cert-file={pki('kube-apiserver.crt')}", f"--tls-private-key-file={pki('kube-apiserver.key')}",
            f"--kubelet-client-certificate={pki('kube-apiserver-kubelet.crt')}",
            f"--kubelet-client-key={pki('kube-apiserver-kubelet.key')}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki('service-account.pub')}",
            f"--service-account-signing-key-file={pki('service-account.key')}",
            "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true",
            f"--advertise-address={self.IP}", "--secure-port=6443")

    def _import(self, images):
        ctr = (self.program("ctr"), "--address", CONTAINERD_SOCKET)
        self.services.wait("containerd", "containerd answers", lambda: os.path.exists(CONTAINERD_SOCKET))
        for image in images:
            run(*ctr, "--namespace", "k8s.io", "images", "import", "--local", image)

    def _wait_api_server(self):
        def ready():
            try:
                return self.api.text("/readyz") == "ok"
            except Exception:  # refused connections, then 403 and 500 until the server is up
                return False
        self.services.wait("kube-apiserver", "API server ready", ready)
        self.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "e2e-kubelet-api"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "system:kubelet-api-admin"},
            "subjects": [{"kind": "User", "name": "kube-apiserver-kubelet"}]})

    def _start_controllers(self):
        pki = self._pki.path
        config = self._pki.kubeconfig("kube-controller-manager")
        self.services.start(
            "kube-controller-manager", self.program("kube-controller-manager"), f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            f"--service-account-private-key-file={pki('service-account.key')}", f"--root-ca-file={pki('ca.crt')}",
            "--use-service-account-credentials", "--leader-elect=false",
            f"--cluster-signing-cert-file={pki('ca.crt')}", f"--cluster-signing-key-file={pki('ca.key')}",
            f"--kube-api-qps={REQUESTS_PER_SECOND}", f"--kube-api-burst={REQUESTS_PER_SECOND}")
        config = self._pki.kubeconfig("kube-scheduler")
        scheduler = self._config("scheduler.json", {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": config, "qps": REQUESTS_PER_SECOND, "burst": REQUESTS_PER_SECOND},
            "leaderElection": {"leaderElect": False}})
        self.services.start("kube-scheduler", self.program("kube-scheduler"), f"--config={scheduler}",
                            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}")

    def _start_kubelet(self):
        pki = self._pki.path
        config = self._config("kubelet.json", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "failCgroupV1": False, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup}",
            "failSwapOn": False, "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "oomScoreAdj": 0, "maxOpenFiles": 20000, "makeIPTablesUtilChains": False,
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0.1%", "imagefs.available": "0.1%"},
            "imageGCHighThresholdPercent": 100, "readOnlyPort": 0,
            "authentication": {"x509": {"clientCAFile": pki("ca.crt")}, "webhook": {"enabled": True},
                               "anonymous": {"enabled": False}},
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": pki("kubelet.crt"), "tlsPrivateKeyFile": pki("kubelet.key"),
            "resolvConf": "", "enforceNodeAllocatable": [], "syncFrequency": "10s",
            "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
            "volumePluginDir": "/var/lib/kubelet/volume-plugins"})
        self.services.start("kubelet", self.program("kubelet"), f"--kubeconfig={self._pki.kubeconfig('kubelet')}",
                            f"--config={config}", f"--hostname-override={self.name}", f"--node-ip={self.IP}")

    def _ready(self):
        node = self.api.get(f"/api/v1/nodes/{self.name}")
        conditions = node["status"].get("conditions", []) if node else []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
