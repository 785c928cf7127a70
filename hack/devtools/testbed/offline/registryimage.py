"""The registry's image, made of Debian's package."""

from __future__ import annotations

import hashlib
import json

from devtools.testbed.base import shell
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.settings import Settings
from devtools.testbed.offline import packages

PACKAGES = ("docker-registry", "libc6")
PROGRAM = "docker-registry"
UNUSED = ("./usr/share/doc", "./usr/share/man", "./etc/init.d")


def name() -> str:
    host = packages.distribution()
    key = hashlib.sha256(" ".join((host.id, host.version, *PACKAGES)).encode()).hexdigest()[:12]
    return f"dljob/registry:{key}"


def load(settings: Settings, engine: Engine) -> None:
    """Make the image in the engine."""
    tree = packages.unpack(settings.cache_dir, "registry", PACKAGES, with_dependencies=False)
    pack = ["tar", "-C", str(tree), "--owner=0", "--group=0", *(f"--exclude={path}" for path in UNUSED), "-c", "."]
    entrypoint = json.dumps([f"/usr/bin/{PROGRAM}", "serve"])
    into = [str(engine.docker), "import", "--change", f"ENTRYPOINT {entrypoint}", "-", name()]
    shell.pipe(pack, into, env=engine.env, producer_env={})
