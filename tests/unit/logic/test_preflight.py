"""Which running jobs of training-operator v1 the operator can adopt: a table of jobs, objects and problems."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic import preflight
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.declaration import Kind
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.preflight import Found, Served, Verdict
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    JAX,
    MPI,
    NOW,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Pod,
    Resource,
    grouped,
    jaxjob,
    mpijob,
    mpijob_v1,
    paddlejob,
    pods_of,
    pytorchjob,
    stamp,
    tfjob,
    xgboostjob,
)

KINDS = {
    "TFJob": (TENSORFLOW, ("v1", "v1alpha1")),
    "PyTorchJob": (PYTORCH, ("v1",)),
    "XGBoostJob": (XGBOOST, ("v1",)),
    "PaddleJob": (PADDLE, ("v1",)),
    "JAXJob": (JAX, ("v1",)),
    "MPIJob": (MPI, ("v1", "v2beta1")),
}
TRAINING = "training.kubeflow.org/"


def served(kind: str) -> Served | None:
    if kind not in KINDS:
        return None
    framework, versions = KINDS[kind]
    return Served(Kind(kind, "kubeflow.org", versions), framework)


def framework_of(job: Resource) -> Framework:
    return KINDS[job["kind"]][0]


def reference(job: Resource, **changes: Any) -> Resource:
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        **changes,
    }


def theirs(job: Resource) -> list[Resource]:
    """The pods and the Services that training-operator makes for ``job``, in this order: one of each per replica."""
    pods = [pod.running().resource() for pod in pods_of(parse_job(job, framework_of(job)), framework_of(job))]
    for pod in pods:
        labels = {name: value for name, value in pod["metadata"]["labels"].items() if name.startswith(TRAINING)}
        pod["metadata"] |= {"labels": labels, "annotations": {}}
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": pod["metadata"]["name"],
                "namespace": "default",
                "uid": f"service-{pod['metadata']['name']}",
                "labels": dict(pod["metadata"]["labels"]),
                "ownerReferences": [reference(job)],
            },
            "spec": {"clusterIP": "None", "selector": dict(pod["metadata"]["labels"])},
        }
        for pod in pods
    ]
    return [*pods, *services]


def running(job: Resource, **status: Any) -> Resource:
    """The job with the status that training-operator writes."""
    condition = {"type": "Running", "status": "True", "reason": f"{job['kind']}Running", "lastTransitionTime": stamp()}
    return {**job, "status": {"conditions": [condition], "startTime": stamp(-60), "replicaStatuses": {}, **status}}


def judge(job: Resource, objects: Iterable[Resource], **found: Any) -> Verdict:
    return preflight.judge(job, served(job["kind"]), Found(list(objects), **found), NOW)


def texts(verdict: Verdict) -> list[str]:
    return [problem.text for problem in verdict.problems]


TF = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=1)
ADOPTED = [
    (running(TF), ["chief-0", "ps-0", "worker-0", "worker-1"], ["chief-0"]),
    (running(pytorchjob(master=1, worker=2)), ["master-0", "worker-0", "worker-1"], ["master-0"]),
    (running(pytorchjob(worker=2)), ["worker-0", "worker-1"], ["worker-0"]),
    (running(xgboostjob(worker=1)), ["master-0", "worker-0"], ["master-0"]),
    (running(paddlejob(worker=2)), ["worker-0", "worker-1"], ["worker-0"]),
    (running(jaxjob(worker=2)), ["worker-0", "worker-1"], ["worker-0"]),
]


@pytest.mark.parametrize(("job", "pods", "services"), ADOPTED, ids=lambda x: x["kind"] if isinstance(x, dict) else "")
def test_a_running_job_is_adopted_with_all_its_pods(job: Resource, pods: list[str], services: list[str]) -> None:
    verdict = judge(job, theirs(job))
    assert verdict.problems == ()
    assert verdict.can_be_adopted
    name = job["metadata"]["name"]
    assert verdict.adopts == (*(f"Pod/{name}-{pod}" for pod in pods), *(f"Service/{name}-{one}" for one in services))
    assert verdict.notes == ()


def test_a_job_with_groups_has_pods_of_another_template() -> None:
    """training-operator drops the field, so all its pods have the template of the type."""
    job = running(grouped(pytorchjob(master=1, worker=2), "Worker", large=(1, {"image": "large:1"})))
    verdict = judge(job, theirs(job))
    (problem,) = verdict.problems
    assert problem.where == "Pod/example-job-worker-0"
    assert "is not what the job asks for, so the operator would replace it" in problem.text


def test_an_mpijob_keeps_its_account_as_it_is() -> None:
    """Nothing looks for these objects by their labels, so the operator needs no right to patch them."""
    job = running(mpijob_v1())
    own = {"namespace": "default", "ownerReferences": [reference(job)], "labels": {"app": "pi"}}
    group = "rbac.authorization.k8s.io/v1"
    account = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "pi-launcher", "uid": kind, **own}}
        for version, kind in (("v1", "ServiceAccount"), (group, "Role"), (group, "RoleBinding"))
    ]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pi-config", "uid": "config", **own}}
    pods = [one for one in theirs(job) if one["kind"] == "Pod"]  # training-operator makes no Services of this kind
    for pod in pods:
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    verdict = judge(job, [*pods, config, *account], unpatchable=("ServiceAccount", "Role", "RoleBinding"))
    assert verdict.problems == ()
    assert verdict.adopts == ("ConfigMap/pi-config", "Pod/pi-launcher", "Pod/pi-worker-0", "Pod/pi-worker-1")
    (problem,) = judge(job, [*pods, config, *account], unpatchable=("ConfigMap",)).problems
    assert "the operator may not patch configmaps" in problem.text
    account[1]["metadata"]["ownerReferences"] = []
    (problem,) = judge(job, [config, *account]).problems
    assert problem.where == "Role/pi-launcher"


JOB = running(pytorchjob(master=1, worker=1))
OBJECTS = theirs(JOB)
MASTER, WORKER, MASTER_SERVICE, WORKER_SERVICE = range(4)


def with_change(number: int, change: Callable[[Resource], object]) -> list[Resource]:
    objects = copy.deepcopy(OBJECTS)
    change(objects[number])
    return objects


def owned_by(*references: Resource) -> Callable[[Resource], object]:
    return lambda x: x["metadata"].update(ownerReferences=list(references))


def named(kind: str, name: str, **metadata: Any) -> Resource:
    return {"kind": kind, "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata}}


SERVICE = naming.service_name(parse_job(JOB, PYTORCH))
TAKEN = "the job needs an object of that name, and this one has another controller or none"
OBJECT_PROBLEMS: dict[str, tuple[Sequence[Resource], str, str]] = {
    "a pod without an owner": (with_change(WORKER, owned_by()), "Pod/example-job-worker-0", TAKEN),
    "a pod that the job does not control": (
        with_change(WORKER, owned_by(reference(JOB, controller=False))),
        "Pod/example-job-worker-0",
        TAKEN,
    ),
    "a pod of another controller": (
        with_change(WORKER, owned_by(reference(JOB, uid="other", name="other"))),
        "Pod/example-job-worker-0",
        TAKEN,
    ),
    "a pod of a deleted job of the name": (
        with_change(WORKER, owned_by(reference(JOB, uid="other"))),
        "Pod/example-job-worker-0",
        "it belongs to a deleted job of this name",
    ),
    "a user's Service with the name of the job's": (
        [*OBJECTS, named("Service", SERVICE)],
        f"Service/{SERVICE}",
        TAKEN,
    ),
    "a user's Service with the master's name": (
        with_change(MASTER_SERVICE, owned_by()),
        "Service/example-job-master-0",
        TAKEN,
    ),
    "a pod beyond the replicas": (
        [*OBJECTS, named("Pod", "example-job-worker-1", ownerReferences=[reference(JOB)])],
        "Pod/example-job-worker-1",
        "it belongs to the job, but is none of its replicas by name",
    ),
}


@pytest.mark.parametrize("case", OBJECT_PROBLEMS)
def test_an_object_that_keeps_a_job_from_being_adopted(case: str) -> None:
    objects, where, text = OBJECT_PROBLEMS[case]
    (problem,) = judge(JOB, objects).problems
    assert problem.where == where
    assert problem.text.startswith(f"{where}: {text}")
    assert problem.fix


@pytest.mark.parametrize(
    "extra",
    [
        named("Service", "example-job-other"),
        named("Pod", SERVICE),
        named("Pod", "example-job-worker-1"),
        named("Pod", "example-job-old-0", ownerReferences=[reference(JOB)], deletionTimestamp=stamp()),
    ],
    ids=["another Service", "a pod with the Service's name", "a pod without an owner", "a pod that is being deleted"],
)
def test_an_object_that_is_of_no_concern(extra: Resource) -> None:
    assert judge(JOB, [*OBJECTS, extra]).can_be_adopted


def test_a_service_of_a_worker_is_not_needed() -> None:
    assert judge(JOB, with_change(WORKER_SERVICE, owned_by())).can_be_adopted


def test_objects_that_are_ours_already_need_no_label_and_no_permission() -> None:
    ours = [pod.running().resource() for pod in pods_of(parse_job(JOB, PYTORCH), PYTORCH)]
    verdict = judge(JOB, [*ours, *OBJECTS[2:]], unpatchable=("Pod",))
    assert (verdict.problems, verdict.adopts) == ((), ("Service/example-job-master-0",))


@pytest.mark.parametrize(
    ("kind", "resource", "first", "number"),
    [("Pod", "pods", "master-0", 2), ("Service", "services", "master-0", 1)],
)
def test_without_the_permission_to_patch(kind: str, resource: str, first: str, number: int) -> None:
    (problem,) = judge(JOB, OBJECTS, unpatchable=(kind,)).problems
    assert problem.text == (
        f"{kind}/example-job-{first}: the operator may not patch {resource}, and has to label {number} of the job's"
    )
    assert "docs/migration.md" in problem.fix


def test_an_autoscaler_is_adopted_too() -> None:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    policy = {"minReplicas": 1, "maxReplicas": 2, "metrics": metrics}
    job = running(pytorchjob(worker=2, elasticPolicy=policy))
    (wanted,) = preflight.other_objects(job, served("PyTorchJob") or pytest.fail(), NOW)
    key = "HorizontalPodAutoscaler/example-job"
    assert f"{wanted['kind']}/{wanted['metadata']['name']}" == key
    found = named("HorizontalPodAutoscaler", "example-job", ownerReferences=[reference(job)])
    assert key in judge(job, [*theirs(job), found]).adopts
    denied = judge(job, [*theirs(job), found], unpatchable=("HorizontalPodAutoscaler",))
    assert texts(denied) == [
        f"{key}: the operator may not patch horizontalpodautoscalers.autoscaling, and has to label 1 of the job's"
    ]
    users = named("HorizontalPodAutoscaler", "example-job")
    assert [problem.where for problem in judge(job, [*theirs(job), users]).problems] == [key]


def test_an_autoscaler_that_is_ours_already_is_replaced_and_not_adopted() -> None:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    policy = {"minReplicas": 1, "maxReplicas": 2, "metrics": metrics}
    job = running(pytorchjob(worker=2, elasticPolicy=policy))
    (wanted,) = preflight.other_objects(job, served("PyTorchJob") or pytest.fail(), NOW)
    old = copy.deepcopy(dict(wanted))
    old["metadata"]["annotations"]["dljob.operator/spec-hash"] = "0" * 16
    verdict = judge(job, [*theirs(job), old], unpatchable=("HorizontalPodAutoscaler",))
    assert verdict.can_be_adopted
    assert "HorizontalPodAutoscaler/example-job" not in verdict.adopts


@pytest.mark.parametrize("scheduler", ["volcano", "gang"])
def test_the_pod_group_of_training_operator(scheduler: str) -> None:
    """It is adopted with the pods that belong to it, which needs one permission more."""
    gang = gang_scheduler(scheduler)
    assert gang is not None
    job = copy.deepcopy(JOB)
    (wanted,) = preflight.other_objects(job, served("PyTorchJob") or pytest.fail(), NOW, gang)
    metadata = {
        "name": wanted["metadata"]["name"],
        "namespace": "default",
        "uid": "g",
        "ownerReferences": [reference(job)],
    }
    found = {**wanted, "metadata": metadata}
    objects = theirs(job)
    for pod in objects:
        pod["metadata"].setdefault("labels", {})["scheduling.x-k8s.io/pod-group"] = "example-job"
        pod["metadata"].setdefault("annotations", {})["scheduling.k8s.io/group-name"] = "example-job"
    if scheduler == "volcano":
        for pod in objects:
            del pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"]

    def verdict(*group: Resource, **more: Any) -> Verdict:
        return preflight.judge(job, served("PyTorchJob"), Found([*objects, *group], **more), NOW, gang)

    key = f"{gang.owned_kind}/example-job"
    assert key in verdict(found).adopts
    assert verdict(found).can_be_adopted
    denied = verdict(found, unpatchable=(gang.owned_kind,))
    (problem,) = denied.problems
    assert f"the operator may not patch podgroups.{gang.group}, and has to label 1" in problem.text
    somebodys = {**found, "metadata": {**metadata, "ownerReferences": []}}
    assert [problem.where for problem in verdict(somebodys).problems] == [key]


def test_an_invalid_job_has_no_other_objects() -> None:
    assert preflight.other_objects(pytorchjob(), served("PyTorchJob") or pytest.fail(), NOW) == ()


def renamed_container(job: Resource) -> Resource:
    made = copy.deepcopy(job)
    made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["name"] = "train"
    return made


MPI_V1ALPHA1 = {**mpijob(), "apiVersion": "kubeflow.org/v1alpha1"}
JOB_PROBLEMS = {
    "a container of another name": (
        renamed_container(JOB),
        "spec.pytorchReplicaSpecs.Master.template.spec.containers",
        "a container named 'pytorch' is required",
    ),
    "no replica": (running(pytorchjob()), "spec", "the job has no replicas"),
    "a replica type of others": (
        running(pytorchjob(master=1) | {"spec": {"pytorchReplicaSpecs": {"Boss": {"template": {}}}}}),
        "spec.pytorchReplicaSpecs.Boss",
        "is not a replica type of pytorch",
    ),
    "a rule of the framework's own hook": (
        running(pytorchjob(worker=2, elasticPolicy={"minReplicas": 3, "maxReplicas": 2})),
        "spec.elasticPolicy.minReplicas",
        "",
    ),
    "a kind of training-operator that is not served in its version": (
        MPI_V1ALPHA1,
        "apiVersion",
        "this operator serves MPIJob as kubeflow.org/v1, kubeflow.org/v2beta1, not as kubeflow.org/v1alpha1",
    ),
    "a job of mpi-operator": (mpijob(), "apiVersion", "are not training-operator's"),
    "a job of an operator before training-operator": (
        running(tfjob("kubeflow.org/v1", "replicaSpecs", master=1)),
        "spec.replicaSpecs",
        "only operators before training-operator v1 run jobs of this layout",
    ),
    "a kind that is not served": ({**TF, "kind": "MXNetJob"}, "kind", "this operator serves no MXNetJob"),
    "a job that is over its deadline, which training-operator has not seen": (
        running(pytorchjob(master=1, runPolicy={"activeDeadlineSeconds": 30})),
        "spec.runPolicy.activeDeadlineSeconds",
        "the operator would end the job as failed: DeadlineExceeded",
    ),
}


@pytest.mark.parametrize("case", JOB_PROBLEMS)
def test_a_field_that_keeps_a_job_from_being_adopted(case: str) -> None:
    job, where, text = JOB_PROBLEMS[case]
    (problem,) = judge(job, []).problems
    assert (problem.where, text in problem.text) == (where, True), problem
    assert problem.fix


@pytest.mark.parametrize("seconds", [0, -60], ids=["the delay has begun", "the delay is over"])
def test_a_pod_that_failed_and_has_not_been_replaced_yet(seconds: float) -> None:
    worker = Pod({**OBJECTS[WORKER]}, "pytorch").created(-90).failed(1, seconds=seconds).resource()
    (problem,) = judge(JOB, [OBJECTS[MASTER], worker]).problems
    assert problem.text.startswith("Pod/example-job-worker-0: it has failed")
    assert problem.where == "Pod/example-job-worker-0"


def test_a_pod_that_failed_for_good() -> None:
    job = copy.deepcopy(JOB)
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        replica["restartPolicy"] = "Never"
    failed = [Pod({**pod}, "pytorch").failed(1).resource() for pod in OBJECTS[:2]]
    (problem,) = judge(job, failed).problems
    assert problem.text.startswith("the operator would end the job as failed: ")


def test_the_definition_is_a_problem_of_each_job() -> None:
    definition = preflight.judge_definition(DEFINITION, ("v1",))
    assert judge(JOB, OBJECTS, definition=definition).problems == definition


DEFINITION: Resource = {
    "metadata": {"name": "pytorchjobs.kubeflow.org"},
    "spec": {"versions": [{"name": "v1", "served": True, "storage": True}]},
    "status": {"storedVersions": ["v1beta2", "v1"]},
}


def test_a_version_that_was_stored_keeps_our_definition_out() -> None:
    (problem,) = preflight.judge_definition(DEFINITION, ("v1",))
    assert problem.where == "CustomResourceDefinition/pytorchjobs.kubeflow.org"
    assert "status.storedVersions has v1beta2" in problem.text
    assert "remove v1beta2 from status.storedVersions" in problem.fix
    (problem,) = preflight.judge_definition(DEFINITION, ("v2beta1",))
    assert "status.storedVersions has v1beta2, v1" in problem.text
    assert problem.fix.endswith(
        "keep it and its operator, and apply this operator's other definitions without that of this kind"
    )
    assert preflight.judge_definition(DEFINITION, ("v1", "v1beta2")) == ()
    assert preflight.judge_definition({**DEFINITION, "status": {}}, ("v1",)) == ()


# --- what is no problem, but worth knowing


def test_missing_pods_are_created() -> None:
    verdict = judge(JOB, [OBJECTS[MASTER]])
    assert verdict.can_be_adopted
    assert verdict.notes == ("1 of 2 pods do not exist and will be created: example-job-worker-0",)


def test_a_pod_that_is_being_deleted_is_created_again() -> None:
    objects = with_change(WORKER, lambda pod: pod["metadata"].update(deletionTimestamp=stamp()))
    verdict = judge(JOB, objects)
    assert (verdict.can_be_adopted, verdict.adopts[0]) == (True, "Pod/example-job-master-0")
    assert verdict.notes == ("1 of 2 pods are being deleted and will be created again: example-job-worker-0",)


def test_only_the_first_of_many_names_is_shown() -> None:
    (note,) = judge(running(jaxjob(worker=5)), []).notes
    assert note.endswith("example-job-worker-4")
    (note,) = judge(running(jaxjob(worker=9)), []).notes
    assert note.startswith("9 of 9 pods do not exist")
    assert note.endswith("example-job-worker-4, ...")


@pytest.mark.parametrize(
    ("policy", "note"),
    [
        ({"suspend": True}, "suspended: it has no pods to adopt"),
        (
            {"managedBy": "kueue.x-k8s.io/multikueue"},
            "spec.runPolicy.managedBy: kueue.x-k8s.io/multikueue runs the job, and this operator ignores it too",
        ),
    ],
)
def test_a_job_without_anything_to_adopt(policy: Resource, note: str) -> None:
    verdict = judge(running(pytorchjob(master=1, runPolicy=policy)), OBJECTS)
    assert (verdict.problems, verdict.adopts, verdict.notes) == ((), (), (note,))


def test_training_operators_own_managed_by_is_ours() -> None:
    job = running(pytorchjob(master=1, worker=1, runPolicy={"managedBy": "kubeflow.org/training-operator"}))
    assert len(judge(job, OBJECTS).adopts) == 3


def test_a_job_whose_end_its_operator_has_not_written() -> None:
    done = [Pod({**pod}, "pytorch").succeeded().resource() for pod in OBJECTS[:2]]
    verdict = judge(JOB, [*done, *OBJECTS[2:]])
    assert (verdict.problems, verdict.notes) == ((), ("it has just succeeded, so the operator only writes that",))


@pytest.mark.parametrize(
    ("status", "metadata", "expected"),
    [
        ({}, {}, True),
        ({"conditions": [{"type": "Running", "status": "True"}]}, {}, True),
        ({"conditions": [{"type": "Succeeded", "status": "True"}]}, {}, False),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, {}, False),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, {}, True),
        ({}, {"deletionTimestamp": stamp()}, False),
    ],
)
def test_which_jobs_run(status: Resource, metadata: Resource, expected: bool) -> None:
    assert preflight.is_running({"metadata": metadata, "status": status}) is expected
