"""Several jobs in one run of our own roles, as `dljob_batchable` in watches.yaml has it under load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.operator import OperatorProcess
from support.live_jobs import Cluster, v1_job, v1alpha1_job

from dljob_operator.watches import load_watches

ROOT = Path(__file__).resolve().parents[2]
SHARED = re.compile(r"reconciled kind=MXJob .*\bbatch=(\d+)")


def test_every_kind_of_ours_takes_batches() -> None:
    assert all(watch.batchable for watch in load_watches(ROOT / "watches.yaml"))


@pytest.mark.long
def test_many_jobs_at_once_all_reach_their_end_and_a_bad_one_harms_only_itself(
    cluster: Path, own: Cluster, namespace: str, tmp_path: Path
) -> None:
    """All of them wait when the operator starts, so that its first runs are batches. Both flavors are one kind."""
    own.core.create_namespaced_service(
        namespace,
        {"metadata": {"name": "bad-scheduler-0"}, "spec": {"clusterIP": "None", "selector": {"not": "ours"}}},
    )
    good = [own.create(v1_job(f"map-{n}", scheduler="exit 0", server="exit 0", worker="exit 0")) for n in range(6)]
    bad = own.create(v1_job("bad"))
    good += [own.create(v1alpha1_job(f"list-{n}", scheduler="exit 0")) for n in range(3)]
    failing = own.create(v1_job("failing", scheduler="exit 3"))
    log = tmp_path / "operator.log"
    with OperatorProcess(cluster, log, ("--namespace", namespace)) as operator:
        operator.wait_ready()
        bad.wait(lambda status: "Service/bad-scheduler-0" in str(status.get("reason")), "the name that is taken")
        assert failing.wait_end()["failure"]["exitCode"] == 3
        for job in good:
            assert job.wait_end()["state"] == "Succeeded", job.name
    assert bad.status["state"] != "Failed"
    own.wait_event("bad", "Warning", "FailedCreatePod", "bad-scheduler-0")
    shared = [int(found[1]) for found in SHARED.finditer(log.read_text())]
    assert max(shared, default=1) > 1, "no two jobs shared a run, and nothing was tested"
    for job in [*good, failing]:
        messages = [text for kind, _, text in own.events(job.name) if kind == "Warning"]
        assert not any("bad-scheduler-0" in text for text in messages), "reported on the wrong job"


@pytest.mark.parametrize("batchable", [{}, {"dljob_batchable": True}])
def test_what_ansible_operator_hands_over_is_one_job_with_the_variable_or_without(
    cluster: Path, own: Cluster, namespace: str, tmp_path: Path, batchable: dict[str, Any]
) -> None:
    """It passes an entry's `vars` on as extra variables, beside the one job's own."""
    job = own.create(v1_job("alone"))
    resource = job.get()
    handed = {
        "ansible_operator_meta": {"name": job.name, "namespace": namespace},
        "_kubeflow_org_mxjob": resource,
        "_kubeflow_org_mxjob_spec": resource["spec"],
        **batchable,
    }
    (tmp_path / "extra.yml").write_text(yaml.safe_dump(handed))
    play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": ["dljob.operator.mxnet"]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    bin_ = Path(sys.executable).parent
    subprocess.run(
        [bin_ / "ansible-playbook", "-i", "localhost,", tmp_path / "play.yml", "-e", f"@{tmp_path / 'extra.yml'}"],
        env={**os.environ, "KUBECONFIG": str(cluster), "PATH": f"{bin_}:{os.environ['PATH']}"},
        cwd=ROOT,
        check=True,
    )
    assert len(job.pods()) == 3
