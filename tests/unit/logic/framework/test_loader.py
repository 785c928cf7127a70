"""Loading a framework from a role's declaration; errors are reported at load time, not with the first job."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework, InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    ApiFlavor,
    Elastic,
    ExitCodes,
    ReplicaType,
)
from support.builders import (
    ECHO_DECLARATION,
    MXNET,
    echo_framework,
    echo_framework_of_flavor,
    echojob,
    manifest_of,
    seen_from,
)
from support.fake_cluster import FakeCluster


def test_the_smallest_framework() -> None:
    made = echo_framework()
    assert made.replica_types == (ReplicaType("Leader", 1, 1), ReplicaType("Follower", 0, None))
    assert (made.success_target, made.succeeds_by) == (("Leader",), "target")
    assert made.modes == {"local": "local", "dist": "dist"}
    assert made.flavors == (ApiFlavor(("example.com",), "map", ("replicaSpecs",), names="job", status="v1"),)


def test_defaults_of_a_flavor() -> None:
    (flavor,) = loader.framework(
        {**ECHO_DECLARATION, "flavors": [{"groups": ["a"], "replicas_layout": "list", "replicas_fields": ["x"]}]}
    ).flavors
    assert (flavor.names, flavor.status, flavor.fails_by) == ("runtime-id", "v1alpha1", "target")
    assert (flavor.default_restart_policy, flavor.default_clean_pod_policy) == ("OnFailure", "Running")
    assert flavor.exit_codes == ExitCodes(frozenset(range(128, 256)), False)
    assert (flavor.default_port, flavor.port_name, flavor.environment_in) == (2222, "", "named")


def test_a_declared_environment_is_filled_in_for_each_task() -> None:
    framework = echo_framework(hooks={"environment": {"RANK": "{rank}/{total}", "LEADER": "{rank0_host}", "N": 5}})
    job = parse_job(echojob(2), framework)
    assert framework.hooks.environment(seen_from(job, "Follower", 1, framework)) == {
        "RANK": "2/3",
        "LEADER": "hello-leader-0",
        "N": "5",
    }


def test_a_computed_environment() -> None:
    framework = loader.framework(
        {**ECHO_DECLARATION, "hooks": {"environment": "a.b.c"}},
        {"environment": lambda cluster: {"N": str(cluster["n"])}},
    )
    assert framework.hooks.environment({"n": 1}) == {"N": "1"}


def test_elastic_replicas() -> None:
    declared = {"field": "elastic", "type": "Follower", "when_any": ["Leader"], "succeeds_by": "any"}
    (flavor,) = echo_framework_of_flavor(elastic=declared).flavors
    assert flavor.elastic == Elastic("elastic", "Follower", ("Leader",), "any")
    (flavor,) = echo_framework_of_flavor(elastic={"field": "elastic", "type": "Follower"}).flavors
    assert flavor.elastic == Elastic("elastic", "Follower")


def test_what_replica_types_and_files_depend_on() -> None:
    follower = {"starts_after": {"Leader": "ready"}, "starts_after_if": {"policy": "ordered"}}
    framework = echo_framework(
        replica_types={"Leader": {}, "Follower": follower}, operator_files={"a.py": "grpcServerFilePath"}
    )
    _, made = framework.replica_types
    assert (made.starts_after, made.starts_after_if) == ({"Leader": "ready"}, {"policy": "ordered"})
    assert framework.operator_files == {"a.py": "grpcServerFilePath"}


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
    (flavor,) = echo_framework_of_flavor(exit_codes={"retryable": declared, "oom_retryable": True}).flavors
    assert flavor.exit_codes == ExitCodes(frozenset(codes), True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nome": "x"}, "unknown key 'nome' in the framework; there are: batch_jobs, container,"),
        ({"type": "y", "nome": "x"}, "unknown key 'nome' in the framework; there are: batch_jobs, container,"),
        ({"name": ""}, "the framework lacks 'name'"),
        ({"container": None}, "the framework lacks 'container'"),
        ({"replica_types": {}}, "the framework lacks 'replica_types'"),
        ({"replica_types": ["Leader"]}, r"replica_types must be a mapping, not \['Leader'\]"),
        ({"replica_types": {"Leader": 3}}, "replica_types.Leader must be a mapping, not 3"),
        ({"replica_types": {"Leader": {"min": 1}}}, "unknown key 'min' in replica_types.Leader"),
        ({"replica_types": {"Leader": {"minimum": "x"}}}, "replica_types.Leader.minimum: 'x' is not a number"),
        ({"replica_types": {"Leader": {"maximum": -1}}}, "replica_types.Leader.maximum: -1 is not a number"),
        (
            {"replica_types": {"Leader": {"expected_maximum": True}}},
            "replica_types.Leader.expected_maximum: True is not a number",
        ),
        (
            {"replica_types": {"Leader": {"long_running": "yes"}}},
            "replica_types.Leader.long_running: 'yes' is neither true nor false",
        ),
        (
            {"replica_types": {"Leader": {"coordinates": 1}}},
            "replica_types.Leader.coordinates: 1 is neither true nor false",
        ),
        (
            {"replica_types": {"Leader": {"indexed": 1}}},
            "replica_types.Leader.indexed: 1 is neither true nor false",
        ),
        (
            {"replica_types": {"Leader": {"resizable": 1}}},
            "replica_types.Leader.resizable: 1 is neither true nor false",
        ),
        (
            {"replica_types": {"Leader": {"indexed": False}}},
            "replica_types.Leader: without an index there is one replica: give the type a maximum of 1",
        ),
        (
            {"replica_types": {"Leader": {"starts_after_if": {"a": "b"}}}},
            "replica_types.Leader.starts_after_if is of no effect without starts_after",
        ),
        (
            {"replica_types": {"A": {}, "B": {"starts_after": {"A": "ready"}, "starts_after_if": {"a": True}}}},
            "replica_types.B.starts_after_if.a must be a string, not True",
        ),
        ({"replica_types": {"Leader": {"minimum": 2, "maximum": 1}}}, "the minimum 2 is above the maximum 1"),
        ({"success_target": ["Boss"]}, "success_target: 'Boss' is none of Leader, Follower"),
        ({"success_target": "Leader"}, "success_target must be a list of strings, not 'Leader'"),
        ({"kinds": "EchoJob"}, "kinds must be a list, not 'EchoJob'"),
        ({"succeeds_by": "any"}, "succeeds_by: 'any' is none of target, all"),
        ({"modes": {"Fast": "quick"}}, "modes.Fast: 'quick' is none of local, dist"),
        ({"modes": ["Fast"]}, "modes must be a mapping"),
        ({"hooks": ["x"]}, "hooks must be a mapping"),
        (
            {"hooks": {"services": "a.b.c"}},
            "unknown key 'services' in hooks; there are: environment, objects, pod, validate",
        ),
        ({"hooks": {"pod": 5}}, "hooks.pod must be the full name of a filter, not 5"),
        ({"hooks": {"environment": ["A=b"]}}, "hooks.environment must be a mapping"),
        (
            {"hooks": {"environment": {"A": "{rang}"}}},
            r"hooks.environment.A: unknown placeholder \{rang\} in '\{rang\}'; there are: count",
        ),
        ({"hooks": {"environment": {"A": "{role}"}}}, r"hooks.environment.A: unknown placeholder \{role\}"),
        ({"owns": ["Ingress"]}, "owns: 'Ingress' is none of Service, ConfigMap, Secret"),
        ({"operator_files": {"a.py": "tfImage"}}, "operator_files.a.py: 'tfImage' is none of grpcServerFilePath"),
        ({"files": ["a.py"]}, "the declaration names the file 'a.py', and no reader was given"),
        (
            {"replica_types": {"Leader": {"starts_after": {"Boss": "ready"}}}},
            "replica_types.Leader.starts_after: 'Boss' is none of Leader",
        ),
        (
            {"replica_types": {"A": {}, "B": {"starts_after": {"A": "done"}}}},
            "replica_types.B.starts_after.A: 'done' is none of ready, completed",
        ),
        (
            {"replica_types": {"A": {"starts_after": {"B": "ready"}}, "B": {"starts_after": {"A": "ready"}}}},
            "starts_after: A, B wait for one another",
        ),
        ({"replica_types": {"A": {"starts_after": {"A": "ready"}}}}, "starts_after: A wait for one another"),
        (
            {
                "replica_types": {
                    "A": {},
                    "B": {"starts_after": {"A": "ready", "C": "ready"}},
                    "C": {"starts_after": {"B": "ready"}},
                }
            },
            "starts_after: B, C wait for one another",
        ),
        ({"flavors": []}, "the framework lacks 'flavors'"),
        ({"flavors": {"groups": []}}, "flavors must be a list"),
        ({"flavors": ["v1"]}, r"flavors\[0\] must be a mapping, not 'v1'"),
    ],
)
def test_mistakes(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFramework, match=said):
        loader.framework({**ECHO_DECLARATION, **change})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"froms": 1}, r"unknown key 'froms' in flavors\[0\]; there are: batch_jobs, default_clean_pod_policy,"),
        ({"groups": []}, r"flavors\[0\] lacks 'groups'"),
        ({"groups": "example.com"}, r"flavors\[0\].groups must be a list of strings, not 'example.com'"),
        ({"replicas_layout": ""}, r"flavors\[0\] lacks 'replicas_layout'"),
        ({"replicas_layout": "table"}, r"flavors\[0\].replicas_layout: 'table' is none of list, map, single"),
        (
            {"replicas_layout": "single"},
            r"flavors\[0\].replicas_layout: single is for one replica type, not for Leader, Follower",
        ),
        ({"replicas_fields": []}, r"flavors\[0\] lacks 'replicas_fields'"),
        ({"port_fields": "port"}, r"flavors\[0\].port_fields must be a list of strings"),
        ({"names": "uid"}, "names: 'uid' is none of runtime-id, job"),
        ({"status": "v2"}, "status: 'v2' is none of v1alpha1, v1"),
        ({"host_port": "uid"}, "host_port: 'uid' is none of default, job"),
        ({"fails_by": "all"}, "fails_by: 'all' is none of target, any"),
        ({"environment_in": "some"}, "environment_in: 'some' is none of named, all"),
        ({"exit_codes": [1]}, r"flavors\[0\].exit_codes must be a mapping"),
        ({"exit_codes": {"permanent": [1]}}, r"unknown key 'permanent' in flavors\[0\].exit_codes"),
        ({"restart_policies": ["Often"]}, "restart_policies: 'Often' is none of Always"),
        ({"restart_policies": "Never"}, "restart_policies must be a list of strings"),
        ({"service": "name"}, "service: 'name' is none of runtime-id, job"),
        ({"managers": "me"}, "managers must be a list of strings"),
        ({"success_policies": {"All": "Boss"}}, r"success_policies.All: 'Boss' is none of Leader, Follower"),
        ({"elastic": {"field": "a", "type": "Follower", "x": 1}}, "unknown key 'x' in .*elastic; there are: field"),
        ({"elastic": {"type": "Follower"}}, "elastic lacks 'field'"),
        ({"elastic": {"field": "a"}}, "elastic lacks 'type'"),
        ({"exit_codes": {"retryable": ["1-"]}}, "'1-' is neither a code nor a range like 128-255"),
        ({"exit_codes": {"retryable": ["255-128"]}}, "'255-128' is neither"),
        ({"exit_codes": {"retryable": [256]}}, "256 is neither"),
        ({"labels": {"l": "{indx}"}}, r"flavors\[0\].labels.l: unknown placeholder \{indx\}"),
        ({"template_optional": ["Boss"]}, r"flavors\[0\].template_optional: 'Boss' is none of Leader, Follower"),
        ({"replica_fields": {"Boss": {"x": {}}}}, r"flavors\[0\].replica_fields: 'Boss' is none of Leader, Follower"),
        ({"replica_fields": {"Leader": "x"}}, r"flavors\[0\].replica_fields.Leader must be a mapping"),
        ({"labels": ["l"]}, r"flavors\[0\].labels must be a mapping"),
        ({"batch_jobs": ["Boss"]}, r"flavors\[0\].batch_jobs: 'Boss' is none of Leader, Follower"),
        (
            {"batch_jobs": ["Leader"]},
            r"flavors\[0\].batch_jobs: a batch Job runs one replica, Leader: set its indexed to false",
        ),
        (
            {"default_restart_policies": {"Leader": "Often"}},
            r"flavors\[0\].default_restart_policies.Leader: 'Often' is none of Always",
        ),
        ({"default_restart_policies": {"Boss": "Never"}}, "default_restart_policies: 'Boss' is none of Leader"),
        ({"version": 1}, r"flavors\[0\].version must be a string, not 1"),
        ({"starts_in_order": ["Boss"]}, r"flavors\[0\].starts_in_order: 'Boss' is none of Leader, Follower"),
        ({"succeeds_together": ["Boss"]}, r"flavors\[0\].succeeds_together: 'Boss' is none of Leader, Follower"),
        ({"waits_in_pod": ["Boss"]}, r"flavors\[0\].waits_in_pod: 'Boss' is none of Leader, Follower"),
        ({"running_keeps": ["Secret"]}, r"flavors\[0\].running_keeps: 'Secret' is none of Service, ConfigMap"),
    ],
)
def test_mistakes_in_a_flavor(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFramework, match=said):
        echo_framework_of_flavor(**change)


def test_a_type_that_a_batch_job_runs_needs_the_right() -> None:
    types = {"Leader": {"indexed": False, "maximum": 1}}
    flavors = [{**flavor, "batch_jobs": ["Leader"]} for flavor in ECHO_DECLARATION["flavors"]]
    with pytest.raises(InvalidFramework, match=r"flavors\[0\].batch_jobs: add Job to owns"):
        loader.framework({**ECHO_DECLARATION, "replica_types": types, "flavors": flavors})


def test_type_named() -> None:
    assert MXNET.type_named("TUNER") == ReplicaType("Tuner")
    assert MXNET.type_named("scheduler") == ReplicaType("Scheduler", maximum=1, coordinates=True)
    assert MXNET.type_named("TUNERTRACKER") == ReplicaType("TunerTracker", long_running=True)
    assert MXNET.type_named("master") is None


def test_mxnet_is_declared_for_all_its_groups() -> None:
    spoken = [(group, d.replicas_layout, d.status) for d in MXNET.flavors for group in d.groups]
    assert spoken == [
        ("fioravanzo.org", "list", "v1alpha1"),
        ("mpba.fbk.eu", "list", "v1alpha1"),
        ("kubeflow.org", "list", "v1alpha1"),
        ("kubeflow.org", "map", "v1"),
    ]


def test_a_validation_filter_gets_the_spec_fields() -> None:
    def errors(cluster: Any) -> list[str]:
        return [f"spec.color: {cluster['spec'].get('color')} is too loud"] if cluster["spec"] else []

    fields = {"color": {"type": "string"}, "size": {"type": "string", "x-dljob-affects": "nothing"}}
    framework = loader.framework({**ECHO_DECLARATION, "fields": fields}, {"validate": errors})
    assert parse_job(echojob(size="large"), framework).options == {}
    assert parse_job(echojob(shape="round"), framework).options == {}
    with pytest.raises(InvalidJob, match=r"^spec\.color: red is too loud$"):
        parse_job(echojob(color="red", shape="round"), framework)


def test_a_flavor_without_a_runtime_id_field() -> None:
    with pytest.raises(InvalidFramework, match=r"flavors\[0\].runtime_id_fields is empty"):
        echo_framework_of_flavor(runtime_id_fields=[])


def test_a_variable_from_elsewhere() -> None:
    source = {"secretKeyRef": {"name": "hello-key", "key": "key"}}
    framework = loader.framework(
        {**ECHO_DECLARATION, "hooks": {"environment": "a.b.c"}},
        {"environment": lambda cluster: {"KEY": source, "N": "1"}},
    )
    (container,) = manifest_of(parse_job(echojob(1), framework), "leader", 0, framework=framework)["spec"]["containers"]
    assert container["env"] == [{"name": "KEY", "valueFrom": source}, {"name": "N", "value": "1"}]


def test_a_variable_from_elsewhere_in_a_large_job() -> None:
    def environment(cluster: Any) -> Any:
        hosts = ",".join(m["host"] for members in cluster["replicas"].values() for m in members)
        return {"KEY": {"fieldRef": {"fieldPath": "status.podIP"}}, "HOSTS": hosts}

    framework = loader.framework({**ECHO_DECLARATION, "hooks": {"environment": "a.b.c"}}, {"environment": environment})
    pod = FakeCluster(echojob(200), framework).planned().pods[0]
    names = [(e["name"], *(set(e) - {"name"})) for e in pod["spec"]["containers"][0]["env"]]
    assert names == [("KEY", "valueFrom"), ("DLJOB_SHARED_HOSTS", "valueFrom"), ("HOSTS", "value")]
