"""Certificates and kubeconfigs of the node, made by openssl."""

import json
import os

from npunode.steps import run


class Pki:
    def __init__(self, folder, server):
        self.folder = folder
        self.server = server
        os.makedirs(folder)
        self._key("ca")
        run("openssl", "req", "-x509", "-new", "-key", self.path("ca.key"), "-subj", "/CN=e2e-ca", "-days", "2",
            "-out", self.path("ca.crt"))
        self._key("service-account")
        run("openssl", "pkey", "-in", self.path("service-account.key"), "-pubout",
            "-out", self.path("service-account.pub"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, name, subject, alternative_names=""):
        """A certificate for client and server use: name.key and name.crt."""
        self._key(name)
        run("openssl", "req", "-new", "-key", self.path(f"{name}.key"), "-subj", subject,
            "-out", self.path(f"{name}.csr"))
        extensions = self.path(f"{name}.ext")
        with open(extensions, "w") as file:
            file.write("extendedKeyUsage=serverAuth,clientAuth\n")
            if alternative_names:
                file.write(f"subjectAltName={alternative_names}\n")
        run("openssl", "x509", "-req", "-in", self.path(f"{name}.csr"), "-CA", self.path("ca.crt"),
            "-CAkey", self.path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", extensions,
            "-out", self.path(f"{name}.crt"))

    def kubeconfig(self, name):
        """Writes name.kubeconfig for an issued certificate (JSON is YAML) and returns its path."""
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": {"server": self.server,
                                                     "certificate-authority": self.path("ca.crt")}}],
            "users": [{"name": name, "user": {"client-certificate": self.path(f"{name}.crt"),
                                              "client-key": self.path(f"{name}.key")}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}]}
        path = self.path(f"{name}.kubeconfig")
        with open(path, "w") as file:
            json.dump(config, file)
        return path

    def _key(self, name):
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", self.path(f"{name}.key"))
