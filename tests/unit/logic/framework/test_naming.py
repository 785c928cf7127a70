"""Names are deterministic and within their limits."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import CAFFE2, MPI, UID, caffe2job, mpijob, mxjob


def test_runtime_id_is_a_function_of_the_uid() -> None:
    assert naming.runtime_id("a") == naming.runtime_id("a")
    assert naming.runtime_id("a") != naming.runtime_id("b")
    assert len(naming.runtime_id("a")) == naming.RUNTIME_ID_LENGTH


def test_names_are_the_same_in_every_release() -> None:
    """Another release of the operator finds the objects of a running job by their names."""
    assert naming.runtime_id(UID) == "cq2x723c"
    job = mxjob().v1alpha1().option(RuntimeId="76no").uid(UID).job()
    assert naming.pod_name(job, "Worker", 2) == "worker-76no-2-q0m2a"


def test_runtime_ids_of_many_jobs_differ() -> None:
    assert len({naming.runtime_id(str(n)) for n in range(10_000)}) == 10_000


@pytest.mark.parametrize("flavor", ["fioravanzo", "v1alpha1"])
def test_v1alpha1_pods_are_named_by_type_runtime_id_index_and_five_characters(flavor: str) -> None:
    job = mxjob("digits").flavor(flavor).servers(2).option(RuntimeId="76no").job()
    assert naming.host_name(job, "Server", 1) == "server-76no-1"
    host, _, suffix = naming.pod_name(job, "Server", 1).rpartition("-")
    assert (host, len(suffix)) == ("server-76no-1", 5)


def test_v1_pods_are_named_after_the_job() -> None:
    job = mxjob("digits").v1().workers(3).job()
    assert naming.pod_name(job, "Worker", 2) == "digits-worker-2"


def test_the_only_replica_of_a_batch_job_has_no_index() -> None:
    job = parse_job(mpijob(1, "pi"), MPI)
    assert (naming.pod_name(job, "Launcher", 0), naming.pod_name(job, "Worker", 0)) == ("pi-launcher", "pi-worker-0")


@pytest.mark.parametrize("change", [{"index": 1}, {"type_": "Server"}])
def test_v1alpha1_suffix_differs_by(change: dict[str, Any]) -> None:
    job = mxjob().v1alpha1().job()
    base: dict[str, Any] = {"type_": "Worker", "index": 0}
    suffixes = [naming.pod_name(job, **one).rpartition("-")[2] for one in (base, base, {**base, **change})]
    assert suffixes[0] == suffixes[1] != suffixes[2]


def test_v1alpha1_pod_names_of_two_jobs_of_one_runtime_id_differ() -> None:
    one, two = (mxjob().v1alpha1().option(RuntimeId="same").uid(uid).job() for uid in ("1", "2"))
    assert naming.pod_name(one, "Worker", 0) != naming.pod_name(two, "Worker", 0)


def test_addresses_do_not_depend_on_the_domain_of_the_cluster() -> None:
    assert naming.address(mxjob("digits").v1().job(), "Scheduler", 0) == "digits-scheduler-0"
    job = mxjob().v1alpha1().option(RuntimeId="76no").job()
    assert naming.address(job, "Scheduler", 0) == "scheduler-76no-0.mxjob-76no"


def test_the_service_is_named_after_the_kind_and_the_runtime_id() -> None:
    assert naming.service_name(mxjob().v1alpha1().option(RuntimeId="76no").job()) == "mxjob-76no"


@pytest.mark.parametrize(
    ("workers", "length", "fits"),
    # "-scheduler-0" has 12 characters, "-worker-10" and "-worker-999" have fewer
    [(10, 51, True), (10, 52, False), (1000, 51, True)],
)
def test_v1_name_of_a_job_leaves_room_for_its_pods(workers: int, length: int, fits: bool) -> None:
    job = dataclasses.replace(mxjob().v1().workers(workers).job(), name="j" * length)
    optional_failures = naming.too_long(job)
    assert (not optional_failures) == fits
    assert fits or "metadata.name is 1 characters too long" in optional_failures[0]
    assert fits or f"its pods are named like {'j' * 52}-scheduler-0, " in optional_failures[0]


def test_v1_the_highest_index_counts() -> None:
    job = mxjob().v1().workers(1).job()
    groups = (dataclasses.replace(g, replicas=100_000) if g.type == "Worker" else g for g in job.groups)
    wide = dataclasses.replace(job, groups=tuple(groups))
    assert naming.too_long(dataclasses.replace(wide, name="j" * 50)) == []
    (complaint,) = naming.too_long(dataclasses.replace(wide, groups=wide.groups[1:], name="j" * 51))
    assert "1 characters too long" in complaint
    assert "worker-99999" in complaint


def test_v1_replicas_that_a_job_may_get_count() -> None:
    job = mxjob().v1().workers(0).job()
    workers = dataclasses.replace(job, groups=tuple(g for g in job.groups if g.type == "Worker"))
    assert naming.too_long(dataclasses.replace(workers, name="j" * 54)) == []
    (complaint,) = naming.too_long(dataclasses.replace(workers, name="j" * 55))
    assert f"{'j' * 55}-worker-0" in complaint


def test_the_first_spelling_of_the_runtime_id_is_named() -> None:
    job = dataclasses.replace(parse_job(caffe2job(1), CAFFE2), runtime_id="r" * 60)
    assert all(text.startswith("spec.RuntimeID is ") for text in naming.too_long(job))


def test_v1alpha1_a_name_of_63_characters_is_a_label_and_no_more() -> None:
    job = mxjob().v1alpha1().job()
    assert naming.too_long(dataclasses.replace(job, name="j" * 63)) == []
    (complaint,) = naming.too_long(dataclasses.replace(job, name="j" * 64))
    assert "metadata.name has 64 characters" in complaint


@pytest.mark.parametrize(("length", "fits"), [(57, True), (58, False)])
def test_the_name_of_the_service_has_a_limit_too(length: int, fits: bool) -> None:
    job = dataclasses.replace(mxjob().v1().job(), runtime_id="r" * length)
    optional_failures = naming.too_long(job)
    assert (not optional_failures) is fits
    assert fits or optional_failures[0].startswith("spec.RuntimeId is 1 characters too long")


def test_v1alpha1_a_long_runtime_id_is_refused_by_name() -> None:
    job = dataclasses.replace(mxjob().v1alpha1().job(), runtime_id="r" * 60)
    optional_failures = naming.too_long(job)
    assert any("Service" in text for text in optional_failures)
    assert all(text.startswith("spec.RuntimeId is ") for text in optional_failures)
