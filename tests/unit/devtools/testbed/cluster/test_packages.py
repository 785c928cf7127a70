"""Only packages that the host lacks are downloaded, and the node is built from the distribution's own archive."""

from devtools.testbed.cluster import packages

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


def test_os_release() -> None:
    text = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n# comment\n'
    assert packages.parse_os_release(text) == packages.Distribution("debian", "12", "bookworm")
    assert packages.parse_os_release("") == packages.Distribution("", "", "")
