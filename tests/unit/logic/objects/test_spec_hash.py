"""Which changes of the spec change the spec hash."""

from __future__ import annotations

import copy
import datetime
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import (
    SpecHashes,
    fingerprint,
    spec_hash,
    spec_hashes,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    MPI,
    MXNET,
    PYTORCH,
    TENSORFLOW,
    MXJob,
    Resource,
    grouped,
    mpijob,
    mxjob,
    pytorchjob,
    tfjob,
)


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
        (lambda j: j.pod("Worker", hostUsers=False), {"Worker"}),
        (lambda j: j.pod("Worker", volumes=[{"name": "data", "image": {"reference": "data:1"}}]), {"Worker"}),
        (lambda j: j.pod("Worker", resourceClaims=[{"name": "gpu", "resourceClaimName": "a"}]), {"Worker"}),
        (lambda j: j.container("Worker", resources={"claims": [{"name": "gpu"}]}), {"Worker"}),
        (lambda j: j.container("Worker", restartPolicyRules=[{"action": "Restart"}]), {"Worker"}),
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


RULE = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}


@pytest.mark.parametrize(
    ("policy", "known"),
    [
        ({}, "798ed5836b0df450"),
        ({"restartScope": "Job"}, "93966aca5408b9b7"),
        ({"podFailurePolicy": {"rules": [RULE]}}, "bc960f4567304334"),
    ],
    ids=["replica", "job", "rules"],
)
def test_it_is_the_same_in_all_releases(policy: dict[str, Any], known: str) -> None:
    """With another one, an upgrade of the operator would restart the replicas."""
    assert set(hashes(mxjob().v1().workers(1).restart("OnFailure").run_policy(**policy)).values()) == {known}


def test_that_of_a_default_program_is_the_same_in_all_releases() -> None:
    job = parse_job(tfjob(master=1, ps=1), TENSORFLOW)
    known = {"Master": "1d67c69ffc866dac", "PS": "e752e89a46492bac"}
    assert {group.type: spec_hash(job, group) for group in job.groups} == known


def test_a_date_that_yaml_makes_of_a_text_is_a_part_of_it() -> None:
    dates = [datetime.date(2026, 1, day) for day in (2, 3)]
    found = [hashes(base().template_metadata("Worker", annotations={"since": date})) for date in dates]
    assert found[0]["Worker"] != found[1]["Worker"]


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


def with_groups(**groups: int) -> SpecHashes:
    """The hashes of a job of six workers."""
    resource = mxjob().v1().servers(1).workers(6).resource()
    return spec_hashes(parse_job(grouped(resource, "Worker", **{n: (size, {}) for n, size in groups.items()}), MXNET))


def test_the_hash_of_a_replica_is_that_of_its_group() -> None:
    found = with_groups(large=2, small=3)
    of_workers = [found.of("Worker", index) for index in range(6)]
    assert of_workers == [of_workers[0]] * 2 + [of_workers[2]] * 3 + [of_workers[5]]
    assert len(set(of_workers)) == 3
    assert found.of("worker", 6) == of_workers[5], "a replica that an elastic job no longer has"
    assert found.of("Tuner", 0) is None


def test_groups_do_not_change_the_hash_of_the_others() -> None:
    """Pods of a job that gets its first groups run on."""
    plain, found = with_groups(), with_groups(large=2)
    assert plain.of("Worker", 5) == found.of("Worker", 5) == plain.of("Worker", 0) != found.of("Worker", 0)
    assert plain.of("Scheduler", 0) == found.of("Scheduler", 0)


def test_an_attempt_of_the_job() -> None:
    found = with_groups(large=2)
    assert found.of_attempt(3).of("worker", 1) == f"{found.of('worker', 1)}-3"
    assert found.of_attempt(0) == found


@pytest.mark.parametrize(
    "groups", [{}, {"large": 2}, {"small": 2}, {"large": 3}, {"large": 2, "small": 1}, {"small": 2, "large": 1}]
)
def test_the_fingerprint_tells_which_replicas_have_which_template(groups: dict[str, int]) -> None:
    def made(given: dict[str, int]) -> str:
        resource = mxjob().v1().workers(6).resource()
        job = parse_job(grouped(resource, "Worker", **{n: (size, {}) for n, size in given.items()}), MXNET)
        return fingerprint(job, spec_hashes(job))

    others = [{}, {"large": 1}, {"large": 2}, {"large": 3}, {"small": 2}, {"large": 2, "small": 1}]
    assert [made(other) == made(groups) for other in others] == [other == groups for other in others]


ELASTIC = {"minReplicas": 1, "maxReplicas": 9}


@pytest.mark.parametrize(
    ("job", "framework", "field", "groups", "counts"),
    [
        pytest.param(pytorchjob(1, 3), PYTORCH, "pytorchReplicaSpecs", {}, True, id="no groups"),
        pytest.param(pytorchjob(1, 3), PYTORCH, "pytorchReplicaSpecs", {"some": 2}, True, id="some in groups"),
        pytest.param(pytorchjob(1, 3), PYTORCH, "pytorchReplicaSpecs", {"all": 3}, False, id="all in groups"),
        pytest.param(
            pytorchjob(0, 3, elasticPolicy=ELASTIC), PYTORCH, "pytorchReplicaSpecs", {"all": 3}, True, id="elastic"
        ),
        pytest.param(
            tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=0),
            TENSORFLOW,
            "tfReplicaSpecs",
            {},
            True,
            id="no replicas, as in all releases",
        ),
        pytest.param(mpijob(3), MPI, "mpiReplicaSpecs", {"all": 3}, True, id="resizable"),
    ],
)
def test_the_own_template_counts_where_a_replica_has_it_or_may_get_it(
    job: Resource, framework: Framework, field: str, groups: dict[str, int], counts: bool
) -> None:
    def made(image: str) -> str:
        edited = grouped(copy.deepcopy(job), "Worker", **{name: (size, {}) for name, size in groups.items()})
        edited["spec"][field]["Worker"]["template"]["spec"]["containers"][0]["image"] = image
        found = parse_job(edited, framework)
        return fingerprint(found, spec_hashes(found))

    assert (made("another:1") != made("train:1")) is counts


def test_the_fingerprint_of_a_job_without_groups_is_what_it_was() -> None:
    """An operator that is replaced by this release forgets no progress of running jobs."""
    job = mxjob().v1().servers(1).workers(2).job()
    text = "".join(f"{group.type}={spec_hash(job, group)};" for group in job.groups)
    assert fingerprint(job, spec_hashes(job)) == hashlib.sha256(text.encode()).hexdigest()[:16]
