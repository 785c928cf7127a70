"""What `make outdated` reads of the repository, and what it says of a version."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from devtools.build.outdated import GO, PYPI, Pin, PinError, newest, pins, read, row

ROOT = Path(__file__).resolve().parents[4]
TODAY = date(2026, 11, 29)
FILES = {
    "requirements.txt": "ansible-core==2.19.14   # why\nnot a pin\nPyYAML==6.0.3\n",
    "more.txt": "-r requirements.txt\npyyaml==6.0.3\nPyYAML==6.0.4\n",
    "versions.py": 'TOOL = "v1.2.3"\n',
}
LISTED = {
    "requirements": ["requirements.txt", "more.txt"],
    "ends": {"ansible-core": {"2.1": date(2020, 1, 1), "2.19": date(2026, 11, 30)}},
    "pin": [{"name": "tool", "module": "example.com/tool", "file": "versions.py", "pattern": r'TOOL = "v([\d.]+)"'}],
}


def test_every_file_of_the_repository_has_what_is_listed() -> None:
    found = {pin.name: pin for pin in read(ROOT)}
    assert {"Kubernetes 1.37", "kind", "etcd", "CoreDNS", "kwok", "Helm", "ansible-core", "kubernetes"} <= found.keys()
    assert found["Kubernetes 1.37"].ends == date(2027, 10, 28)
    assert all(pin.version[0].isdigit() for pin in found.values())


def test_each_version_of_kubernetes_that_a_cluster_can_have_is_listed() -> None:
    from devtools.testbed.base.versions import KUBERNETES

    listed = {pin.name: pin.version for pin in read(ROOT)}
    assert {f"Kubernetes {minor}": one.version for minor, one in KUBERNETES.items()} == {
        name: f"v{version}" for name, version in listed.items() if name.startswith("Kubernetes ")
    }


def test_each_supported_line_of_ansible_core_has_an_end() -> None:
    assert [pin for pin in read(ROOT) if pin.name == "ansible-core" and pin.ends is None] == []


def test_pins_come_from_where_they_are() -> None:
    assert list(pins(LISTED, FILES.__getitem__)) == [
        Pin("tool", "1.2.3", "versions.py", GO, "example.com/tool"),
        Pin("ansible-core", "2.19.14", "requirements.txt", PYPI, "ansible-core", ends=date(2026, 11, 30)),
        Pin("PyYAML", "6.0.3", "requirements.txt", PYPI, "PyYAML"),
        Pin("PyYAML", "6.0.4", "more.txt", PYPI, "PyYAML"),
    ]


def test_a_pin_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(PinError, match=r"tool: versions\.py has nothing like TOOL"):
        list(pins(LISTED, lambda _: ""))


@pytest.mark.parametrize(
    ("versions", "line", "expected"),
    [
        (["v1.9.0", "v1.10.0", "v1.10.1-rc.1"], "", "1.10.0"),
        (["1.36.9", "1.37.2", "1.37.10"], "1.37.", "1.37.10"),
        (["2026.1", "2026.1.post2", "2026.1b1"], "", "2026.1.post2"),
        (["1.3.0"], "1.37.", ""),
        ([], "", ""),
    ],
)
def test_the_newest_release(versions: list[str], line: str, expected: str) -> None:
    assert newest(versions, line) == expected


@pytest.mark.parametrize(
    ("pin", "served", "expected"),
    [
        (Pin("a", "1.0", "f"), ["1.0"], ("1.0", "1.0", "-", "")),
        (Pin("a", "1.0", "f"), ["1.0", "1.1"], ("1.1", "1.1", "-", "newer")),
        (Pin("a", "1.0.1", "f", line="1.0."), ["1.0.1", "1.1.0"], ("1.0.1", "1.1.0", "-", "")),
        (Pin("a", "1.0", "f", ends=date(2026, 12, 9)), ["1.0"], ("1.0", "1.0", "2026-12-09", "10 days left")),
        (Pin("a", "1.0", "f", ends=TODAY), [], ("-", "-", "2026-11-29", "0 days left")),
        (
            Pin("a", "1.0", "f", ends=date(2026, 11, 28)),
            ["1.1"],
            ("1.1", "1.1", "2026-11-28", "newer, ended 1 days ago"),
        ),
    ],
)
def test_what_is_said_of_a_pin(pin: Pin, served: list[str], expected: tuple[str, ...]) -> None:
    assert row(pin, served, TODAY) == ("a", pin.version, *expected)
