"""Parsing jobs of all flavors; errors name the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.flavors import flavor_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_ALL, SUCCEEDS_BY_TARGET
from ansible_collections.dljob.operator.plugins.module_utils.values.job import (
    RunPolicy,
    SchedulingPolicy,
    SuccessTarget,
)
from support.builders import (
    MXNET,
    TENSORFLOW,
    UID,
    MXJob,
    Resource,
    echo_framework,
    echo_framework_of_flavor,
    echojob,
    mxjob,
    tfjob,
)
from support.upstream_manifests import MXJOBS, from_each_source, load

FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")
WITH_OPTIONS = ("v1", "v1alpha1", "fioravanzo")


def problems(resource: Resource) -> tuple[str, ...]:
    with pytest.raises(InvalidJob) as caught:
        parse_job(resource, MXNET)
    return caught.value.problems


def problem(resource: Resource) -> str:
    (only,) = problems(resource)
    return only


def spec_of(resource: Resource, type_: str) -> Any:
    """The replica spec of a type, in any flavor."""
    spec = resource["spec"]
    if isinstance(spec, dict) and "mxReplicaSpecs" in spec:
        return spec["mxReplicaSpecs"][type_]
    entries = spec if isinstance(spec, list) else spec["replicaSpecs"]
    return next(e for e in entries if type_.upper() in (e.get("mxReplicaType"), e.get("replicaType")))


# --- parsed fields


@pytest.mark.parametrize("flavor", FLAVORS)
def test_types_and_counts(flavor: str) -> None:
    job = mxjob().flavor(flavor).servers(2).workers(3).job()
    assert [(g.type, g.replicas) for g in job.groups] == [("Scheduler", 1), ("Server", 2), ("Worker", 3)]
    assert job.total == 6
    assert job.success_target == SuccessTarget("Scheduler", 0)
    assert job.elastic_type == ""
    assert job.runtime_id == naming.runtime_id(UID)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_one_replica_where_no_number_is_given(flavor: str) -> None:
    resource = mxjob().flavor(flavor).resource()
    del spec_of(resource, "Scheduler")["replicas"]
    assert parse_job(resource, MXNET).total == 1


@pytest.mark.parametrize("spelling", ["WORKER", "worker", "Worker", "wOrKeR"])
def test_types_in_any_case(spelling: str) -> None:
    resource = mxjob().v1().resource()
    specs = resource["spec"]["mxReplicaSpecs"]
    specs[spelling] = {**specs["Scheduler"], "replicas": 2}
    assert [g.type for g in parse_job(resource, MXNET).groups] == ["Scheduler", "Worker"]


@pytest.mark.parametrize(
    ("flavor", "default"), [("v1", 9091), ("v1alpha1", 9091), ("fioravanzo", 9000), ("mpba", 9000)]
)
def test_default_port(flavor: str, default: int) -> None:
    assert {g.port for g in mxjob().flavor(flavor).workers(1).job().groups} == {default}


def test_ps_root_port() -> None:
    job = mxjob().v1alpha1().entry("Scheduler", PsRootPort=9000).job()
    assert job.groups[0].port == 9000


@pytest.mark.parametrize("field", ["PsRootPort", "mxPort"])
def test_fioravanzo_knows_two_names_of_the_port(field: str) -> None:
    assert mxjob().fioravanzo().entry("Scheduler", **{field: 9999}).job().groups[0].port == 9999


def test_v1_takes_the_named_port_of_the_template() -> None:
    ports = [{"name": "metrics", "containerPort": 80}, {"name": "mxjob-port", "containerPort": 7777}]
    assert mxjob().v1().container("Scheduler", ports=ports).job().groups[0].port == 7777


def test_v1alpha1_does_not_look_at_the_ports_of_the_template() -> None:
    ports = [{"name": "", "containerPort": 80}]
    assert mxjob().v1alpha1().container("Scheduler", ports=ports).job().groups[0].port == 9091


@pytest.mark.parametrize(
    ("flavor", "template", "entry", "policy"),
    [
        ("v1", None, None, "Never"),
        ("v1", "Always", None, "Never"),  # the template's is ignored
        ("v1", "Always", "OnFailure", "OnFailure"),
        ("v1", None, "ExitCode", "ExitCode"),
        ("v1alpha1", None, None, "OnFailure"),
        ("v1alpha1", "Never", None, "Never"),
        ("v1alpha1", "Never", "Always", "Always"),
        ("mpba", "Always", None, "Always"),
    ],
)
def test_restart_policy(flavor: str, template: str | None, entry: str | None, policy: str) -> None:
    made = mxjob().flavor(flavor)
    if template:
        made.pod("Scheduler", restartPolicy=template)
    if entry:
        made.entry("Scheduler", restartPolicy=entry)
    assert made.job().groups[0].restart_policy == policy


@pytest.mark.parametrize("flavor", WITH_OPTIONS)
def test_runtime_id_of_the_spec(flavor: str) -> None:
    assert mxjob().flavor(flavor).option(RuntimeId="aycw").job().runtime_id == "aycw"


@pytest.mark.parametrize(("flavor", "policy"), [("v1", "None"), ("v1alpha1", "Running"), ("mpba", "Running")])
def test_default_clean_pod_policy(flavor: str, policy: str) -> None:
    assert mxjob().flavor(flavor).job().run_policy == RunPolicy(clean_pod_policy=policy)


@pytest.mark.parametrize(
    "place",
    [
        lambda job: job.run_policy(cleanPodPolicy="All"),
        lambda job: job.option(cleanPodPolicy="All"),
        lambda job: job.option(cleanupPodPolicy="All"),
    ],
)
def test_clean_pod_policy_at_each_of_its_places(place: Callable[[MXJob], MXJob]) -> None:
    assert place(mxjob().v1alpha1()).job().run_policy.clean_pod_policy == "All"


def test_run_policy() -> None:
    job = mxjob().run_policy(
        ttlSecondsAfterFinished=0,
        activeDeadlineSeconds=60,
        backoffLimit=3,
        pendingTimeoutSeconds=600,
        forceDeleteAfterSeconds=0,
        suspend=True,
        managedBy="kueue.x-k8s.io/multikueue",
        schedulingPolicy={"priorityClass": "high"},
    )
    assert job.option(schedulerName="volcano").job().run_policy == RunPolicy(
        clean_pod_policy="None",
        ttl_seconds_after_finished=0,
        active_deadline_seconds=60,
        backoff_limit=3,
        pending_timeout_seconds=600,
        force_delete_after_seconds=0,
        suspend=True,
        managed_by="kueue.x-k8s.io/multikueue",
        scheduler_name="volcano",
        scheduling=SchedulingPolicy(priority_class="high"),
    )


@pytest.mark.parametrize("spelling", ["Worker", "WORKER"])
def test_termination_policy_names_the_chief(spelling: str) -> None:
    assert mxjob().v1alpha1().workers(2).chief(spelling, 1).job().success_target == SuccessTarget("Worker", 1)


def test_termination_policy_without_an_index_means_the_first_replica() -> None:
    job = mxjob().v1alpha1().workers(2).option(terminationPolicy={"chief": {"replicaName": "Worker"}}).job()
    assert job.success_target == SuccessTarget("Worker", 0)


def test_a_chief_of_a_negative_index() -> None:
    text = problem(mxjob().v1alpha1().workers(2).chief("Worker", -1).resource())
    assert text.startswith("spec.terminationPolicy.chief.replicaIndex is -1: it must be between 0 and ")


def test_termination_policy_without_a_name_means_the_usual_chief() -> None:
    job = mxjob().v1alpha1().option(terminationPolicy={"chief": {"replicaIndex": 0}}).job()
    assert job.success_target == SuccessTarget("Scheduler", 0)


@pytest.mark.parametrize(
    ("policy", "chiefs", "succeeds_by"),
    [
        ({}, 0, SUCCEEDS_BY_TARGET),
        ({"successPolicy": ""}, 0, SUCCEEDS_BY_TARGET),
        ({"successPolicy": "AllWorkers"}, 0, SUCCEEDS_BY_ALL),
        ({"successPolicy": "AllWorkers"}, 1, SUCCEEDS_BY_TARGET),  # the chief decides
    ],
)
def test_the_success_policy_of_a_type_has_an_effect_where_it_decides(
    policy: dict[str, Any], chiefs: int, succeeds_by: str
) -> None:
    counts = {"worker": 2, **({"chief": chiefs} if chiefs else {})}
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", **counts)
    resource["spec"].update(policy)
    assert parse_job(resource, TENSORFLOW).succeeds_by == succeeds_by


def test_local_job_needs_no_scheduler_and_its_worker_decides() -> None:
    job = mxjob().v1alpha1().without("Scheduler").workers(1).option(jobMode="local").job()
    assert (job.mode, job.success_target) == ("local", SuccessTarget("Worker", 0))


@pytest.mark.parametrize(
    ("spelling", "mode"), [("dist", "dist"), ("local", "local"), ("MXTrain", "dist"), ("", "dist")]
)
def test_job_mode(spelling: str, mode: str) -> None:
    assert mxjob().v1alpha1().option(jobMode=spelling).job().mode == mode


def test_a_type_without_replicas_is_not_the_success_target() -> None:
    job = mxjob().v1alpha1().scheduler(0).workers(1).option(jobMode="local").job()
    assert job.success_target == SuccessTarget("Worker", 0)


def test_which_object_it_is() -> None:
    resource = mxjob("digits").v1().resource()
    resource["metadata"] |= {"namespace": "vision", "generation": 7}
    job = parse_job(resource, MXNET)
    assert (job.namespace, job.name, job.uid, job.generation) == ("vision", "digits", UID, 7)
    assert (job.api_version, job.api_group, job.kind) == ("kubeflow.org/v1", "kubeflow.org", "MXJob")
    del resource["metadata"]["namespace"]
    assert parse_job(resource, MXNET).namespace == "default"


def test_the_template_is_the_users_own() -> None:
    resource = mxjob().v1alpha1().resource()
    job = parse_job(resource, MXNET)
    assert job.groups[0].template == resource["spec"]["replicaSpecs"][0]["template"]


@pytest.mark.parametrize("path", from_each_source(*MXJOBS))
def test_upstream_manifests(path: Path) -> None:
    job = parse_job(load(path), MXNET)
    assert [(g.type, g.replicas) for g in job.groups] == [("Scheduler", 1), ("Server", 1), ("Worker", 1)]
    assert job.groups[0].port == 9000


# --- which flavor


def test_the_layout_determines_the_flavor_not_the_version() -> None:
    resource = mxjob().v1alpha1().resource()
    resource["apiVersion"] = "kubeflow.org/v1"  # the version that the CRD stores
    assert parse_job(resource, MXNET).flavor.status == "v1alpha1"


def test_without_a_known_field_the_newest_flavor_is_used() -> None:
    assert (
        problem({**mxjob().resource(), "spec": {}}) == "spec.mxReplicaSpecs is missing: list the job's replicas there"
    )
    assert flavor_of({**mxjob().v1alpha1().resource(), "spec": {}}, MXNET).status == "v1"


def test_of_several_spellings_the_first_is_asked_for() -> None:
    framework = echo_framework_of_flavor(replicas_fields=["replicaSpecs", "replica_specs"])
    with pytest.raises(InvalidJob) as caught:
        parse_job({**echojob(), "spec": {}}, framework)
    assert caught.value.problems[0] == "spec.replicaSpecs is missing: list the job's replicas there"


def test_a_bare_list_is_needed_where_it_is_the_spec() -> None:
    assert problem({**mxjob().mpba().resource(), "spec": {}}) == "spec: a list of replicas is needed"


def test_two_flavors_at_once() -> None:
    resource = mxjob().v1().resource()
    resource["spec"]["replicaSpecs"] = []
    assert (
        problem(resource)
        == "spec has mxReplicaSpecs and replicaSpecs, which are spellings of one field: keep one of them"
    )


def test_an_unknown_group() -> None:
    text = problem({**mxjob().resource(), "apiVersion": "example.com/v1"})
    assert text == (
        "apiVersion: mxnet has no jobs of the group 'example.com'; its groups are fioravanzo.org, kubeflow.org, mpba.fbk.eu"
    )


def test_a_kind_of_another_framework() -> None:
    assert (
        problem({**mxjob().resource(), "kind": "TFJob"}) == "kind: 'TFJob' is not a kind of mxnet; its kinds are: MXJob"
    )


@pytest.mark.parametrize(("types", "of_flavor"), [(["Worker"], {}), (["Leader", "Worker"], {"types": ["Worker"]})])
def test_one_replica_spec_where_the_flavor_has_one_type(types: list[str], of_flavor: dict[str, Any]) -> None:
    flavor = {"groups": ["example.com"], "replicas_layout": "single", "replicas_fields": ["replicaSpecs"], **of_flavor}
    declared = {"replica_types": {name: {} for name in types}, "success_target": types}
    framework = echo_framework(**declared, kinds=[], flavors=[flavor])
    resource = echojob()
    resource["spec"]["replicaSpecs"] = {**resource["spec"]["replicaSpecs"]["Leader"], "replicas": 3}
    assert [(g.type, g.replicas) for g in parse_job(resource, framework).groups] == [("Worker", 3)]


def test_a_list_of_one_type_needs_no_type_field() -> None:
    flavor = {
        "groups": ["example.com"],
        "replicas_layout": "list",
        "replicas_fields": ["replica_specs", "replicaSpecs"],
    }
    framework = echo_framework(replica_types={"Worker": {}}, flavors=[flavor])
    resource = echojob()
    template = resource["spec"]["replicaSpecs"]["Leader"]["template"]
    resource["spec"] = {"replicaSpecs": [{"template": template}]}
    assert parse_job(resource, framework).groups[0].type == "Worker"


# --- errors


@pytest.mark.parametrize("flavor", FLAVORS[1:])
def test_no_scheduler(flavor: str) -> None:
    text = problem(mxjob().flavor(flavor).without("Scheduler").workers(1).resource())
    assert text == "the job has 0 Scheduler replicas: it needs exactly 1 Scheduler"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_two_schedulers(flavor: str) -> None:
    said = "at most" if flavor == "v1" else "exactly"
    assert problem(mxjob().flavor(flavor).scheduler(2).resource()).endswith(
        f".replicas is 2: a job has {said} 1 Scheduler"
    )


def test_two_entries_of_schedulers() -> None:
    resource = mxjob().v1alpha1().resource()
    resource["spec"]["replicaSpecs"] *= 2
    assert problem(resource).startswith("spec.replicaSpecs[0] and spec.replicaSpecs[1]: Scheduler is listed twice")


def test_misspelt_type_in_a_list() -> None:
    resource = mxjob().v1alpha1().workers(1).resource()
    resource["spec"]["replicaSpecs"][1]["mxReplicaType"] = "WROKER"
    assert problem(resource) == (
        "spec.replicaSpecs[1].mxReplicaType: 'WROKER' is not a replica type of mxnet; it must be one of "
        "SCHEDULER, SERVER, WORKER"
    )


def test_misspelt_type_in_a_map() -> None:
    text = problem(mxjob().v1().replicas("Wroker", 1).resource())
    assert text.startswith(
        "spec.mxReplicaSpecs.Wroker: 'Wroker' is not a replica type of mxnet; it must be one of Scheduler"
    )


def test_type_left_out() -> None:
    resource = mxjob().mpba().resource()
    del resource["spec"][0]["replicaType"]
    assert problem(resource).startswith("spec[0].replicaType is missing: it must be one of SCHEDULER")


@pytest.mark.parametrize("flavor", FLAVORS)
def test_no_container_of_the_framework(flavor: str) -> None:
    text = problem(mxjob().flavor(flavor).container("Scheduler", name="main").resource())
    assert text.endswith(
        ".template.spec.containers: a container named 'mxnet' is required, the one that runs mxnet; there are: main"
    )


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (-1, "is -1: it must be between 0 and 1000000"),
        ("2", "must be a whole number, not '2'"),
        (1.5, "must be a whole number, not 1.5"),
        (True, "must be a whole number, not True"),
    ],
)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_number_of_replicas(flavor: str, count: Any, said: str) -> None:
    assert problem(mxjob().flavor(flavor).entry("Scheduler", replicas=count).resource()).endswith(f".replicas {said}")


@pytest.mark.parametrize("port", [1, 65535])
def test_the_least_and_the_greatest_port(port: int) -> None:
    job = mxjob().v1alpha1().entry("Scheduler", PsRootPort=port).job()
    assert job.groups[0].port == port


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_port_out_of_range(port: int) -> None:
    text = problem(mxjob().v1alpha1().entry("Scheduler", PsRootPort=port).resource())
    assert text == f"spec.replicaSpecs[0].PsRootPort is {port}: it must be between 1 and 65535"


def test_named_port_out_of_range() -> None:
    ports = [{"name": "mxjob-port", "containerPort": 70000}]
    text = problem(mxjob().v1().container("Scheduler", ports=ports).resource())
    assert text == (
        "spec.mxReplicaSpecs.Scheduler.template.spec.containers: containerPort mxjob-port of mxnet is 70000: "
        "it must be between 1 and 65535"
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"jobMode": "solo"}, "spec.jobMode: 'solo' is none of local, dist, MXTrain, MXTune"),
        ({"runPolicy": []}, "spec.runPolicy must be a map"),
        (
            {"runPolicy": {"cleanPodPolicy": "Some"}},
            "spec.runPolicy.cleanPodPolicy: 'Some' is none of All, Running, None",
        ),
        (
            {"runPolicy": {"progress": "rank0"}},
            "spec.runPolicy.progress: 'rank0' is none of None, Rank0, AllRanks",
        ),
        (
            {"runPolicy": {"progress": ["Rank0"]}},
            "spec.runPolicy.progress: ['Rank0'] is none of None, Rank0, AllRanks",
        ),
        ({"runPolicy": {"backoffLimit": -1}}, "spec.runPolicy.backoffLimit is -1: it must be between 0 and 2147483647"),
        ({"runPolicy": {"activeDeadlineSeconds": 0}}, "is 0: it must be between 1 and 2147483647"),
        ({"runPolicy": {"ttlSecondsAfterFinished": "1h"}}, "must be a whole number, not '1h'"),
        ({"runPolicy": {"suspend": "true"}}, "spec.runPolicy.suspend must be true or false, not 'true'"),
        ({"runPolicy": {"suspend": 1}}, "spec.runPolicy.suspend must be true or false, not 1"),
        ({"runPolicy": {"managedBy": []}}, "spec.runPolicy.managedBy must be a string, not []"),
        ({"schedulerName": 1}, "spec.schedulerName must be a string, not 1"),
        ({"RuntimeId": "No_Label"}, "spec.RuntimeId: 'No_Label' must hold only lower-case letters, digits and '-'"),
        ({"RuntimeId": "newline\n"}, "must hold only lower-case letters, digits and '-'"),
    ],
)
@pytest.mark.parametrize("flavor", WITH_OPTIONS)
def test_options(flavor: str, option: dict[str, Any], said: str) -> None:
    assert said in problem(mxjob().flavor(flavor).option(**option).resource())


@pytest.mark.parametrize(("type_", "index"), [("Worker", 2), ("Server", 0), ("Boss", 0)])
def test_a_chief_that_the_job_does_not_have(type_: str, index: int) -> None:
    text = problem(mxjob().v1alpha1().workers(2).chief(type_, index).resource())
    assert text == f"spec.terminationPolicy.chief: the job has no replica {type_} {index}"


def test_a_chief_that_the_job_does_not_have_beside_a_success_policy() -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2)
    resource["spec"] |= {"terminationPolicy": {"chief": {"replicaName": "PS"}}, "successPolicy": "AllWorkers"}
    with pytest.raises(InvalidJob) as caught:
        parse_job(resource, TENSORFLOW)
    assert caught.value.problems == ("spec.terminationPolicy.chief: the job has no replica PS 0",)


def test_restart_policy_that_there_is_not() -> None:
    text = problem(mxjob().v1().entry("Scheduler", restartPolicy="Sometimes").resource())
    assert text.startswith("spec.mxReplicaSpecs.Scheduler.restartPolicy: 'Sometimes' is none of Always, OnFailure")


def test_all_errors_are_reported_together() -> None:
    resource = mxjob().v1alpha1().workers(-1).entry("Scheduler", PsRootPort=70000).option(jobMode="x").resource()
    assert len(problems(resource)) == 3


@pytest.mark.parametrize("spec", [None, 1, "x", [], {}, {"mxReplicaSpecs": None}, {"mxReplicaSpecs": []}])
def test_malformed_specs(spec: Any) -> None:
    assert problem({**mxjob().resource(), "spec": spec})


@pytest.mark.parametrize("entry", [None, 1, "x", []])
def test_malformed_replica_specs(entry: Any) -> None:
    resource = mxjob().v1().resource()
    resource["spec"]["mxReplicaSpecs"]["Worker"] = entry
    assert problem(resource) == "spec.mxReplicaSpecs.Worker must be a map with replicas and template"


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("template", [None, "x", []])
def test_malformed_templates(flavor: str, template: Any) -> None:
    text = problem(mxjob().flavor(flavor).entry("Scheduler", template=template).resource())
    assert text.endswith(".template is missing: describe the pod there")


@pytest.mark.parametrize(
    ("flavor", "field", "said"),
    [
        ("v1alpha1", "replicaSpecs", "spec.replicaSpecs must be a list of replica specs"),
        ("v1", "mxReplicaSpecs", "spec.mxReplicaSpecs must be a map of replica type to replica spec"),
    ],
)
def test_replicas_in_the_wrong_form(flavor: str, field: str, said: str) -> None:
    assert said in problems(mxjob().flavor(flavor).option(**{field: "x"}).resource())


def test_a_job_without_replicas() -> None:
    framework = echo_framework_of_flavor()
    resource = echojob(0)
    resource["spec"]["replicaSpecs"]["Leader"]["replicas"] = 0
    with pytest.raises(InvalidJob) as caught:
        parse_job(resource, framework)
    assert caught.value.problems[0] == "the job has no replicas: give at least one replica type a count above 0"
