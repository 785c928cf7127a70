"""`molecule test`: every scenario of molecule/, on the cluster that is up; one after the other, as `make molecule` does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))
STEPS = {"converge", "idempotence", "verify", "cleanup"}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_has_every_step(scenario: str) -> None:
    document = yaml.safe_load((ROOT / "molecule" / scenario / "molecule.yml").read_text())
    assert set(document["scenario"]["test_sequence"]) >= STEPS


def runnable() -> list[str]:
    """All, but for the upgrade in a clone without history, which has no previous release to begin with."""
    asked = ["git", "rev-parse", "--is-shallow-repository"]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() != "true":
        return SCENARIOS
    warnings.warn("a shallow clone: molecule's upgrade scenario is left out; `git fetch --unshallow`", stacklevel=1)
    return [name for name in SCENARIOS if name != "upgrade"]


def run(scenarios: list[str], **more: str) -> str:
    """`make molecule` of these, which must go well; what it said."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "ANSIBLE_", "MOLECULE_"))}
    command = ["make", "molecule", f"SCENARIOS={' '.join(scenarios)}"]
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, "NO_COLOR": "1", **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert "Missing playbook" not in done.stdout + done.stderr, "molecule leaves such a step out and goes on"
    for scenario in scenarios:
        assert re.search(rf"\[{scenario} > verify[^]]*\] Executed: Successful", done.stdout + done.stderr), scenario
    return done.stdout + done.stderr


def namespaces(cluster: Path) -> list[str]:
    core = client.CoreV1Api(config.new_client_from_config(str(cluster)))
    return [n.metadata.name for n in core.list_namespace().items]


def test_scenarios(cluster: Path) -> None:
    """All of them in one run: they share the cluster and its operator."""
    run(runnable())
    # the cluster was up before and stays; of the scenarios nothing is left, no process either
    assert [name for name in namespaces(cluster) if name.startswith("molecule-")] == []
    left = [json.loads(p.read_text())["pid"] for p in (cluster.parent / "molecule").glob("*/process.json")]
    assert left == []


def test_the_image_does_what_the_process_does(cluster: Path) -> None:
    """The same scenario, with the operator in a pod. It goes afterwards, the definitions and whose jobs they are stay."""
    said = run(["default"], ENGINE="image")
    assert "TASK [Deploy the operator]" in said
    assert "TASK [Start the operator default]" not in said
    assert [name for name in namespaces(cluster) if name.startswith(("molecule-", "dljob-system"))] == []
    definitions = client.ApiextensionsV1Api(config.new_client_from_config(str(cluster)))
    assert "mxjobs.kubeflow.org" in [d.metadata.name for d in definitions.list_custom_resource_definition().items]
