"""The registry's image, made of Debian's package."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from devtools.testbed.base import shell
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.settings import Settings
from devtools.testbed.offline import packages
from devtools.testbed.offline.imagetar import Image, existing_layer, write_archive
from devtools.testbed.offline.nodeimage import architecture

PACKAGES = ("docker-registry", "libc6")
PROGRAM = "docker-registry"
UNUSED = ("./usr/share/doc", "./usr/share/man", "./etc/init.d")


def name() -> str:
    host = packages.distribution()
    key = hashlib.sha256(" ".join((host.id, host.version, *PACKAGES)).encode()).hexdigest()[:12]
    return f"dljob/registry:{key}"


def load(settings: Settings, engine: Engine) -> None:
    """Make the image, and load it into the engine."""
    tree = packages.unpack(settings.cache_dir, "registry", PACKAGES, with_dependencies=False)
    with tempfile.TemporaryDirectory(dir=settings.cache_dir) as work:
        layer, archive = Path(work) / "layer", Path(work) / "image.tar"
        excluded = [f"--exclude={path}" for path in UNUSED]
        shell.run(["tar", "-C", tree, "--owner=0", "--group=0", *excluded, "-cf", layer, "."])
        with archive.open("wb") as stream:
            image = Image((name(),), (existing_layer(layer),), (f"/usr/bin/{PROGRAM}", "serve"))
            write_archive(stream, [image], architecture())
        engine.run("load", "-i", archive)
