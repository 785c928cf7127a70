"""Many jobs through one operator, in small: every job ends as it should. Never a judgement on growth or times."""

from __future__ import annotations

import json
from pathlib import Path

from devtools.lab.soak import cli, mix

JOBS = 60


def test_every_job_ends_as_it_should(cluster: Path, crds: None, tmp_path: Path) -> None:
    arguments = ["--jobs", str(JOBS), "--in-flight", "10", "--interval", "0.5", "--output", str(tmp_path)]
    cli.main([*arguments, "--table", str(tmp_path / "SOAK.md"), "--picture", str(tmp_path / "soak.svg")])
    summary = json.loads((tmp_path / "soak.json").read_text())["summary"]
    assert summary["wrong"] == summary["problems"] == summary["logged"] == summary["errors"] == []
    assert summary["jobs"] == JOBS
    assert set(summary["lives"]) == {life.value for life in mix.Life}
    written = (tmp_path / "SOAK.md").read_text()
    assert "| memory of all processes (PSS) |" in written
    assert written.count("| first pod of a job alone, p50 |") == 2, "after the run, and with a young process in turn"
    assert "<svg" in (tmp_path / "soak.svg").read_text()
