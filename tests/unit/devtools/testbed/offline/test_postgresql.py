"""PostgreSQL of the tests: the installed one, else that of the package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import packages, postgresql


@pytest.mark.parametrize("present", [True, False])
def test_where_none_is_installed_it_is_unpacked(present: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unpack(cache: Path, label: str, names: Sequence[str], *, with_dependencies: bool) -> Path:
        assert (cache, names, with_dependencies) == (tmp_path, ("postgresql-15",), True)
        programs = cache / label / "usr/lib/postgresql/15/bin"
        programs.mkdir(parents=True)
        if present:
            (programs / "initdb").touch()
        return cache / label

    monkeypatch.setattr(packages, "unpack", unpack)
    monkeypatch.setattr(postgresql, "_INSTALLED", tmp_path / "none")
    if not present:
        with pytest.raises(ClusterError, match="has other files than Debian's"):
            postgresql.programs(tmp_path)
        return
    found = postgresql.programs(tmp_path)
    assert found.environ["PATH"].startswith(f"{tmp_path}/postgresql-15/usr/sbin:")
    copied = found.copied(tmp_path / "copy")
    assert copied.folder == tmp_path / "copy/usr/lib/postgresql/15/bin"
    assert Path(copied.program("initdb")).is_file()


def test_installed_programs_are_used_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "initdb").touch()
    monkeypatch.setattr(postgresql, "_INSTALLED", tmp_path)
    found = postgresql.programs(tmp_path / "cache")
    assert (found.folder, found.copied(tmp_path / "copy")) == (tmp_path, found)
    assert found.environ == {"PATH": os.environ["PATH"]}
