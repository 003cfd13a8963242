#!/usr/bin/python3
"""Makes a container image without a container engine: an OCI layout in a tar.

The image holds the given trees and files, every shared object their programs
need, the dynamic loader, and (with --busybox) busybox with its applets. It has
no package manager and no distribution. The same input gives the same bytes.

  build-image.py --name docker.io/local/ascend-dra:dev --tree PREFIX:/usr \\
                 --busybox --output ascend-dra.tar
  ctr -n k8s.io images import ascend-dra.tar
"""

import argparse
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile

import elf

DIRECTORIES = {"etc": 0o755, "dev": 0o755, "proc": 0o755, "sys": 0o755, "run": 0o755, "root": 0o700, "tmp": 0o1777,
               "usr": 0o755, "usr/bin": 0o755, "usr/sbin": 0o755, "usr/lib": 0o755, "usr/lib64": 0o755,
               "var": 0o755}
# libdcmi keeps the vNPUs of the host in /etc/vnpu.cfg: it must be the host's file, not one of the container's.
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "../run",
         "etc/vnpu.cfg": "../host/etc/vnpu.cfg"}
TEXTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n",
         "etc/group": "root:x:0:\nnonroot:x:65532:\n",
         "etc/nsswitch.conf": "hosts: files dns\n"}


class ImageError(Exception):
    pass


class Root:
    """The files of the image: path in the image (no leading /) to its content."""

    def __init__(self):
        self.directories = dict(DIRECTORIES)
        self.links = dict(LINKS)
        self.files = {}  # path: (path on this machine or bytes, mode)
        self.machine = None
        for path, text in TEXTS.items():
            self.files[path] = (text.encode(), 0o644)

    def canonical(self, path):
        """/lib/x -> usr/lib/x: the path with the top-level links of the image followed."""
        first, _, rest = os.path.normpath(path).lstrip("/").partition("/")
        return os.path.join(self.links.get(first, first), rest) if rest else first

    def add_file(self, source, path, mode=None):
        path = self.canonical(path)
        if mode is None:
            mode = 0o755 if os.stat(source).st_mode & stat.S_IXUSR else 0o644
        self.files[path] = (source, mode)
        self.add_directory(os.path.dirname(path))

    def add_directory(self, path):
        while path and path not in self.directories:
            self.directories[path] = 0o755
            path = os.path.dirname(path)

    def add_tree(self, source, path):
        if not os.path.isdir(source):
            raise ImageError(f"{source} is not a directory: run cmake --install first")
        for folder, subfolders, names in os.walk(source):
            subfolders.sort()
            for name in sorted(names):
                full = os.path.join(folder, name)
                target = os.path.join(path, os.path.relpath(full, source))
                if os.path.islink(full) and not os.path.isabs(os.readlink(full)):
                    self.links[self.canonical(target)] = os.readlink(full)
                    self.add_directory(os.path.dirname(self.canonical(target)))
                else:
                    self.add_file(full, target)

    def add_busybox(self, busybox):
        applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
        self.add_file(busybox, "/bin/busybox", 0o755)
        for applet in applets:
            if applet != "busybox" and f"usr/bin/{applet}" not in self.files:
                self.links[f"usr/bin/{applet}"] = "busybox"

    def add_shared_objects(self):
        """Adds what the ELF files need until nothing is missing."""
        queue = sorted(self.files)
        seen = set(queue)
        while queue:
            path = queue.pop()
            source = self.files[path][0]
            facts = elf.read(source) if isinstance(source, str) else None
            if facts is None:
                continue
            if self.machine not in (None, facts.machine):
                raise ImageError(f"{source} is for another architecture than the rest of the image")
            self.machine = facts.machine
            for added in self._resolve(path, source, facts):
                if added not in seen:
                    seen.add(added)
                    queue.append(added)

    def _resolve(self, path, source, facts):
        if facts.machine not in elf.TRIPLETS:
            raise ImageError(f"{source}: unknown architecture {facts.machine}")
        triplet = elf.TRIPLETS[facts.machine]
        if facts.interpreter:
            yield self._add_system(facts.interpreter, os.path.dirname(facts.interpreter), triplet, source)
        origin = "/" + os.path.dirname(path)
        own = [self.canonical(s.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)) for s in facts.search if s]
        default = [f"usr/lib/{triplet}", "usr/lib", "usr/lib64"]
        for name in facts.needed:
            present = [d for d in own + default if f"{d}/{name}" in self.files or f"{d}/{name}" in self.links]
            if not present:
                yield self._add_system(name, f"/usr/lib/{triplet}", triplet, source)

    def _add_system(self, name, target, triplet, wanted_by):
        name = os.path.basename(name)
        for folder in (f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib64", f"/usr/{triplet}/lib", "/usr/local/lib",
                       "/usr/lib", "/lib"):
            candidate = os.path.join(folder, name)
            if os.path.exists(candidate):
                path = self.canonical(os.path.join(target, name))
                self.add_file(os.path.realpath(candidate), path, 0o755)
                return path
        raise ImageError(f"{wanted_by} needs {name}, which is neither in the image nor on this machine")

    def layer(self):
        """The bytes of the one layer: sorted, owned by root, no times."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in sorted(self.directories):
                tar.addfile(_entry(path, tarfile.DIRTYPE, self.directories[path]))
            for path in sorted(self.links):
                entry = _entry(path, tarfile.SYMTYPE, 0o777)
                entry.linkname = self.links[path]
                tar.addfile(entry)
            for path in sorted(self.files):
                source, mode = self.files[path]
                content = source
                if isinstance(source, str):
                    with open(source, "rb") as file:
                        content = file.read()
                entry = _entry(path, tarfile.REGTYPE, mode)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()


def _entry(path, kind, mode):
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.mtime = kind, mode, 0
    return entry


def write_image(root, name, entrypoint, output):
    layer = root.layer()
    layer_digest = hashlib.sha256(layer).hexdigest()
    architecture = elf.ARCHITECTURES.get(root.machine, "amd64")
    blobs = {}

    def blob(content, media_type):
        if not isinstance(content, bytes):
            content = json.dumps(content, sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    config = blob({"architecture": architecture, "os": "linux",
                   "config": {"Env": ["PATH=/usr/bin:/usr/sbin"], "Entrypoint": entrypoint or None, "WorkingDir": "/"},
                   "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]}},
                  "application/vnd.oci.image.config.v1+json")
    manifest = blob({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                     "layers": [blob(layer, "application/vnd.oci.image.layer.v1.tar")]},
                    "application/vnd.oci.image.manifest.v1+json")
    manifest["annotations"] = {"io.containerd.image.name": name,
                               "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}
    members = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
    members.update({f"blobs/sha256/{digest}": content for digest, content in blobs.items()})
    partial = f"{output}.part"
    with tarfile.open(partial, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in ("blobs", "blobs/sha256"):
            tar.addfile(_entry(path, tarfile.DIRTYPE, 0o755))
        for path in sorted(members):
            entry = _entry(path, tarfile.REGTYPE, 0o644)
            entry.size = len(members[path])
            tar.addfile(entry, io.BytesIO(members[path]))
    os.replace(partial, output)


def pair(text):
    source, separator, target = text.rpartition(":")
    if not separator or not target.startswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} is not SOURCE:/PATH/IN/IMAGE")
    return source, target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="full image name, such as docker.io/local/ascend-dra:dev")
    parser.add_argument("--output", required=True, help="the tar to write")
    parser.add_argument("--tree", type=pair, action="append", default=[], metavar="DIR:/PATH")
    parser.add_argument("--file", type=pair, action="append", default=[], metavar="FILE:/PATH")
    parser.add_argument("--busybox", action="store_true", help="add busybox as /bin/sh and the usual small tools")
    parser.add_argument("--busybox-path", default="/usr/bin/busybox", help="a static busybox (busybox-static)")
    parser.add_argument("--entrypoint", action="append", default=[])
    options = parser.parse_args()
    root = Root()
    try:
        for source, target in options.tree:
            root.add_tree(source, target)
        for source, target in options.file:
            root.add_file(source, target)
        if options.busybox:
            if not os.path.exists(options.busybox_path):
                raise ImageError(f"{options.busybox_path} is missing: apt-get install busybox-static")
            root.add_busybox(options.busybox_path)
        root.add_shared_objects()
        write_image(root, options.name, options.entrypoint, options.output)
    except (ImageError, OSError, ValueError) as error:
        sys.exit(f"build-image.py: {error}")
    print(f"{options.name}: {len(root.files)} files, {os.path.getsize(options.output) >> 20} MiB in {options.output}")


if __name__ == "__main__":
    main()
