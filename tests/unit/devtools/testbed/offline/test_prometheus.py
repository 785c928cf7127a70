"""Prometheus of the tests comes from its package, with both programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import packages
from devtools.testbed.offline.prometheus import prometheus


@pytest.mark.parametrize("present", [("prometheus", "promtool"), ("prometheus",), ()])
def test_both_programs_or_an_error(present: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unpack(cache: Path, label: str, names: Sequence[str], *, with_dependencies: bool) -> Path:
        assert (cache, names, with_dependencies) == (tmp_path, ("prometheus",), False)
        (cache / label / "usr/bin").mkdir(parents=True)
        for name in present:
            (cache / label / "usr/bin" / name).touch()
        return cache / label

    monkeypatch.setattr(packages, "unpack", unpack)
    if len(present) < 2:
        with pytest.raises(ClusterError, match="has other files than Debian's"):
            prometheus(tmp_path)
    else:
        found = prometheus(tmp_path)
        assert (found.server.name, found.promtool.name) == ("prometheus", "promtool")
