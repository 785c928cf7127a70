"""Base images: pulled where that is possible, else made from Debian's packages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from devtools.build.images.definition import Base, Debian
from devtools.build.images.errors import ImagesError
from devtools.testbed.base import shell
from devtools.testbed.base.cache import content_key
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.progress import Reporter
from devtools.testbed.offline import packages
from devtools.testbed.offline.imagetar import DEFAULT_PATH

PULL_TIMEOUT = 300.0


def local_name(base: Base) -> str:
    """What the base made from Debian is called in Docker."""
    debian = _debian(base)
    key = content_key(debian.release, *debian.packages, debian.setup, os.uname().machine, trees=[Path(__file__)])
    return f"dljob/base-{base.name}:{key}"


def sources_for(release: str, host_release: str, sources: Sequence[str]) -> list[str]:
    """The host's one-line apt sources, for another release of the same distribution."""
    lines = []
    for line in sources:
        kind, uri, suite, *components = line.split()
        lines.append(" ".join((kind, uri, release + suite.removeprefix(host_release), *components)))
    return lines


def ensure(base: Base, cache: Path, engine: Engine, report: Reporter) -> str:
    """The name of a base image that the engine has, by the cheapest way: it is there, it can be pulled, it is made."""
    made = local_name(base)
    for name in filter(None, (base.image, made)):
        if has(engine, name):
            return name
    rootfs = cache / "rootfs" / f"{made.removeprefix('dljob/').replace(':', '-')}.tar"
    if not rootfs.is_file():
        if base.image and pull(base, engine, report):
            return base.image
        _make(base, rootfs, cache, report)
    with report.step(f"import {base.name}", f"{base.name}, loaded into Docker"):
        engine.run("import", "--change", f"ENV {DEFAULT_PATH}", rootfs, made)
    return made


def _debian(base: Base) -> Debian:
    if base.debian is None:
        raise ImagesError(f"{base.file}: made by another image, {base.stand_in}", "build that one")
    return base.debian


def has(engine: Engine, name: str) -> bool:
    """Whether the engine has an image of that name."""
    return engine.run("image", "inspect", name, check=False).returncode == 0


def pull(base: Base, engine: Engine, report: Reporter) -> bool:
    """Pull the base's image; whether that went well."""
    with report.step(f"pull {base.name}", f"{base.image}, pulled") as step:
        if engine.run("pull", "--quiet", base.image, check=False, timeout=PULL_TIMEOUT).returncode == 0:
            return True
        step.skip()
    return False


def _make(base: Base, target: Path, cache: Path, report: Reporter) -> None:
    host = packages.distribution()
    if host.id != "debian" or os.geteuid() != 0:
        reason = "this user is not root" if host.id == "debian" else "this host is not Debian"
        raise ImagesError(
            f"{base.image} cannot be pulled, and cannot be made from Debian's packages: {reason}",
            f"let Docker reach the registry of {base.image}, or load the image into it, or run this as root on Debian",
        )
    if base.image:
        report.say(f"  {base.image} cannot be pulled here: making one from Debian's packages (once)")
    with report.step(f"rootfs {base.name}", f"{base.name}, Debian {_debian(base).release} (mmdebstrap)"):
        tools = packages.build_tools(cache)
        sources = sources_for(_debian(base).release, host.codename, packages.apt_sources())
        _unpack(_debian(base), sources, target, tools)


def _unpack(debian: Debian, sources: Sequence[str], target: Path, tools: Mapping[str, str]) -> None:
    """Write the root file system to ``target``, a tar file: the packages' files, then what the setup script did."""
    target.parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=f"{target.stem}.", dir=target.parent))
    partial = root.with_suffix(".partial")
    try:
        # unpacked, not installed: a third of the size and of the time. mmdebstrap runs no hook of ours in this variant
        shell.run(packages.mmdebstrap_command("extract", debian.packages, debian.release, root, sources), env=tools)
        if debian.setup:
            shell.run(["/bin/sh", "-c", debian.setup, "setup", root])
        shell.run(["tar", "-C", root, "--numeric-owner", "--sort=name", "-cf", partial, "."])
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
