"""Distribution packages, unpacked into the cache instead of installed, so that the host does not change."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from devtools.testbed.base import shell
from devtools.testbed.base.cache import cache_entry, content_key
from devtools.testbed.base.errors import ClusterError

INSTALL_LINE = re.compile(r"^Inst (?P<name>\S+) (?P<old>\[[^]]*\] )?\(")
ENGINE = ("docker.io", "containerd", "runc", "tini", "iptables", "nftables", "iproute2")
BUILD = ("mmdebstrap", "zstd")


class Distribution(NamedTuple):
    """The host's distribution; all empty if it does not say."""

    id: str
    version: str
    codename: str


def distribution() -> Distribution:
    try:
        values = platform.freedesktop_os_release()
    except OSError:
        values = {}
    return Distribution(*(values.get(name, "") for name in ("ID", "VERSION_ID", "VERSION_CODENAME")))


def require_apt() -> None:
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            raise ClusterError(
                f"{program}: not found; Docker and the node image can be made here on Debian and its derivatives only",
                "start a Docker that can pull kindest/node, or set KIND_NODE_IMAGE to a node image that it has",
            )


def parse_missing(simulation: str) -> list[str]:
    """The packages that ``apt-get install -s`` would newly install; upgrades of installed packages are skipped."""
    matches = (INSTALL_LINE.match(line) for line in simulation.splitlines())
    return sorted(m["name"] for m in matches if m and not m["old"])


def apt(*arguments: str, cwd: Path | None = None) -> str:
    """Run apt-get; if a package is unknown, update the package lists once and retry."""
    command, env = ["apt-get", "-q", *arguments], {"DEBIAN_FRONTEND": "noninteractive"}
    done = shell.run(command, cwd=cwd, check=False, env=env)
    if done.returncode != 0:
        shell.run(["apt-get", "-q", "update"], fix="run as root, with a reachable package mirror")
        done = shell.run(command, cwd=cwd, env=env)
    return done.stdout


def unpack(cache: Path, label: str, names: Sequence[str], *, with_dependencies: bool) -> Path:
    """Folder in the cache with the packages' files, and optionally with the dependencies that the host lacks.

    apt verifies signatures and checksums.
    """
    require_apt()
    host = distribution()
    key = content_key(host.id, host.version, str(with_dependencies), *names)

    def make(partial: Path) -> None:
        wanted = list(names)
        if with_dependencies:
            wanted = parse_missing(apt("install", "-s", "--no-install-recommends", *names))
        archives = partial / "archives"
        archives.mkdir(parents=True)
        if wanted:
            # apt downloads as an unprivileged user and warns if that user cannot write here
            as_root = ("-o", "APT::Sandbox::User=root") if os.geteuid() == 0 else ()
            apt(*as_root, "download", *wanted, cwd=archives)
        for archive in sorted(archives.glob("*.deb")):
            shell.run(["dpkg", "-x", archive, partial])
        shutil.rmtree(archives)

    return cache_entry(cache / "packages" / f"{label}-{key}", make)


def tool_env(tree: Path) -> dict[str, str]:
    """Environment whose PATH and library path put the unpacked packages first."""
    env = {"PATH": f"{tree}/usr/sbin:{tree}/usr/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    libraries = ":".join(str(p) for p in sorted((tree / "usr/lib").glob("*-linux-gnu")))
    return {**env, "LD_LIBRARY_PATH": libraries} if libraries else env


def build_tools(cache: Path) -> dict[str, str]:
    """Environment with the programs that make images: mmdebstrap and zstd, beside those of the engine."""
    return tool_env(unpack(cache, "build-tools", (*ENGINE, *BUILD), with_dependencies=True))


def mmdebstrap_command(
    variant: str, include: Sequence[str], codename: str, target: Path, sources: Sequence[str]
) -> list[str]:
    """The command that makes a root file system, without documentation."""
    excluded = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
    return [
        "mmdebstrap", "--mode=root", f"--variant={variant}", "--quiet", "--skip=output/dev",
        '--aptopt=Apt::Install-Recommends "false"', *(f"--dpkgopt=path-exclude={path}" for path in excluded),
        f"--include={','.join(include)}", codename, str(target), *sources,
    ]  # fmt: skip


def parse_index_targets(listing: str, codename: str) -> list[str]:
    """One-line apt sources of the distribution itself, from lines ``origin|uri|suite|component``.

    Suites of other origins or releases (a vendor's archive) are excluded: the node is plain Debian.
    """
    targets = (line.split("|") for line in dict.fromkeys(listing.splitlines()) if line.count("|") == 3)
    return [
        f"deb {uri} {suite} {component}"
        for origin, uri, suite, component in targets
        if origin in ("Debian", "Ubuntu") and suite.startswith(codename)
    ]


def apt_sources() -> list[str]:
    """The host's apt sources for its own release."""
    form = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    command = ["indextargets", "--format", form, "Created-By: Packages"]
    codename = distribution().codename
    sources = parse_index_targets(apt(*command), codename)
    if not sources:
        shell.run(["apt-get", "-q", "update"])
        sources = parse_index_targets(apt(*command), codename)
    if not sources:
        raise ClusterError(
            f"apt knows no archive of this distribution (release {codename or 'unknown'})",
            "add the distribution's own archive to /etc/apt/sources.list and run apt-get update",
        )
    return sources
