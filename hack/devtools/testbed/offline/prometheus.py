"""Prometheus and its promtool, unpacked into the cache, for the tests of the alerts and the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import packages

PACKAGE = "prometheus"
"""Debian 12 has 2.42. Both programs need glibc alone, so no dependency is unpacked."""


@dataclass(frozen=True)
class Prometheus:
    """The programs."""

    server: Path
    promtool: Path


def prometheus(cache: Path) -> Prometheus:
    """The programs, at first use downloaded with apt-get into the folder ``cache``: 19 MB, and 95 MB unpacked.

    Raises ClusterError where apt-get cannot have them, or the package has other files.
    """
    programs = packages.unpack(cache, PACKAGE, (PACKAGE,), with_dependencies=False) / "usr/bin"
    found = Prometheus(programs / "prometheus", programs / "promtool")
    for program in (found.server, found.promtool):
        if not program.is_file():
            raise ClusterError(f"{program}: not found; the package {PACKAGE} has other files than Debian's")
    return found
