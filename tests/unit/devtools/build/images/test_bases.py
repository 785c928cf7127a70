"""Base images: names by content, and Debian's sources for another release."""

from __future__ import annotations

from dataclasses import replace

from devtools.build.images import bases, definition


def test_a_base_is_named_by_all_that_it_is_made_of() -> None:
    base = definition.load_base("python-3.11")
    changed = [
        replace(base, debian=replace(base.debian, release="bullseye")),
        replace(base, debian=replace(base.debian, packages=(*base.debian.packages, "bash"))),
        replace(base, debian=replace(base.debian, setup=base.debian.setup + "#")),
    ]
    names = {bases.local_name(b) for b in (base, *changed)}
    assert len(names) == 4
    assert all(name.startswith("dljob/base-python-3.11:") for name in names)


def test_the_hosts_sources_serve_another_release() -> None:
    host = [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/security bookworm-security main",
    ]
    assert bases.sources_for("bullseye", "bookworm", host) == [
        "deb http://mirror.example/debian bullseye main",
        "deb http://mirror.example/security bullseye-security main",
    ]
    assert bases.sources_for("bookworm", "bookworm", host) == host
