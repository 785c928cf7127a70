"""Distribution packages, unpacked into the cache instead of installed, so that the host does not change."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.testbed.cluster import shell
from devtools.testbed.cluster.cache_entry import cache_entry
from devtools.testbed.cluster.content_key import content_key
from devtools.testbed.cluster.errors import ClusterError

INSTALL_LINE = re.compile(r"^Inst (?P<name>\S+) (?P<old>\[[^]]*\] )?\(")


@dataclass(frozen=True)
class Distribution:
    """The host's distribution, from /etc/os-release."""

    id: str
    version: str
    codename: str


def parse_os_release(text: str) -> Distribution:
    values = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        values[name.strip()] = value.strip().strip('"')
    return Distribution(values.get("ID", ""), values.get("VERSION_ID", ""), values.get("VERSION_CODENAME", ""))


def distribution() -> Distribution:
    try:
        return parse_os_release(Path("/etc/os-release").read_text())
    except OSError:
        return Distribution("", "", "")


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
    command = ["apt-get", "-q", *arguments]
    done = shell.run(command, cwd=cwd, check=False, env={"DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode != 0:
        shell.run(["apt-get", "-q", "update"], fix="run as root, with a reachable package mirror")
        done = shell.run(command, cwd=cwd, env={"DEBIAN_FRONTEND": "noninteractive"})
    return done.stdout


def download(names: Sequence[str], target: Path) -> None:
    """Download the packages' files into ``target``; apt verifies signatures and checksums."""
    target.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        # apt downloads as an unprivileged user and warns if that user cannot write here
        apt("-o", "APT::Sandbox::User=root", "download", *names, cwd=target)
    else:
        apt("download", *names, cwd=target)


def unpack(cache: Path, label: str, names: Sequence[str], *, with_dependencies: bool) -> Path:
    """Folder in the cache with the packages' files, and optionally with the dependencies that the host lacks."""
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
            download(wanted, archives)
        for archive in sorted(archives.glob("*.deb")):
            shell.run(["dpkg", "-x", archive, partial])
        shutil.rmtree(archives)

    return cache_entry(cache / "packages" / f"{label}-{key}", make)


def tool_env(tree: Path) -> dict[str, str]:
    """Environment whose PATH and library path put the unpacked packages first."""
    path = f"{tree}/usr/sbin:{tree}/usr/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    libraries = ":".join(str(p) for p in sorted((tree / "usr/lib").glob("*-linux-gnu")))
    env = {"PATH": path}
    if libraries:
        env["LD_LIBRARY_PATH"] = libraries
    return env


def parse_index_targets(listing: str, codename: str) -> list[str]:
    """One-line apt sources of the distribution itself, from lines ``origin|uri|suite|component``.

    Suites of other origins or releases (a vendor's archive) are excluded: the node is plain Debian.
    """
    sources = []
    for line in listing.splitlines():
        origin, uri, suite, component = (line.split("|") + [""] * 4)[:4]
        if origin not in ("Debian", "Ubuntu") or not suite.startswith(codename):
            continue
        entry = f"deb {uri} {suite} {component}"
        if entry not in sources:
            sources.append(entry)
    return sources


def apt_sources() -> list[str]:
    """The host's apt sources for its own release."""
    command = [
        "indextargets",
        "--format",
        "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)",
        "Created-By: Packages",
    ]
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
