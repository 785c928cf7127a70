"""Which lines of the operator's log count as unexpected."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools.testbed.log import Log, unexpected

LINES = [
    ('2026-01-01 INFO    reconciled kind=MXJob name=f1 ok=True', ""),
    ('2026-01-01 WARNING object ignored: its fields are nested too deeply kind=MXJob', ""),
    ('2026-01-01 ERROR   reconcile failed name=f1 error="409: the object has been modified"', ""),
    ('2026-01-01 ERROR   reconcile failed name=f1 error="KeyError: spec"', "a failed reconcile"),
    ('2026-01-01 ERROR   watch failed kind=MXJob', "an error"),
    ('2026-01-01 WARNING run output outcome=crashed output="killed"', "a run that crashed or timed out"),
    ("Traceback (most recent call last):", "a traceback"),
    ('2026-01-01 INFO    x exception="ValueError"', "a traceback"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "wanted"), LINES)
def test_lines_that_must_never_occur(line: str, wanted: str) -> None:
    assert unexpected(line) == wanted


def test_each_line_of_the_log_is_read_once_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("fine\nTraceback (most recent call last):\n2026 ERROR ")
    log = Log(path)
    assert [what for what, _ in log.unexpected()] == ["a traceback"]
    assert log.unexpected() == []
    with path.open("a") as more:
        more.write("  watch failed\n")
    assert [what for what, _ in log.unexpected()] == ["an error"]
