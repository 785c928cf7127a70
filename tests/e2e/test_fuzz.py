"""Generated jobs against the operator, in small. Its times are those of a busy machine, so no delay is a failure here."""

from __future__ import annotations

import json
from pathlib import Path

from devtools.lab.fuzz import cli

OBJECTS = 200
PATIENT = ("--delay", "60", "--answer", "120", "--healthy", "3")


def test_the_operator_survives_generated_jobs(cluster: Path, crds: None, tmp_path: Path) -> None:
    output = ["--output", str(tmp_path), "--table", str(tmp_path / "FUZZ.md")]
    ended = cli.main(["--seed", "1", "--objects", str(OBJECTS), *PATIENT, *output])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["violations"] == []
    assert ended == 0
    assert sum(report["sent"].values()) == OBJECTS
    assert 0 < sum(report["accepted"].values()) < OBJECTS
    assert report["disturbed"]["jobs"] > 0
    assert "No violation." in (tmp_path / "FUZZ.md").read_text()
