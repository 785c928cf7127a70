"""Only packages that the host lacks are downloaded, and the node is built from the distribution's own archive."""

import platform
from pathlib import Path

import pytest
from devtools.testbed.offline import packages

SIMULATION = """NOTE: This is only a simulation!
Inst runc (1.1.5+ds1-1 Debian:12.15/oldstable [amd64])
Inst libc6 [2.36-9] (2.36-10 Debian:12.15/oldstable [amd64])
Inst containerd (1.6.20~ds1-1 Debian:12.15/oldstable [amd64])
Conf runc (1.1.5+ds1-1 Debian:12.15/oldstable [amd64])
"""

TARGETS = """Debian|http://mirror.example/debian/|bookworm|main
Debian|http://mirror.example/debian/|bookworm-updates|main
Debian|http://mirror.example/debian/|trixie|main
Some Vendor|http://vendor.example/|bookworm|main
Debian|http://mirror.example/debian/|bookworm|main
Debian|http://mirror.example/debian-security/|bookworm-security|main
"""


def test_missing_packages_are_new_ones_not_upgrades() -> None:
    assert packages.parse_missing(SIMULATION) == ["containerd", "runc"]


def test_sources_are_the_distributions_own_of_this_release() -> None:
    assert packages.parse_index_targets(TARGETS, "bookworm") == [
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian/ bookworm-updates main",
        "deb http://mirror.example/debian-security/ bookworm-security main",
    ]


def test_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"ID": "debian", "VERSION_ID": "12", "VERSION_CODENAME": "bookworm", "NAME": "Debian"}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: values)
    assert packages.distribution() == packages.Distribution("debian", "12", "bookworm")

    def unknown() -> None:
        raise OSError

    monkeypatch.setattr(platform, "freedesktop_os_release", unknown)
    assert packages.distribution() == packages.Distribution("", "", "")


def test_mmdebstrap_gets_the_hosts_own_sources() -> None:
    command = packages.mmdebstrap_command(
        "minbase", ("a", "b"), "bookworm", Path("/t.tar"), ["deb http://m.example x main"]
    )
    assert command[-3:] == ["bookworm", "/t.tar", "deb http://m.example x main"]
    assert "--include=a,b" in command and "--skip=output/dev" in command
