"""A cluster that starts on a nearly full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools.testbed.base.session import Session
from devtools.testbed.base.settings import settings_from
from devtools.testbed.offline import engine, slots

GIB = 2**30


@pytest.mark.parametrize(
    ("free", "emptied", "said"),
    [
        (30 * GIB, [], []),
        (9 * GIB, [], []),
        (21 * GIB, [4, 3], ["removed the images of 2 earlier clusters"]),
        (3 * GIB, [], ["warning: 3.0 GiB are free"]),
        (3 * GIB, [1], ["removed the images of 1 earlier clusters", "warning: 3.0 GiB are free"]),
    ],
)
def test_it_says_what_was_removed_and_whether_that_suffices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    free: int,
    emptied: list[int],
    said: list[str],
) -> None:
    settings = settings_from({"DLJOB_CLUSTER_DIR": str(tmp_path / "state"), "DLJOB_CACHE": str(tmp_path)})
    monkeypatch.setattr(slots, "make_room", lambda cache: emptied)
    monkeypatch.setattr(slots, "free_bytes", lambda cache: free)
    engine.make_room(Session.open(settings))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(said)
    assert all(text in line for text, line in zip(said, lines, strict=True))
