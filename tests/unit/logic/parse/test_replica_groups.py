"""Groups of replicas: which are accepted, which replicas they take, and what is refused with which words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.replica_groups import MOST
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.job import ReplicaGroup
from hypothesis import given
from hypothesis import strategies as st
from support.builders import ECHO_DECLARATION, MXNET, PYTORCH, Resource, echojob, grouped, mxjob, pytorchjob

PATH = "spec.pytorchReplicaSpecs.Worker"
TEMPLATE: Resource = {"spec": {"containers": [{"name": "pytorch", "image": "large:1"}]}}


def group(name: Any = "large", **fields: Any) -> Resource:
    return {"name": name, "template": copy.deepcopy(TEMPLATE), **fields}


def job_with(*groups: Any, workers: int = 6, **entry: Any) -> Resource:
    job = pytorchjob(1, workers)
    job["spec"]["pytorchReplicaSpecs"]["Worker"].update(entry, groups=[*groups])
    return job


def worker(job: Resource) -> ReplicaGroup:
    found = parse_job(job, PYTORCH).group("Worker")
    assert found is not None
    return found


def errors(job: Resource) -> list[str]:
    with pytest.raises(InvalidJob) as caught:
        parse_job(job, PYTORCH)
    return list(caught.value.problems)


def groups_of(replicas: ReplicaGroup) -> list[str]:
    """The group of each replica."""
    return [replicas.template_of(index).group for index in range(replicas.replicas)]


def test_they_take_the_indexes_in_their_order() -> None:
    found = worker(job_with(group("large", replicas=2), group("small", replicas=3)))
    assert groups_of(found) == ["large", "large", "small", "small", "small", ""]
    assert found.grouped == 5
    assert [one.indexes for one in found.templates] == [range(2), range(2, 5), range(5, 6)]
    assert found.template_of(0).template == TEMPLATE
    assert found.template_of(5).template == found.template != TEMPLATE
    assert [one.path for one in found.templates] == [
        f"{PATH}.groups[0].template",
        f"{PATH}.groups[1].template",
        f"{PATH}.template",
    ]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], ["", "", ""]),
        ([group()], ["large", "", ""]),  # replicas is 1 by default
        ([group(replicas=0)], ["", "", ""]),
        ([group(replicas=3)], ["large"] * 3),
        ([group("a", replicas=0), group("b", replicas=2), group("c")], ["b", "b", "c"]),
        ([group(f"g{n}", replicas=0) for n in range(MOST - 1)] + [group("last")], ["last", "", ""]),
        ([group("a" * 63)], ["a" * 63, "", ""]),
    ],
)
def test_sizes(groups: list[Resource], expected: list[str]) -> None:
    assert groups_of(worker(job_with(*groups, workers=3))) == expected


@given(st.lists(st.integers(0, 5), max_size=MOST), st.integers(0, 5))
def test_every_replica_has_one_template(sizes: list[int], others: int) -> None:
    replicas = sum(sizes) + others
    if not replicas:
        return
    found = worker(job_with(*(group(f"g{n}", replicas=size) for n, size in enumerate(sizes)), workers=replicas))
    assert [index for one in found.templates for index in one.indexes] == list(range(replicas))
    assert all(index in found.template_of(index).indexes for index in range(replicas))
    assert [len(one.indexes) for one in found.templates] == [*sizes, others]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({"large": 2}, f"{PATH}.groups must be a list of groups, each with a name and its pods"),
        (["large"], f"{PATH}.groups[0] must be a map with a name and its pods"),
        ([group(None)], f"{PATH}.groups[0].name is missing: name the group"),
        ([group("Large")], f"{PATH}.groups[0].name: 'Large' is the value of a label: use at most 63"),
        ([group("a" * 64)], "use at most 63 lower-case letters, digits and '-'"),
        ([group("a\n")], "with a letter or digit at both ends"),
        ([group("a" * 100_000)], f"{PATH}.groups[0].name: '{'a' * 79} is the value of a label"),
        ([group("a", replicas=9), group("b", template=None)], f"{PATH}.groups[1].template is missing"),
        ([group(7)], f"{PATH}.groups[0].name: 7 is the value of a label"),
        ([group(), group()], f"{PATH}.groups[1].name: there are two groups 'large': rename one"),
        ([group(replicas="2")], f"{PATH}.groups[0].replicas must be a whole number, not '2'"),
        ([group(replicas=-1)], f"{PATH}.groups[0].replicas is -1: it must be between 0 and 1000000"),
        ([group(template=None)], f"{PATH}.groups[0].template is missing: describe the pods of the group there"),
        ([group(template=[])], f"{PATH}.groups[0].template is missing"),
        ([group(f"g{n}", replicas=0) for n in range(MOST + 1)], f"{PATH}.groups has 17 groups: use at most 16"),
        (
            [group("a", replicas=4), group("b", replicas=3)],
            f"{PATH}.groups have 7 replicas, and {PATH}.replicas is 6: raise it to at least 7, or make a group smaller",
        ),
        # what the template of a replica spec is checked for
        (
            [group(template={"spec": {"containers": [{"name": "main", "image": "x"}]}})],
            f"{PATH}.groups[0].template.spec.containers: a container named 'pytorch' is required",
        ),
        ([group(template={"spec": {}})], f"{PATH}.groups[0].template.spec.containers must be a list of containers"),
        (
            [group(template={**TEMPLATE, "metadata": {"labels": []}})],
            f"{PATH}.groups[0].template.metadata.labels must be a map",
        ),
    ],
)
def test_what_is_refused(groups: Any, expected: str) -> None:
    job = job_with()
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"] = groups
    (error,) = errors(job)
    assert error.startswith(expected) or (not expected.startswith("spec") and expected in error)


def test_all_errors_are_found_at_once() -> None:
    found = errors(job_with("large", group(template=None), group("B"), group("b", replicas="x")))
    assert [text.partition("groups")[2][:3] for text in found] == ["[0]", "[1]", "[2]", "[3]"]


def with_port(number: Any) -> Resource:
    ports = [{"name": "pytorchjob-port", "containerPort": number}]
    return {"spec": {"containers": [{"name": "pytorch", "image": "x", "ports": ports}]}}


def test_a_group_may_name_the_port_of_the_others() -> None:
    assert worker(job_with(group(template=with_port(23456)))).port == 23456
    assert worker(job_with(group(template=with_port(7)), group("small"), template=with_port(7))).port == 7


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (
            7,
            f"{PATH}.groups[0].template.spec.containers: containerPort pytorchjob-port is 7, and that of the other "
            f"replicas of Worker is 23456: use one number in {PATH}.template and all groups",
        ),
        (0, f"{PATH}.groups[0].template.spec.containers: containerPort pytorchjob-port of pytorch is 0: it must be"),
    ],
)
def test_a_group_has_no_port_of_its_own(number: int, expected: str) -> None:
    (error,) = errors(job_with(group(template=with_port(number))))
    assert error.startswith(expected)


def test_list_layouts_have_no_groups() -> None:
    """Their schemas have no such field, so that the API server has dropped it, or kubectl has refused the job."""
    job = mxjob().v1alpha1().workers(2).entry("Worker", groups="anything").job()
    assert [group.groups for group in job.groups] == [(), ()]


def test_every_type_may_have_them() -> None:
    job = grouped(mxjob().v1().servers(2).workers(2).resource(), "Server", fast=(1, {"image": "fast:1"}))
    assert [groups_of(group) for group in parse_job(job, MXNET).groups] == [[""], ["fast", ""], ["", ""]]


def test_a_type_that_needs_no_template_has_no_groups() -> None:
    """The pod hook completes the template of the type, not those of groups."""
    flavor = {**ECHO_DECLARATION["flavors"][0], "template_optional": ["Follower"]}
    framework = loader.framework({**ECHO_DECLARATION, "flavors": [flavor]})
    (path,) = flavor["replicas_fields"]
    job = echojob()
    job["spec"][path]["Follower"] = {"groups": [{"name": "a", "template": {}}]}
    with pytest.raises(InvalidJob) as refused:
        parse_job(job, framework)
    assert f"spec.{path}.Follower.groups: the replicas of Follower have no groups" in str(refused.value)
