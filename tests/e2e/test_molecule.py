"""`molecule test`: every scenario of molecule/, on the cluster that is up; one after the other, as `make molecule` does.

Other tests may be at work on that cluster: the scenarios' operators see no namespace but their own, and the scenarios' jobs
have the label dljob-test/operator, by which another operator leaves them alone. `upgrade` alone changes the cluster for
all of them: it installs the definitions of the previous release.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))
STEPS = {"converge", "idempotence", "verify"}
ALONE = "upgrade"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_has_every_step(scenario: str) -> None:
    shared = yaml.safe_load((ROOT / ".config" / "molecule" / "config.yml").read_text())
    document = yaml.safe_load((ROOT / "molecule" / scenario / "molecule.yml").read_text())
    assert set(document.get("scenario", shared["scenario"])["test_sequence"]) >= STEPS


def failures(said: str) -> list[str]:
    """What Ansible and molecule call failures, each with the task that it belongs to, at most 1,500 characters a line."""
    found, task = [], ""
    for line in said.splitlines():
        if line.startswith(("TASK [", "RUNNING HANDLER [")):
            task = line.rstrip(" *")
        elif re.match(r"\s*(fatal|failed): \[|\s*(CRITICAL|ERROR)\b|\[ERROR\]", line):
            found.append(f"{task}: {line.strip()}"[:1_500])
    return found


def test_failures_name_the_task_and_the_message() -> None:
    said = """TASK [Fine] ****
ok: [localhost]
TASK [Check the pods] ****
fatal: [localhost]: FAILED! => {"msg": "three pods"}
CRITICAL Idempotence test failed because of the following tasks:
"""
    assert failures(said) == [
        'TASK [Check the pods]: fatal: [localhost]: FAILED! => {"msg": "three pods"}',
        "TASK [Check the pods]: CRITICAL Idempotence test failed because of the following tasks:",
    ]


def run(scenarios: list[str], **more: str) -> str:
    """`make molecule` of these, which must go well; what it said."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "ANSIBLE_", "MOLECULE_"))}
    command = ["make", "molecule", f"SCENARIOS={' '.join(scenarios)}"]
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, "NO_COLOR": "1", **more}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        # the cause last: a log that shows only its end must still name it
        shown = [done.stdout[-20_000:], done.stderr[-5_000:], "failed:", *failures(done.stdout + done.stderr)]
        pytest.fail("\n".join(shown), pytrace=False)
    assert "Missing playbook" not in done.stdout + done.stderr, "molecule leaves such a step out and goes on"
    for scenario in scenarios:
        assert re.search(rf"\[{scenario} > verify[^]]*\] Executed: Successful", done.stdout + done.stderr), scenario
    return done.stdout + done.stderr


def namespaces(cluster: Path) -> list[str]:
    core = client.CoreV1Api(config.new_client_from_config(str(cluster)))
    return [n.metadata.name for n in core.list_namespace().items]


def assert_nothing_left(cluster: Path) -> None:
    """Of the scenarios: no namespace and no process. The cluster was up before and stays."""
    assert [name for name in namespaces(cluster) if name.startswith(("molecule-", "dljob-system"))] == []
    left = [json.loads(p.read_text())["pid"] for p in (cluster.parent / "molecule").glob("*/process.json")]
    assert left == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "molecule").glob("*/jobs/*.yaml")), ids=lambda p: f"{p.parts[-3]}/{p.stem}"
)
def test_every_job_has_the_label_of_molecule(path: Path) -> None:
    """Else the operator of the other end-to-end tests would take it up as well."""
    assert yaml.safe_load(path.read_text())["metadata"]["labels"] == {"dljob-test/operator": "molecule"}


def test_destroy_cleans_up_after_every_scenario() -> None:
    variables = yaml.safe_load((ROOT / "molecule" / "inventory" / "group_vars" / "all.yml").read_text())
    for name in SCENARIOS:
        assert (
            f"molecule-{name}" in variables["watched_namespaces"] or f"'molecule-{name}'" in variables["all_namespaces"]
        )


def test_scenarios(cluster: Path) -> None:
    """In one run: they share the cluster and its operator."""
    run([name for name in SCENARIOS if name != ALONE])
    assert_nothing_left(cluster)


@pytest.mark.serial
def test_an_upgrade_and_a_rollback(cluster: Path) -> None:
    asked = ["git", "rev-parse", "--is-shallow-repository"]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() == "true":
        pytest.skip("a clone without history has no previous release to begin with: git fetch --unshallow")
    run([ALONE])
    assert_nothing_left(cluster)


def test_the_image_does_what_the_process_does(cluster: Path) -> None:
    """The same scenario, with the operator in a pod. It goes afterwards, the definitions and whose jobs they are stay."""
    said = run(["default"], ENGINE="image")
    assert "TASK [Deploy the operator]" in said
    assert "TASK [Start the operator default]" not in said
    assert_nothing_left(cluster)
    definitions = client.ApiextensionsV1Api(config.new_client_from_config(str(cluster)))
    assert "mxjobs.kubeflow.org" in [d.metadata.name for d in definitions.list_custom_resource_definition().items]
