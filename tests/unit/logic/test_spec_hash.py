"""Which changes of the spec change the spec hash."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.spec_hash import spec_hash
from support.builders import MXNET, MXJob, mxjob


def base() -> MXJob:
    return mxjob().v1alpha1().servers(1).workers(2).option(RuntimeId="aycw")


def hashes(job: MXJob) -> dict[str, str]:
    made = job.job()
    return {g.type: spec_hash(made, g) for g in made.groups}


def test_it_fits_a_label() -> None:
    assert {len(h) for h in hashes(base()).values()} == {16}


def test_types_with_the_same_template_share_it() -> None:
    assert len(set(hashes(base()).values())) == 1


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda j: j.container("Worker", image="train:2"), {"Worker"}),
        (lambda j: j.template_metadata("Server", labels={"a": "b"}), {"Server"}),
        (lambda j: j.restart("Never", "Worker"), {"Worker"}),
        # every process reads the whole cluster when it starts
        (lambda j: j.workers(3), {"Scheduler", "Server", "Worker"}),
        (lambda j: j.entry("Scheduler", PsRootPort=9999), {"Scheduler", "Server", "Worker"}),
        (lambda j: j.option(RuntimeId="other"), {"Scheduler", "Server", "Worker"}),
        (lambda j: j.option(jobMode="local"), {"Scheduler", "Server", "Worker"}),
        # fields that no process reads
        (lambda j: j.run_policy(backoffLimit=3, suspend=True), set()),
        (lambda j: j.chief("Worker", 1), set()),
    ],
)
def test_what_changes_it(change: Callable[[MXJob], MXJob], changed: set[str]) -> None:
    before, after = hashes(base()), hashes(change(base()))
    assert {t for t in before if before[t] != after[t]} == changed


def test_the_order_of_keys_does_not_matter() -> None:
    resource = base().resource()
    entry = resource["spec"]["replicaSpecs"][0]
    entry["template"]["spec"]["containers"][0] = dict(reversed(entry["template"]["spec"]["containers"][0].items()))
    assert spec_hash(parse_job(resource, MXNET), parse_job(resource, MXNET).groups[0]) == hashes(base())["Scheduler"]


def test_labels_and_annotations_of_the_job_do_not_matter() -> None:
    resource = base().resource()
    resource["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}, "resourceVersion": "99", "generation": 7}
    job = parse_job(resource, MXNET)
    assert spec_hash(job, job.groups[0]) == hashes(base())["Scheduler"]
