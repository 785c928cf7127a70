"""From a role's data to a framework; a mistake is named, and now, not when the first job comes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic import declare
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework, InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Dialect, ExitCodes, ReplicaType
from support.builders import ECHO_DECLARATION, MXNET, echo_framework, echo_framework_of_dialect, echojob, seen_from


def test_the_smallest_framework() -> None:
    made = echo_framework()
    assert made.replica_types == (ReplicaType("Leader", 1, 1), ReplicaType("Follower", 0, None))
    assert (made.chief, made.succeeds_by) == (("Leader",), "chief")
    assert made.modes == {"local": "local", "dist": "dist"}
    assert made.dialects == (Dialect(("example.com",), "map", ("replicaSpecs",), names="job", status="v1"),)


def test_defaults_of_a_dialect() -> None:
    (dialect,) = declare.framework(
        {**ECHO_DECLARATION, "dialects": [{"groups": ["a"], "form": "list", "replicas_fields": ["x"]}]}
    ).dialects
    assert (dialect.names, dialect.status, dialect.fails_by) == ("runtime-id", "v1alpha1", "chief")
    assert (dialect.default_restart_policy, dialect.default_clean_pod_policy) == ("OnFailure", "Running")
    assert dialect.exit_codes == ExitCodes(frozenset(range(128, 256)), False)
    assert (dialect.default_port, dialect.port_name, dialect.environment_in) == (2222, "", "named")


def test_a_declared_environment_is_filled_in_for_each_task() -> None:
    framework = echo_framework(environment={"RANK": "{rank}/{total}", "LEADER": "{rank0_host}", "N": 5})
    job = parse_job(echojob(2), framework)
    assert framework.environment(seen_from(job, "Follower", 1, framework)) == {
        "RANK": "2/3",
        "LEADER": "hello-leader-0",
        "N": "5",
    }


def test_a_computed_environment() -> None:
    framework = declare.framework({**ECHO_DECLARATION, "environment": {}}, lambda cluster: {"N": str(cluster["n"])})
    assert framework.environment({"n": 1}) == {"N": "1"}


@pytest.mark.parametrize(
    ("declared", "codes"),
    [
        ([], set()),
        ([1], {1}),
        (["130", "137-138"], {130, 137, 138}),
        ([143, "0-2"], {143, 0, 1, 2}),
        (["255-255"], {255}),
    ],
)
def test_exit_codes(declared: list[Any], codes: set[int]) -> None:
    (dialect,) = echo_framework_of_dialect(exit_codes={"retryable": declared, "oom_retryable": True}).dialects
    assert dialect.exit_codes == ExitCodes(frozenset(codes), True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nome": "x"}, "unknown key 'nome' in the framework; there are: chief, container,"),
        ({"name": ""}, "the framework lacks 'name'"),
        ({"container": None}, "the framework lacks 'container'"),
        ({"replica_types": {}}, "the framework lacks 'replica_types'"),
        ({"replica_types": ["Leader"]}, r"replica_types must be a mapping, not \['Leader'\]"),
        ({"replica_types": {"Leader": 3}}, "replica_types.Leader must be a mapping, not 3"),
        ({"replica_types": {"Leader": {"min": 1}}}, "unknown key 'min' in replica_types.Leader"),
        ({"replica_types": {"Leader": {"minimum": "x"}}}, "replica_types.Leader.minimum: 'x' is no number"),
        ({"replica_types": {"Leader": {"maximum": -1}}}, "replica_types.Leader.maximum: -1 is no number"),
        (
            {"replica_types": {"Leader": {"serves": "yes"}}},
            "replica_types.Leader.serves: 'yes' is neither true nor false",
        ),
        ({"replica_types": {"Leader": {"minimum": 2, "maximum": 1}}}, "the minimum 2 is above the maximum 1"),
        ({"chief": ["Boss"]}, "chief: 'Boss' is none of Leader, Follower"),
        ({"chief": "Leader"}, "chief must be a list of texts, not 'Leader'"),
        ({"kinds": "EchoJob"}, "kinds must be a list of texts"),
        ({"succeeds_by": "any"}, "succeeds_by: 'any' is none of chief, all"),
        ({"modes": {"Fast": "quick"}}, "modes.Fast: 'quick' is none of local, dist"),
        ({"modes": ["Fast"]}, "modes must be a mapping"),
        ({"environment": ["A=b"]}, "environment must be a mapping"),
        (
            {"environment": {"A": "{rang}"}},
            r"environment.A: unknown placeholder \{rang\} in '\{rang\}'; there are: count",
        ),
        ({"environment": {"A": "{role}"}}, r"environment.A: unknown placeholder \{role\}"),
        ({"dialects": []}, "the framework lacks 'dialects'"),
        ({"dialects": {"groups": []}}, "dialects must be a list"),
        ({"dialects": ["v1"]}, r"dialects\[0\] must be a mapping, not 'v1'"),
    ],
)
def test_mistakes(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFramework, match=said):
        declare.framework({**ECHO_DECLARATION, **change})


PROGRAM = {"image": "i", "config_map": "cm", "files": {"a.py": "a.py"}, "mount_path": "/p", "volume": "v"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"file_setting": "tfImage"}, r"standard.Follower.file_setting: 'tfImage' is none of grpcServerFilePath"),
        (
            {"file_setting": "grpcServerFilePath", "files": {"a.py": "a.py", "b.py": "b.py"}},
            "file_setting is for a program of one file, and this has 2",
        ),
        ({"volume": ""}, r"standard.Follower lacks 'volume'"),
    ],
)
def test_mistakes_in_a_standard_program(change: dict[str, Any], said: str) -> None:
    dialect = {**ECHO_DECLARATION["dialects"][0], "standard": {"Follower": {**PROGRAM, **change}}}
    with pytest.raises(InvalidFramework, match=said):
        declare.framework({**ECHO_DECLARATION, "dialects": [dialect]}, read=str)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"froms": 1}, r"unknown key 'froms' in dialects\[0\]; there are: default_clean_pod_policy,"),
        ({"groups": []}, r"dialects\[0\] lacks 'groups'"),
        ({"groups": "example.com"}, r"dialects\[0\].groups must be a list of texts, not 'example.com'"),
        ({"form": ""}, r"dialects\[0\] lacks 'form'"),
        ({"form": "table"}, r"dialects\[0\].form: 'table' is none of list, map, single"),
        ({"replicas_fields": []}, r"dialects\[0\] lacks 'replicas_fields'"),
        ({"port_fields": "port"}, r"dialects\[0\].port_fields must be a list of texts"),
        ({"names": "uid"}, "names: 'uid' is none of runtime-id, job"),
        ({"status": "v2"}, "status: 'v2' is none of v1alpha1, v1"),
        ({"fails_by": "all"}, "fails_by: 'all' is none of chief, any"),
        ({"environment_in": "some"}, "environment_in: 'some' is none of named, all"),
        ({"exit_codes": [1]}, r"dialects\[0\].exit_codes must be a mapping"),
        ({"exit_codes": {"permanent": [1]}}, r"unknown key 'permanent' in dialects\[0\].exit_codes"),
        ({"exit_codes": {"retryable": ["1-"]}}, "'1-' is neither a code nor a range like 128-255"),
        ({"exit_codes": {"retryable": ["255-128"]}}, "'255-128' is neither"),
        ({"exit_codes": {"retryable": [256]}}, "256 is neither"),
        ({"labels": {"l": "{indx}"}}, r"dialects\[0\].labels.l: unknown placeholder \{indx\}"),
        ({"labels": ["l"]}, r"dialects\[0\].labels must be a mapping"),
    ],
)
def test_mistakes_in_a_dialect(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFramework, match=said):
        echo_framework_of_dialect(**change)


def test_type_named() -> None:
    assert MXNET.type_named("TUNER") == ReplicaType("Tuner")
    assert MXNET.type_named("TUNERTRACKER") == ReplicaType("TunerTracker", serves=True)
    assert MXNET.type_named("master") is None


def test_mxnet_is_declared_for_all_its_groups() -> None:
    spoken = [(group, d.form, d.status) for d in MXNET.dialects for group in d.groups]
    assert spoken == [
        ("fioravanzo.org", "list", "v1alpha1"),
        ("mpba.fbk.eu", "list", "v1alpha1"),
        ("kubeflow.org", "list", "v1alpha1"),
        ("kubeflow.org", "map", "v1"),
    ]


def test_a_validation_is_a_filter_and_finds_what_the_dialect_passes_on() -> None:
    def faults(cluster: Any) -> list[str]:
        return [f"spec.color: {cluster['spec'].get('color')} is too loud"] if cluster["spec"] else []

    dialect = {**ECHO_DECLARATION["dialects"][0], "spec_fields": ["color"]}
    framework = declare.framework({**ECHO_DECLARATION, "dialects": [dialect]}, validation=faults)
    assert parse_job(echojob(shape="round"), framework).options == {}
    with pytest.raises(InvalidJob, match=r"^spec\.color: red is too loud$"):
        parse_job(echojob(color="red", shape="round"), framework)


def test_a_validation_that_was_not_looked_up() -> None:
    with pytest.raises(InvalidFramework, match="validation must be the full name of a filter, not 5"):
        echo_framework(validation=5)


def test_a_dialect_without_a_name_for_the_runtime_id() -> None:
    with pytest.raises(InvalidFramework, match=r"dialects\[0\].runtime_id_fields is empty"):
        echo_framework_of_dialect(runtime_id_fields=[])
