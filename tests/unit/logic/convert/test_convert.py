"""Conversion of manifests: every job of examples/, of tests/manifests and of the upstream manifests, to each target."""

from __future__ import annotations

import copy
import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.convert.convert import convert, declared, is_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.convert.model import (
    TARGETS,
    Conversion,
    NotConvertible,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import PodContext, build_pod
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate
from devtools.build.images.manifests import folders
from support.builders import (
    CAFFE2,
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    ROOT,
    TENSORFLOW,
    UID,
    XGBOOST,
    Resource,
    caffe2job,
    grouped,
    jaxjob,
    mpijob,
    mpijob_v1,
    mxjob,
    pytorchjob,
    tf_template,
    tfjob,
)

V1, DLJOB, TRAINJOB = TARGETS
FRAMEWORKS = {f.name: f for f in (MXNET, TENSORFLOW, PYTORCH, JAX, PADDLE, XGBOOST, MPI, CAFFE2)}
DECLARED = [
    declared(yaml.safe_load((ROOT / f"roles/{name}/vars/main.yml").read_text())[f"{name}_framework"])
    for name in FRAMEWORKS
]
NO = "not converted"

# by file: what is lost on the way to kubeflow.org/v1, to a DLJob and to a TrainJob
NO_RUNTIME = ([], [], NO)
ONLY_DLJOB = (NO, [], NO)
WITHOUT_SERVERS = (["spec.replicaSpecs[2]"], ["spec.replicaSpecs[2]"], NO)
EXPECTED: dict[str, tuple[Any, Any, Any]] = {
    # examples
    "caffe2-digits-nfs.yaml": ONLY_DLJOB,
    "caffe2-digits-redis.yaml": ONLY_DLJOB,
    "caffe2-none.yaml": ONLY_DLJOB,
    "dljob-digits.yaml": (NO, NO, NO),
    "failure-report.yaml": NO_RUNTIME,
    "jax-digits.yaml": ([], [], []),
    "mpi-digits.yaml": ONLY_DLJOB,
    "mpi-fsgroup.yaml": ONLY_DLJOB,
    "mpi-v1-digits.yaml": (NO, NO, NO),
    "mxnet-cleanup.yaml": NO_RUNTIME,
    "mxnet-digits-v1alpha1.yaml": NO_RUNTIME,
    "mxnet-digits.yaml": NO_RUNTIME,
    "mxnet-gpu-shared-volume.yaml": NO_RUNTIME,
    "mxnet-list.yaml": NO_RUNTIME,
    "mxnet-local.yaml": ONLY_DLJOB,
    "mxnet-restart-job.yaml": NO_RUNTIME,
    "paddle-digits.yaml": NO_RUNTIME,
    "policy-backoff.yaml": NO_RUNTIME,
    "policy-deadline.yaml": NO_RUNTIME,
    "policy-failure-rules.yaml": NO_RUNTIME,
    "policy-restarts-within.yaml": NO_RUNTIME,
    "policy-stall.yaml": NO_RUNTIME,
    "policy-suspend.yaml": NO_RUNTIME,
    "policy-ttl.yaml": NO_RUNTIME,
    "pytorch-digits.yaml": ([], [], ["spec.pytorchReplicaSpecs.Master.template.spec.containers.command"]),
    "pytorch-elastic.yaml": ([], [], ["spec.elasticPolicy"]),
    "pytorch-etcd.yaml": ([], [], ["spec.elasticPolicy"]),
    "pytorch-disruption-budget.yaml": (
        [],
        [],
        [
            "spec.pytorchReplicaSpecs.Master.template.spec.containers.command",
            "spec.pytorchReplicaSpecs.Master.template.spec.terminationGracePeriodSeconds",
            "spec.runPolicy.cleanPodPolicy",
        ],
    ),
    "pytorch-groups.yaml": (
        [],
        [],
        [
            "spec.pytorchReplicaSpecs.Master.template.spec.containers.command",
            "spec.pytorchReplicaSpecs.Worker.groups",
        ],
    ),
    "pytorch-progress.yaml": ([], [], ["spec.runPolicy.progress"]),
    "tensorflow-accelerators.yaml": NO_RUNTIME,
    "tensorflow-chief-evaluator.yaml": NO_RUNTIME,
    "tensorflow-digits-v1alpha1.yaml": WITHOUT_SERVERS,
    "tensorflow-digits.yaml": NO_RUNTIME,
    "tensorflow-tensorboard.yaml": NO_RUNTIME,
    "xgboost-digits.yaml": ([], [], ["spec.xgbReplicaSpecs.Master.template.spec.containers"]),
    "xgboost-lightgbm.yaml": ([], [], ["spec.xgbReplicaSpecs.Master.template.spec.containers"]),
    # the manifests of the early operators
    "caffe2-redis.yaml": ONLY_DLJOB,
    "dl-operator-mxjob.yaml": NO_RUNTIME,
    "mx_job_dist.yaml": NO_RUNTIME,
    "mxjob-cifar-gpu.yaml": NO_RUNTIME,
    "mxjob-linear-dist.yaml": NO_RUNTIME,
    "tf-smoke-gpu.yaml": NO_RUNTIME,
    "tf-tensorboard-azure.yaml": NO_RUNTIME,
    "tf-tensorboard-gke.yaml": NO_RUNTIME,
    "tf_job.yaml": WITHOUT_SERVERS,
}


def jobs_in(path: Path) -> list[Resource]:
    return [d for d in yaml.safe_load_all(path.read_text(encoding="utf-8")) if d and is_job(d, DECLARED)]


FILES = sorted([*(ROOT / "examples").glob("*.yaml"), *(path for f in folders() for path in f.glob("*.yaml"))])
SOURCES = [pytest.param(path, job, id=f"{path.parent.name}/{path.name}") for path in FILES for job in jobs_in(path)]


def converted(job: Resource, to: str) -> Conversion | None:
    try:
        return convert(job, to, DECLARED)
    except NotConvertible as e:
        assert ": " in str(e)
        return None


def parsed(manifest: Any) -> DLJob:
    """The converted job, as the API server would store it."""
    made = {**manifest, "metadata": {**manifest["metadata"], "uid": UID, "namespace": "default", "generation": 1}}
    if made["kind"] == "DLJob":
        adapted = {name: any_framework.adapt(framework) for name, framework in FRAMEWORKS.items()}
        return any_framework.parse_any(made, any_framework.choose(made, adapted))
    framework = next(f for f in FRAMEWORKS.values() if made["kind"] in f.kinds)
    return parse_job(made, framework)


def test_each_job_has_a_row() -> None:
    assert sorted({path.name for path in FILES if jobs_in(path)}) == sorted(EXPECTED)


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize(("path", "job"), SOURCES)
def test_what_is_lost(path: Path, job: Resource, to: str) -> None:
    before = copy.deepcopy(job)
    found = converted(job, to)
    expected = EXPECTED[path.name][TARGETS.index(to)]
    assert (sorted({loss.field for loss in found.report.losses}) if found else NO) == expected
    assert job == before


@pytest.mark.parametrize("to", [V1, DLJOB])
@pytest.mark.parametrize(("path", "job"), SOURCES)
def test_the_converted_job_has_the_same_replicas(path: Path, job: Resource, to: str) -> None:
    found = converted(job, to)
    if found is None or found.report.losses:
        return
    source, target = parsed(job), parsed(found.manifest)
    assert [(g.type, g.replicas) for g in target.groups] == [(g.type, g.replicas) for g in source.groups]
    assert [g.containers for g in target.groups] == [g.containers for g in source.groups]
    assert target.success_target == source.success_target
    assert (target.succeeds_by, target.mode, target.elastic_type) == (
        source.succeeds_by,
        source.mode,
        source.elastic_type,
    )
    assert target.run_policy == source.run_policy
    assert (target.options, target.object_options) == (source.options, source.object_options)


def pods_of(manifest: Any) -> list[Any]:
    job = parsed(manifest)
    (framework,) = (f for f in FRAMEWORKS.values() if f.container in job.groups[0].containers)
    context = PodContext(framework, build_cluster_spec(job, framework), spec_hashes(job))
    pods = [copy.deepcopy(dict(build_pod(job, PodToCreate(g, i, 0), context))) for g, i in job.tasks()]
    for pod in pods:
        del pod["metadata"]["ownerReferences"]
        pod["metadata"]["labels"].pop("dljob.operator/framework", None)
        pod["spec"].pop("subdomain")
        pod["spec"].pop("dnsConfig", None)
    return pods


V1_SOURCES = [
    source
    for source in SOURCES
    # an MPIJob of v1 has no other form
    if (source.values[1]["apiVersion"] == V1 and source.values[1]["kind"] != "MPIJob")  # type: ignore[index]
]


@pytest.mark.parametrize(("path", "job"), V1_SOURCES)
def test_a_dljob_has_the_pods_of_the_v1_job(path: Path, job: Resource) -> None:
    found = converted(job, DLJOB)
    assert found is not None
    assert pods_of(found.manifest) == pods_of(job)


@pytest.mark.parametrize(("path", "job"), V1_SOURCES)
def test_a_v1_job_stays_as_it_is(path: Path, job: Resource) -> None:
    found = converted(job, V1)
    assert found is not None
    assert pods_of(found.manifest) == pods_of(job)
    again = converted(found.manifest, V1)
    assert again is not None
    assert again.manifest == found.manifest


# --- fields of the list layouts


def to_v1(job: Resource) -> Conversion:
    return convert(job, V1, DECLARED)


def notes(conversion: Conversion) -> list[str]:
    return [str(note) for note in conversion.report.notes]


def test_a_job_that_tunes_stays_one() -> None:
    tuning = mxjob().v1().without("Scheduler").option(jobMode="MXTune")
    job = tuning.replicas("TunerTracker", 1).replicas("TunerServer", 2).replicas("Tuner", 2).resource()
    for to, place in ((V1, ("jobMode",)), (DLJOB, ("options", "jobMode"))):
        made = convert(job, to, DECLARED)
        assert (made.report.losses, made.report.notes) == ([], [])
        value = made.manifest["spec"]
        for name in place:
            value = value[name]
        assert value == {V1: "MXTune", DLJOB: "local"}[to]
        source, target = parsed(job), parsed(made.manifest)
        assert (target.mode, target.success_target) == ("local", source.success_target)


def test_restart_policies_of_a_list() -> None:
    made = to_v1(mxjob().v1alpha1().servers(1).workers(2).restart("Never").resource())
    replicas = made.manifest["spec"]["mxReplicaSpecs"]
    assert {t: r["restartPolicy"] for t, r in replicas.items()} == {
        "Scheduler": "ExitCode",
        "Server": "OnFailure",
        "Worker": "OnFailure",
    }
    assert all("restartPolicy" not in r["template"]["spec"] for r in replicas.values())
    (note,) = notes(made)
    assert note.startswith("spec.replicaSpecs[0]: restartPolicy becomes ExitCode, with which exit codes from 128 on")
    assert "Here only 130, 137, 138, 143 are." in note


def test_exit_codes_that_are_retried_in_both_flavors_are_not_named() -> None:
    (note,) = [text for text in notes(to_v1(tfjob(master=1, worker=1))) if "restartPolicy becomes ExitCode" in text]
    assert note.startswith("spec.replicaSpecs[0]: ")
    assert "Here only" not in note


@pytest.mark.parametrize("field", ["replicaSpecs", "replica_specs"])
@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        pytest.param({}, False, id="no template"),
        pytest.param({"template": {"spec": {"containers": []}}}, False, id="no container"),
        pytest.param({"template": tf_template()}, True, id="a container"),
        pytest.param({"template": tf_template(), "IsDefaultPS": True}, False, id="the default program all the same"),
    ],
)
def test_parameter_servers_are_kept_where_they_run_a_program_of_their_own(
    fields: Resource, kept: bool, field: str
) -> None:
    job = tfjob(master=1, ps=1)
    job["spec"][field] = job["spec"].pop("replicaSpecs")
    job["spec"][field][1] |= fields
    made = to_v1(job)
    assert list(made.manifest["spec"]["tfReplicaSpecs"]) == (["Master", "PS"] if kept else ["Master"])
    assert (f"spec.{field}[1]" in [loss.field for loss in made.report.losses]) is not kept


def test_other_replicas_without_a_container_are_an_error() -> None:
    job = tfjob(master=1, worker=1)
    del job["spec"]["replicaSpecs"][1]["template"]
    with pytest.raises(NotConvertible, match=r"spec\.replicaSpecs\[1\]"):
        to_v1(job)


@pytest.mark.parametrize(("options", "noted"), [({}, True), ({"tensorboard": {"logDir": "/logs"}}, False)])
def test_the_image_of_the_default_programs(options: Resource, noted: bool) -> None:
    job = tfjob(master=1)
    job["spec"] |= {"tfImage": "tf:1", **options}
    made = to_v1(job)
    assert made.manifest["spec"].get("tfImage") == (None if noted else "tf:1")
    assert any(text.startswith("spec.tfImage: is left out") for text in notes(made)) is noted


def test_always_stays() -> None:
    made = to_v1(mxjob().v1alpha1().workers(1).restart("Always", "Worker").resource())
    assert made.manifest["spec"]["mxReplicaSpecs"]["Worker"]["restartPolicy"] == "Always"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "Running"),
        ({"cleanupPodPolicy": "All"}, "All"),
        ({"cleanPodPolicy": "None"}, "None"),
        ({"runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 2}}, "All"),
    ],
)
def test_the_clean_pod_policy(spec: Any, expected: str) -> None:
    policy = to_v1(mxjob().v1alpha1().workers(1).option(**spec).resource()).manifest["spec"]["runPolicy"]
    assert policy == {**spec.get("runPolicy", {}), "cleanPodPolicy": expected}


def test_the_port() -> None:
    job = mxjob().v1alpha1().workers(1).entry("Scheduler", PsRootPort=9000).resource()
    made = to_v1(job).manifest
    (container,) = made["spec"]["mxReplicaSpecs"]["Scheduler"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "mxjob-port", "containerPort": 9000}]
    (container,) = made["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert "ports" not in container, "a worker has the default port"
    assert parsed(made).groups[0].port == 9000


@pytest.mark.parametrize("flavor", ["fioravanzo", "mpba"])
def test_the_default_port_of_another_flavor_is_written(flavor: str) -> None:
    job = mxjob().flavor(flavor).workers(1).resource()
    (before,) = {group.port for group in parsed(job).groups}
    made = to_v1(job).manifest
    assert {group.port for group in parsed(made).groups} == {before} != {9091}


def test_a_port_that_the_container_has_already_gets_the_name() -> None:
    """With hostNetwork, two ports of one number are refused."""
    job = mxjob().v1alpha1().workers(1).entry("Scheduler", PsRootPort=9000).resource()
    for entry in job["spec"]["replicaSpecs"]:
        (container,) = entry["template"]["spec"]["containers"]
        container["ports"] = [{"name": "mxjob-port", "containerPort": 1}, {"containerPort": 9000}]
    (container,) = to_v1(job).manifest["spec"]["mxReplicaSpecs"]["Scheduler"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 1}, {"containerPort": 9000, "name": "mxjob-port"}]


def test_a_name_that_the_list_layout_does_not_read_becomes_no_port() -> None:
    job = mxjob().v1alpha1().workers(1).resource()
    for entry in job["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["containers"][0]["ports"] = [{"name": "mxjob-port", "containerPort": 3333}]
    before = [group.port for group in parsed(job).groups]
    assert [group.port for group in parsed(to_v1(job).manifest).groups] == before


def test_always_of_the_success_target_becomes_exit_code() -> None:
    """Its permanent exit codes fail the job in the list layouts, whatever the policy of its template."""
    made = to_v1(mxjob().v1alpha1().workers(1).restart("Always", "Scheduler").resource())
    assert made.manifest["spec"]["mxReplicaSpecs"]["Scheduler"]["restartPolicy"] == "ExitCode"
    assert any("becomes ExitCode" in text for text in notes(made))


@pytest.mark.parametrize("of_the_host", [True, False])
def test_a_port_that_becomes_one_of_the_node_is_noted(of_the_host: bool) -> None:
    job = mxjob().v1alpha1().workers(1).entry("Scheduler", PsRootPort=9000).pod("Scheduler", hostNetwork=of_the_host)
    assert any("occupies that port of the node" in text for text in notes(to_v1(job.resource()))) is of_the_host


def test_a_field_that_nothing_reads_is_left_out_and_noted() -> None:
    made = to_v1(mxjob().v1().workers(1).option(color="red").resource())
    assert "color" not in made.manifest["spec"]
    assert notes(made) == ["spec.color: has no effect, and is left out"]


def test_the_runtime_id_is_lost() -> None:
    made = to_v1(mxjob().v1alpha1().workers(1).option(RuntimeId="ab12").resource())
    assert [loss.field for loss in made.report.losses] == ["spec.RuntimeId"]
    assert "RuntimeId" not in made.manifest["spec"]


def test_the_runtime_id_of_a_flavor_that_names_pods_after_the_job_is_noted() -> None:
    made = convert(caffe2job(RuntimeID="ab12"), DLJOB, DECLARED)
    assert "spec.RuntimeID: is left out: pods are named after the job" in notes(made)


def test_metadata() -> None:
    job = mxjob().v1alpha1().workers(1).status(state="Running").resource()
    job["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    made = to_v1(job).manifest
    assert made["metadata"] == {
        "name": "digits",
        "namespace": "default",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
    }
    assert set(made) == {"apiVersion", "kind", "metadata", "spec"}


def test_a_name_that_is_too_long_for_the_target() -> None:
    """In the source its replicas are named by the runtime id. The message has a colon, and no field before it."""
    job = mxjob("x" * 60).v1alpha1().workers(1).resource()
    found = [(loss.field, loss.reason) for loss in to_v1(job).report.losses]
    assert {field for field, reason in found if reason.startswith("metadata.name is")} == {"spec"}


@pytest.mark.parametrize("to", [V1, DLJOB])
def test_a_name_that_the_target_refuses(to: str) -> None:
    job = tfjob(master=1)
    del job["spec"]["RuntimeId"]
    job["metadata"]["name"] = "1st"
    (loss,) = convert(job, to, DECLARED).report.losses
    assert (loss.field, "must start with a letter" in loss.reason) == ("metadata.name", True)


def test_a_command_that_the_api_server_will_refuse_is_converted_as_it_is() -> None:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "i", "command": 1}]}}
    job = changed(lambda spec: spec.update(pytorchReplicaSpecs={"Master": {"replicas": 1, "template": template}}))
    assert convert(job, TRAINJOB, DECLARED).manifest["spec"]["trainer"]["command"] == 1


def test_an_invalid_job() -> None:
    with pytest.raises(NotConvertible, match="Scheduler replicas"):
        to_v1(mxjob().v1alpha1().without("Scheduler").workers(1).resource())


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            {"apiVersion": "kubeflow.org/v1alpha1", "kind": "MPIJob"},
            "kind: kubeflow.org/v1alpha1 MPIJob is no job that",
        ),
        ({"apiVersion": "dljob.operator/v1", "kind": "DLJob"}, "kind: dljob.operator/v1 DLJob is no job that can be"),
    ],
)
def test_a_kind_that_is_no_source(manifest: Resource, message: str) -> None:
    with pytest.raises(NotConvertible, match=message):
        convert(manifest, TRAINJOB, DECLARED)


@pytest.mark.parametrize("target", [V1, DLJOB, TRAINJOB])
def test_a_job_of_a_version_that_is_started_in_another_way(target: str) -> None:
    """An image for kubectl exec needs no sshd, without which the result could not run."""
    with pytest.raises(
        NotConvertible, match="apiVersion: the processes of a job of v1 are started in another way"
    ) as e:
        convert(mpijob_v1(), target, DECLARED)
    assert "than those of v2beta1, which the target has: write it as v2beta1 first" in str(e.value)


def test_v1_has_no_jobs_of_the_newer_version() -> None:
    with pytest.raises(NotConvertible, match=r"kind: kubeflow.org/v1 has no jobs of mpi: convert to dljob"):
        to_v1(mpijob())


def test_a_default_restart_policy_of_one_type() -> None:
    """Never is not the launcher's default, though it is that of the flavor."""
    job = mpijob()
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    replicas = convert(job, DLJOB, DECLARED).manifest["spec"]["replicas"]
    assert replicas["Launcher"]["restartPolicy"] == "Never"
    assert "restartPolicy" not in replicas["Worker"]


# --- DLJob


def test_all_fields_of_the_short_form() -> None:
    job = pytorchjob(1)
    fields = {
        "image": "train:2",
        "command": ["train"],
        "args": ["--epochs=1"],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"cpu": "1"}},
    }
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0] |= fields
    assert convert(job, DLJOB, DECLARED).manifest["spec"]["replicas"] == {"Master": {"count": 1, **fields}}


def test_the_short_form_and_a_template() -> None:
    job = pytorchjob(1, 1, nprocPerNode="2", runPolicy={"backoffLimit": 3})
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = True
    made = convert(job, DLJOB, DECLARED).manifest
    assert made["spec"] == {
        "framework": "pytorch",
        "replicas": {
            "Master": {"count": 1, "image": "train:1"},
            "Worker": {"count": 1, "template": job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]},
        },
        "options": {"nprocPerNode": "2"},
        "runPolicy": {"backoffLimit": 3},
    }


@pytest.mark.parametrize("to", [V1, DLJOB])
def test_the_scheduler_is_kept(to: str) -> None:
    job = pytorchjob(1, schedulerName="volcano")
    assert convert(job, to, DECLARED).manifest["spec"]["schedulerName"] == "volcano"


def test_an_autoscaler_is_lost() -> None:
    policy = {"minReplicas": 1, "maxReplicas": 3}
    job = pytorchjob(worker=2, elasticPolicy={**policy, "metrics": [{"type": "Resource"}]})
    made = convert(job, DLJOB, DECLARED)
    assert [loss.field for loss in made.report.losses] == ["spec.elasticPolicy.metrics"]
    assert made.manifest["spec"]["options"] == {"elasticPolicy": policy}


# --- TrainJob


def trainjob(**container: Any) -> Resource:
    """Two equal nodes that torchrun starts."""
    job = pytorchjob(1, 1)
    for replicas in job["spec"]["pytorchReplicaSpecs"].values():
        replicas["template"]["spec"]["containers"][0] |= {"command": ["torchrun", "train.py"], **container}
    return job


def test_a_trainjob() -> None:
    env = [{"name": "A", "value": "b"}]
    job = trainjob(args=["--epochs=3"], env=env, resources={"limits": {"cpu": 1}})
    job["spec"] |= {"nprocPerNode": "2", "runPolicy": {"suspend": True, "activeDeadlineSeconds": 60}}
    made = convert(job, TRAINJOB, DECLARED)
    assert made.report.losses == []
    assert made.manifest == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "example-job", "namespace": "default"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "numNodes": 2,
                "image": "train:1",
                "command": ["torchrun", "train.py"],
                "args": ["--epochs=3"],
                "env": env,
                "resourcesPerNode": {"limits": {"cpu": 1}},
                "numProcPerNode": 2,
            },
            "suspend": True,
            "activeDeadlineSeconds": 60,
        },
    }


def test_templates_that_differ_in_the_order_of_their_keys_are_one() -> None:
    job = trainjob()
    (container,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = [dict(reversed(container.items()))]
    assert convert(job, TRAINJOB, DECLARED).report.losses == []


def test_a_date_that_yaml_makes_of_a_text_is_compared_too() -> None:
    job = trainjob(env=[{"name": "SINCE", "value": datetime.date(2026, 1, 2)}])
    assert convert(job, TRAINJOB, DECLARED).report.losses == []


@pytest.mark.parametrize(("job", "noted"), [(jaxjob(), True), (trainjob(), False)], ids=["jax", "pytorch"])
def test_the_variables_of_a_jax_runtime_are_noted(job: Resource, noted: bool) -> None:
    assert any("the runtime sets JAX_*" in text for text in notes(convert(job, TRAINJOB, DECLARED))) is noted


def test_what_becomes_a_patch_of_the_runtime() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    job = trainjob(volumeMounts=mounts)
    volumes = [{"name": "data", "emptyDir": {}}]
    for replicas in job["spec"]["pytorchReplicaSpecs"].values():
        replicas["template"]["spec"] |= {"volumes": volumes, "nodeSelector": {"gpu": "a"}}
        replicas["template"]["metadata"] = {"labels": {"a": "b"}}
    made = convert(job, TRAINJOB, DECLARED)
    assert made.report.losses == []
    (patch,) = made.manifest["spec"]["runtimePatches"]
    (replicated,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert (patch["manager"], replicated["name"]) == ("dljob.operator/convert", "node")
    assert replicated["template"]["spec"]["template"] == {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "volumes": volumes,
            "nodeSelector": {"gpu": "a"},
            "containers": [{"name": "node", "volumeMounts": mounts}],
        },
    }


@pytest.mark.parametrize(
    ("manager", "kept"), [("kueue.x-k8s.io/multikueue", True), ("kubeflow.org/training-operator", False)]
)
def test_the_manager_of_a_trainjob(manager: str, kept: bool) -> None:
    """A TrainJob knows MultiKueue, and otherwise its own controller, which it does not name."""
    job = trainjob()
    job["spec"]["runPolicy"] = {"managedBy": manager}
    made = convert(job, TRAINJOB, DECLARED)
    assert (made.manifest["spec"].get("managedBy") == manager, made.report.losses) == (kept, [])


def changed(change: Any) -> Resource:
    job = trainjob()
    change(job["spec"])
    return job


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda s: s.update(runPolicy={"backoffLimit": 1}), "spec.runPolicy.backoffLimit"),
        (lambda s: s.update(runPolicy={"ttlSecondsAfterFinished": 1}), "spec.runPolicy.ttlSecondsAfterFinished"),
        (lambda s: s.update(schedulerName="volcano"), "spec.schedulerName"),
        (lambda s: s.update(nprocPerNode="gpu"), "spec.nprocPerNode"),
        (
            lambda s: s["pytorchReplicaSpecs"]["Worker"].update(restartPolicy="ExitCode"),
            "spec.pytorchReplicaSpecs.Worker.restartPolicy",
        ),
        (
            lambda s: s["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0].update(image="other:1"),
            "spec.pytorchReplicaSpecs.Worker.template",
        ),
        (
            lambda s: (
                s["pytorchReplicaSpecs"].pop("Worker")
                and s["pytorchReplicaSpecs"]["Master"]["template"]["spec"].update(hostNetwork=True)
            ),
            "spec.pytorchReplicaSpecs.Master.template.spec.hostNetwork",
        ),
        (
            lambda s: (
                s["pytorchReplicaSpecs"].pop("Worker")
                and s["pytorchReplicaSpecs"]["Master"]["template"].update(metadata={"finalizers": ["example.com/a"]})
            ),
            "spec.pytorchReplicaSpecs.Master.template.metadata.finalizers",
        ),
        (
            lambda s: (
                s["pytorchReplicaSpecs"].pop("Worker")
                and s["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(
                    {"name": "proxy", "image": "proxy:1"}
                )
            ),
            "spec.pytorchReplicaSpecs.Master.template.spec.containers",
        ),
        (
            lambda s: (
                s["pytorchReplicaSpecs"].pop("Worker")
                and s["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0].update(workingDir="/a")
            ),
            "spec.pytorchReplicaSpecs.Master.template.spec.containers.workingDir",
        ),
    ],
)
def test_what_a_trainjob_lacks(change: Any, field: str) -> None:
    losses = convert(changed(change), TRAINJOB, DECLARED).report.losses
    assert [loss.field for loss in losses] == [field]
    assert all(loss.reason for loss in losses)


def test_the_reason_why_elastic_training_is_lost() -> None:
    found = convert(changed(lambda s: s.update(elasticPolicy={"minReplicas": 1})), TRAINJOB, DECLARED)
    (loss,) = found.report.losses
    assert (loss.field, "no elastic training" in loss.reason) == ("spec.elasticPolicy", True)


def with_groups() -> Resource:
    job = grouped(pytorchjob(1, 4), "Worker", large=(1, {"image": "large:1"}), small=(2, {"ports": []}))
    groups = job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"]
    groups[0]["template"]["spec"]["restartPolicy"] = "Never"
    return job


@pytest.mark.parametrize("to", [V1, DLJOB])
def test_groups_of_replicas_are_kept(to: str) -> None:
    job = with_groups()
    found = converted(job, to)
    assert found is not None and not found.report.losses
    assert [note.field for note in found.report.notes] == [
        "spec.pytorchReplicaSpecs.Worker.groups[0].template.spec.restartPolicy"
    ]
    del job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"][0]["template"]["spec"]["restartPolicy"]
    assert pods_of(found.manifest) == pods_of(job)


def test_a_dljob_has_groups_in_the_short_form_where_that_is_enough() -> None:
    found = converted(with_groups(), DLJOB)
    assert found is not None
    large, small = found.manifest["spec"]["replicas"]["Worker"]["groups"]
    assert large == {"name": "large", "count": 1, "image": "large:1"}
    assert set(small) == {"name", "count", "template"}


def test_a_trainjob_has_no_groups() -> None:
    job = with_groups()
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["template"]["spec"]["containers"][0]["command"] = ["torchrun", "train.py"]
    del job["spec"]["pytorchReplicaSpecs"]["Master"]
    found = converted(job, TRAINJOB)
    assert found is not None
    assert [(loss.field, loss.reason) for loss in found.report.losses] == [
        (
            "spec.pytorchReplicaSpecs.Worker.groups",
            "a TrainJob has one template: that of spec.pytorchReplicaSpecs.Worker is used",
        )
    ]
