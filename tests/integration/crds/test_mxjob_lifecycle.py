"""Stored MXJobs: reads in another version, updates, and status writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client

Job = dict[str, Any]
Jobs = dict[str, Job]
Submit = Callable[..., Job]

OBJECTS = ("fioravanzo", "kubeflow-list", "kubeflow-map")  # flavors whose spec can contain options
# the status of kubeflow.org/v1alpha1
V1ALPHA1_STATUS = {
    "phase": "Running",
    "reason": "",
    "state": "Running",
    "replicaStatuses": [
        {"mx_replica_type": "SCHEDULER", "state": "Running", "ReplicasStates": {"Running": 1}},
        {"mx_replica_type": "WORKER", "state": "Running", "ReplicasStates": {"Running": 1, "Failed": 1}},
    ],
}
# the status of v1
V1_STATUS = {
    "replicaStatuses": {"Worker": {"active": 1, "failed": 1, "selector": "a=b"}, "Scheduler": {}},
    "startTime": "2026-01-02T03:04:05Z",
}
COMMON_STATUS = {
    "conditions": [
        {
            "type": "Created",
            "status": "True",
            "reason": "MXJobCreated",
            "message": "MXJob job is created.",
            "fieldOfTomorrow": 1,
            "lastUpdateTime": "2026-01-02T03:04:05Z",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
    ],
    "state": "Running",
    "phase": "Running",
    "replicas": "2/5",
    "runtimeId": "abcd1234",
    "observedGeneration": 3,
    "lastReconcileTime": "2026-01-02T03:04:05Z",
    "completionTime": "2026-01-02T03:05:05Z",
    "retries": {"worker-1": 2},
    "completed": {"worker-0": "Succeeded"},
    "failure": {
        "pod": "p",
        "container": "mxnet",
        "exitCode": 137,
        "reason": "OOMKilled",
        "message": "...",
        "tail": ["a"],
    },
    "fieldOfTomorrow": {"deep": [1, None]},
}


@pytest.fixture
def objects(api: client.ApiClient) -> Any:
    """A CustomObjectsApi, untyped because its responses are."""
    return client.CustomObjectsApi(api)


def place(job: Job, namespace: str, version: str = "") -> tuple[str, str, str, str, str]:
    """The API arguments that identify the job, in ``version`` if given."""
    group, own = job["apiVersion"].split("/")
    return group, version or own, namespace, "mxjobs", job["metadata"]["name"]


@pytest.mark.parametrize("flavor", ["kubeflow-list", "kubeflow-map"])
@pytest.mark.parametrize(("written", "read"), [("v1alpha1", "v1"), ("v1", "v1alpha1")])
def test_no_field_is_lost_between_versions(
    flavor: str,
    written: str,
    read: str,
    jobs: Jobs,
    submit: Submit,
    objects: Any,
    namespace: str,
) -> None:
    job = jobs[flavor] | {"apiVersion": f"kubeflow.org/{written}"}
    submit(job, namespace=namespace)

    seen = objects.get_namespaced_custom_object(*place(job, namespace, read))
    assert seen["apiVersion"] == f"kubeflow.org/{read}"
    # where v1, in which the objects are stored, has a default
    spec = {"runPolicy": {}, **job["spec"]} if isinstance(job["spec"], dict) else job["spec"]
    assert seen["spec"] == spec

    # a write in the other version, such as the operator's, must not drop fields either
    seen["metadata"]["labels"] = {"seen": "yes"}
    objects.replace_namespaced_custom_object(*place(job, namespace, read), seen, field_validation="Strict")
    back = objects.get_namespaced_custom_object(*place(job, namespace, written))
    assert (back["spec"], back["metadata"]["labels"]) == (spec, {"seen": "yes"})
    assert back["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("flavor", "extra"),
    [
        ("fioravanzo", V1ALPHA1_STATUS),
        ("mpba", V1ALPHA1_STATUS),
        ("kubeflow-list", V1ALPHA1_STATUS),
        ("kubeflow-map", V1_STATUS),
    ],
)
def test_status_is_a_subresource_and_keeps_either_form(
    flavor: str, extra: Job, jobs: Jobs, submit: Submit, objects: Any, namespace: str
) -> None:
    job, status = jobs[flavor], COMMON_STATUS | extra
    created = submit(job | {"status": status}, namespace=namespace)
    assert "status" not in created, "creating a job must not set its status"

    other_spec: Any = {} if isinstance(job["spec"], dict) else []
    stored = objects.replace_namespaced_custom_object_status(
        *place(job, namespace), created | {"spec": other_spec, "status": status}, field_validation="Strict"
    )
    assert stored["status"] == status
    assert stored["spec"] == created["spec"], "a status write must not change the spec"
    assert stored["metadata"]["generation"] == created["metadata"]["generation"]

    stored["status"] = {}
    kept = objects.replace_namespaced_custom_object(*place(job, namespace), stored)
    assert kept["status"] == status


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"managedBy": "kubeflow.org/training-operator"}, {"managedBy": "kueue.x-k8s.io/multikueue"}),
        ({"managedBy": "kubeflow.org/training-operator"}, {}),
        ({}, {"managedBy": "kueue.x-k8s.io/multikueue"}),
        (None, {"managedBy": "kueue.x-k8s.io/multikueue"}),
    ],
    ids=["changed", "removed", "added", "added with the run policy"],
)
@pytest.mark.parametrize("flavor", OBJECTS)
def test_managed_by_is_immutable(
    flavor: str,
    before: Job | None,
    after: Job,
    jobs: Jobs,
    submit: Submit,
    objects: Any,
    namespace: str,
) -> None:
    job = jobs[flavor]
    if before is not None:
        job["spec"]["runPolicy"] = before
    created = submit(job, namespace=namespace)
    created["spec"]["runPolicy"] = after
    with pytest.raises(client.ApiException) as refused:
        objects.replace_namespaced_custom_object(*place(job, namespace), created)
    assert refused.value.status == 422
    assert "runPolicy.managedBy is immutable" in str(refused.value.body)
    assert "create a new one" in str(refused.value.body)


@pytest.mark.parametrize("flavor", OBJECTS)
def test_queue_is_immutable_and_other_fields_are_not(
    flavor: str, jobs: Jobs, submit: Submit, objects: Any, namespace: str
) -> None:
    job = jobs[flavor]
    job["spec"]["runPolicy"] = {
        "managedBy": "kubeflow.org/training-operator",
        "schedulingPolicy": {"queue": "a"},
    }
    created = submit(job, namespace=namespace)
    created["spec"]["runPolicy"] |= {"suspend": True, "backoffLimit": 3}
    replicas = created["spec"].get("replicaSpecs") or list(created["spec"]["mxReplicaSpecs"].values())
    replicas[2]["replicas"] = 5
    changed = objects.replace_namespaced_custom_object(*place(job, namespace), created)
    assert changed["metadata"]["generation"] == 2
    changed["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "b"
    with pytest.raises(client.ApiException) as refused:
        objects.replace_namespaced_custom_object(*place(job, namespace), changed)
    assert "queue is immutable" in str(refused.value.body)


def test_status_of_a_wrong_type_is_refused(jobs: Jobs, submit: Submit, objects: Any, namespace: str) -> None:
    """The status preserves unknown fields, but a wrong type of a listed field is a bug and must be rejected."""
    job = jobs["kubeflow-map"]
    created = submit(job, namespace=namespace)
    with pytest.raises(client.ApiException) as refused:
        objects.replace_namespaced_custom_object_status(*place(job, namespace), created | {"status": {"replicas": 2}})
    assert "status.replicas" in str(refused.value.body)


@pytest.mark.parametrize("flavor", ["fioravanzo", "mpba", "kubeflow-list", "kubeflow-map"])
def test_columns(flavor: str, jobs: Jobs, submit: Submit, objects: Any, namespace: str, api: client.ApiClient) -> None:
    job = jobs[flavor]
    created = submit(job, namespace=namespace)
    objects.replace_namespaced_custom_object_status(*place(job, namespace), created | {"status": COMMON_STATUS})

    # kubectl requests this table and prints it unchanged
    request = api.param_serialize(
        "GET",
        f"/apis/{job['apiVersion']}/namespaces/{namespace}/mxjobs",
        header_params={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
        auth_settings=["BearerToken"],
    )
    response = api.call_api(*request)
    table = json.loads(response.read())
    columns = [(column["name"], column["priority"]) for column in table["columnDefinitions"]]
    assert columns == [
        ("Name", 0),
        ("State", 0),
        ("Replicas", 0),
        ("Phase", 1),
        ("Reason", 1),
        ("Runtime ID", 1),
        ("Progress", 0),
        ("GPU Hours", 1),
        ("Age", 0),
    ]
    (row,) = table["rows"]
    assert row["cells"][:4] == ["job", "Running", "2/5", "Running"]
    assert row["cells"][5] == "abcd1234"
