"""Validation of a job, and of the fields of a template that the operator reads."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import (
    ECHO_DECLARATION,
    MXNET,
    TENSORFLOW,
    MXJob,
    echo_framework,
    echojob,
    mxjob,
    tfjob,
)


def problem(job: MXJob) -> str:
    with pytest.raises(InvalidJob) as caught:
        job.job()
    (only,) = caught.value.problems
    return only


@pytest.mark.parametrize("name", ["1digits", "Digits", "dig.its", "digits-", "dig_its", "digits\n", ""])
def test_v1_name_must_do_for_pods_and_services(name: str) -> None:
    text = problem(mxjob(name).v1())
    assert text.startswith(f"metadata.name: {name!r} must start with a letter")


@pytest.mark.parametrize("name", ["1digits", "dig.its", "j" * 63])
def test_v1alpha1_name_stays_out_of_the_names(name: str) -> None:
    assert mxjob(name).v1alpha1().job().name == name


def test_v1_name_of_63_characters_says_how_much_is_too_much() -> None:
    text = problem(mxjob("j" * 63).v1())
    assert text.startswith("metadata.name is 12 characters too long: its pods are named like j")


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "mpba"])
@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ({"containers": None}, ".template.spec.containers must be a list of containers"),
        ({"containers": {}}, ".template.spec.containers must be a list of containers"),
        ({"containers": ["mxnet"]}, ".template.spec.containers must be a list of containers"),
        ({"containers": []}, "a container named 'mxnet' is required, the one that runs mxnet; there are: none"),
        ({"initContainers": {}}, ".template.spec.initContainers must be a list of containers"),
        ({"dnsConfig": []}, ".template.spec.dnsConfig must be a map"),
        ({"dnsConfig": {"searches": "a"}}, ".template.spec.dnsConfig.searches must be a list of domains"),
    ],
)
def test_malformed_pod_specs(flavor: str, pod: dict[str, Any], said: str) -> None:
    assert problem(mxjob().flavor(flavor).pod("Scheduler", **pod)).endswith(said)


@pytest.mark.parametrize("value", [{}, "x", [1], ["A=b"]])
@pytest.mark.parametrize("field", ["env", "ports"])
def test_malformed_containers(field: str, value: Any) -> None:
    text = problem(mxjob().v1alpha1().container("Scheduler", **{field: value}))
    assert text == f"spec.replicaSpecs[0].template.spec.containers[0].{field} must be a list of maps"


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_malformed_metadata(field: str) -> None:
    text = problem(mxjob().v1alpha1().template_metadata("Scheduler", **{field: ["a"]}))
    assert text == f"spec.replicaSpecs[0].template.metadata.{field} must be a map"


def test_metadata_that_is_none() -> None:
    resource = mxjob().v1alpha1().resource()
    resource["spec"]["replicaSpecs"][0]["template"]["metadata"] = "x"
    with pytest.raises(InvalidJob, match=r"spec\.replicaSpecs\[0\]\.template\.metadata must be a map"):
        parse_job(resource, MXNET)


def test_what_is_left_empty_is_left_out() -> None:
    """``ports:`` without a value is null in YAML."""
    job = mxjob().v1().container("Scheduler", env=None, ports=None).pod("Scheduler", dnsConfig=None)
    assert job.template_metadata("Scheduler", labels=None).job().total == 1


def test_a_job_without_a_success_target() -> None:
    text = problem(mxjob().v1alpha1().scheduler(0).servers(2).option(jobMode="local"))
    assert text.startswith("the job has no replica that decides when it succeeds: add a Scheduler or Worker or ")


@pytest.mark.parametrize(
    ("bounds", "followers", "said"),
    [
        ({"minimum": 2}, 1, "it needs at least 2 Follower"),
        ({"minimum": 1, "maximum": 2}, 3, "spec.replicaSpecs.Follower.replicas is 3: a job has at most 2 Follower"),
    ],
)
def test_bounds_of_a_type(bounds: dict[str, int], followers: int, said: str) -> None:
    framework = echo_framework(replica_types={"Leader": {}, "Follower": bounds})
    with pytest.raises(InvalidJob) as caught:
        parse_job(echojob(followers), framework)
    assert said in str(caught.value)


def test_that_a_job_has_no_replicas_comes_before_the_types_that_it_lacks() -> None:
    framework = echo_framework(replica_types={"Leader": {"minimum": 1}, "Follower": {"minimum": 1}})
    job = echojob(0)
    job["spec"]["replicaSpecs"]["Leader"]["replicas"] = 0
    with pytest.raises(InvalidJob) as caught:
        parse_job(job, framework)
    first, *rest = caught.value.problems
    assert first.startswith("the job has no replicas: ")
    assert len(rest) == 2


@pytest.mark.parametrize(("workers", "refused"), [(18, False), (19, True)])
def test_the_administrators_limit(workers: int, refused: bool) -> None:
    limited = dataclasses.replace(MXNET, max_replicas=20)
    resource = mxjob().v1().servers(1).workers(workers).resource()
    if not refused:
        assert parse_job(resource, limited).total == 20
        return
    with pytest.raises(
        InvalidJob, match=r"the job has 21 replicas, and the operator allows 20: .*--max-replicas-per-job"
    ):
        parse_job(resource, limited)


@pytest.mark.parametrize("kind", ["MXNet", "TensorFlow with default servers"])
def test_a_million_replicas_are_refused_without_memory_for_them(kind: str) -> None:
    if kind == "MXNet":
        resource, framework = mxjob().v1().workers(1_000_000).resource(), MXNET
    else:
        resource, framework = tfjob(master=1, ps=1_000_000), TENSORFLOW
    tracemalloc.start()
    try:
        with pytest.raises(InvalidJob, match="and the operator allows 20000"):
            parse_job(resource, framework)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_more_replicas_than_a_variable_can_list() -> None:
    """Linux starts no process with a variable of more than 128 KiB; their pods would fail one after the other."""
    parse_job(mxjob().v1().workers(2_000).resource(), MXNET)
    with pytest.raises(InvalidJob, match=r"mxReplicaSpecs.Scheduler: the variable MX_CONFIG of Scheduler .* 131071"):
        parse_job(mxjob().v1().workers(5_000).resource(), MXNET)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("x" * 131_065, 131_071), ("x" * 131_066, 131_072), ("é" * 65_533, 131_072)]
)
def test_a_variable_may_fill_its_bytes_exactly(text: str, bytes_: int) -> None:
    """The name and "=" are part of it, and characters may have several bytes."""
    framework = echo_framework(hooks={"environment": {"HOSTS": text}})
    if bytes_ == 131_071:
        parse_job(echojob(499), framework)
        return
    with pytest.raises(InvalidJob, match=f"HOSTS of Leader lists all 500 replicas and would have {bytes_} bytes, and"):
        parse_job(echojob(499), framework)


@pytest.mark.parametrize(("followers", "fits"), [(1_000, True), (1_001, False)])
def test_the_variables_of_the_last_replica_are_measured(followers: int, fits: bool) -> None:
    """Its numbers have the most digits."""
    framework = echo_framework(hooks={"environment": {"HOSTS": "x" * 131_062 + "{index}"}})
    if fits:
        parse_job(echojob(followers), framework)
        return
    with pytest.raises(InvalidJob, match="HOSTS of Follower lists all 1002 replicas"):
        parse_job(echojob(followers), framework)


def test_the_errors_of_all_types_are_reported_at_once() -> None:
    resource = mxjob().v1().servers(1).workers(1).resource()
    specs = resource["spec"]["mxReplicaSpecs"]
    specs["Server"]["template"]["spec"]["containers"] = "x"
    specs["Worker"]["template"]["spec"]["containers"] = None
    with pytest.raises(InvalidJob) as caught:
        parse_job(resource, MXNET)
    found = [problem.split(".template")[0] for problem in caught.value.problems]
    assert found == ["spec.mxReplicaSpecs.Server", "spec.mxReplicaSpecs.Worker"]


@pytest.mark.parametrize(("length", "fits"), [(52, True), (53, False)])
def test_a_label_is_checked_for_every_type_that_has_replicas(length: int, fits: bool) -> None:
    """The first type has none here."""
    flavor = {**ECHO_DECLARATION["flavors"][0], "labels": {"long": "x" * length + "-{type}-{index}"}}
    types: dict[str, dict[str, int]] = {"Leader": {}, "Follower": {}}
    framework = echo_framework(flavors=[flavor], replica_types=types, success_target=["Follower"])
    job = echojob(1)
    job["spec"]["replicaSpecs"]["Leader"]["replicas"] = 0
    if fits:
        parse_job(job, framework)
        return
    with pytest.raises(InvalidJob, match="the pods' label long would be"):
        parse_job(job, framework)
