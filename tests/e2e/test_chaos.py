"""A short run of faults: every promise of the operator holds, and the run leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from devtools.lab.chaos import cli, operators
from devtools.lab.chaos.shapes import NODE_LABEL
from devtools.testbed.client import Client


@pytest.mark.long
def test_a_short_run_finds_no_violation(cluster: Path, crds: None, tmp_path: Path) -> None:
    output = tmp_path / "CHAOS.md"
    status = cli.main(["--seed", "1", "--faults", "40", "--minutes", "1", "--output", str(output)])
    assert status == 0, output.read_text()
    result = json.loads((cli.SCRATCH / "result.json").read_text())
    assert sum(result["injected"].values()) >= 20, output.read_text()
    assert "No violation." in output.read_text()
    assert operators.processes_started() == []
    ((key, value),) = NODE_LABEL.items()
    assert Client(cluster).request("GET", f"/api/v1/nodes?labelSelector={key}%3D{value}")["items"] == []
