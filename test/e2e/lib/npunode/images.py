"""The images of a run, built without a container engine."""

import hashlib
import os
import subprocess
import sys

from npunode import driver
from npunode.steps import NodeError, run

PAUSE = "docker.io/local/pause:1"
WORKLOAD = "docker.io/local/e2e-workload:1"
IMAGE_SOURCES = os.path.join(driver.REPOSITORY, "deploy/image")
BUILDER = os.path.join(IMAGE_SOURCES, "build-image.py")


def build(options, work):
    """Paths of the image tars the node has to import."""
    folder = os.path.join(_cache(), f"images-{_sources_hash()}")
    paths = [os.path.join(folder, name) for name in ("pause.tar", "workload.tar")]
    if not all(os.path.exists(path) for path in paths):
        os.makedirs(folder, exist_ok=True)
        pause = os.path.join(work, "pause")
        run("gcc", "-O2", "-static", "-s", "-o", pause, os.path.join(IMAGE_SOURCES, "pause.c"))
        make("--name", PAUSE, "--file", f"{pause}:/pause", "--entrypoint", "/pause", "--output", paths[0])
        make("--name", WORKLOAD, "--busybox", "--output", paths[1])
    if not options.no_driver:
        paths.append(driver.build_image(options.build or driver.build_programs(), work, make))
    return paths


def make(*arguments):
    done = subprocess.run([sys.executable, BUILDER, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise NodeError(done.stderr.strip())


def _cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("ASCEND_DRA_CACHE") or os.path.join(base, "ascend-dra")


def _sources_hash():
    digest = hashlib.sha256()
    for name in sorted(os.listdir(IMAGE_SOURCES)):
        path = os.path.join(IMAGE_SOURCES, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()[:12]
