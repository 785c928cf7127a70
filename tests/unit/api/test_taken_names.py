"""Objects of somebody else that have names which a job needs: it waits, says whose they are, and goes on by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.paths import plural
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import NOW, PYTORCH, TENSORFLOW, Resource, pytorchjob, tfjob
from support.fake_api_server import FakeApiServer, FakeRestClient

NAME = "a"


def named(resource: Resource, **spec: Any) -> Resource:
    """The job with the name of both, a uid of its own, and a policy that keeps everything after the end."""
    resource["metadata"] |= {"name": NAME, "uid": f"uid-of-{resource['kind']}"}
    resource["spec"] |= {"runPolicy": {"cleanPodPolicy": "None"}, **spec}
    return resource


TFJOB = (
    named(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2), tensorboard={"logDir": "/logs"}),
    TENSORFLOW,
)
PYTORCHJOB = named(pytorchjob(1, 2)), PYTORCH


def step(server: FakeApiServer, job: Resource, framework: Framework, after: float = 0.0) -> Outcome:
    client = FakeRestClient(server)
    context = Context(client, Reader(client), clock=lambda: NOW + timedelta(seconds=after))
    return reconcile(context, server.objects["default", plural(job["kind"])][NAME], framework)


def run(server: FakeApiServer, job: Resource, framework: Framework, after: float = 0.0) -> Resource:
    """Reconcile until nothing is due any more; returns the status."""
    for _ in range(10):
        if step(server, job, framework, after).requeue_after != 0:
            return dict(server.objects["default", plural(job["kind"])][NAME]["status"])
    raise AssertionError("the job does not come to rest")


def owned(server: FakeApiServer, uid: str) -> dict[str, Resource]:
    return {
        f"{key[1]}/{name}": found
        for key, objects in server.objects.items()
        for name, found in objects.items()
        if uid in [owner["uid"] for owner in found["metadata"].get("ownerReferences", ())]
    }


def events(server: FakeApiServer, uid: str) -> list[str]:
    found = server.objects.get(("default", "events"), {}).values()
    return [one["reason"] for one in found if one["involvedObject"]["uid"] == uid]


def of_two(*jobs: tuple[Resource, Framework]) -> FakeApiServer:
    server = FakeApiServer(lambda: NOW)
    for job, _ in jobs:
        server.add(("default", plural(job["kind"])), job)
    return server


@pytest.mark.parametrize(("first", "second"), [(TFJOB, PYTORCHJOB), (PYTORCHJOB, TFJOB)], ids=["TFJob", "PyTorchJob"])
def test_of_two_jobs_of_one_name_the_second_waits_for_the_end_of_the_first(
    first: tuple[Resource, Framework], second: tuple[Resource, Framework]
) -> None:
    server = of_two(first, second)
    run(server, *first)
    before = owned(server, first[0]["metadata"]["uid"])
    assert {"pods/a-worker-0", "pods/a-worker-1"} <= set(before)

    uid = second[0]["metadata"]["uid"]
    status = run(server, *second)
    assert (status["state"], status["phase"], "failure" in status) == ("Created", "Creating", False)
    expected = f"an object of that name exists and does not belong to this job, but to {first[0]['kind']} a; "
    assert expected in status["reason"]
    assert owned(server, first[0]["metadata"]["uid"]) == before
    assert events(server, uid) == ["FailedCreatePod"]
    assert run(server, *second)["reason"] == status["reason"]
    assert events(server, uid) == ["FailedCreatePod"], "the same again is no news"
    assert step(server, *second).requeue_after == 5.0
    assert step(server, *second, after=100.0).requeue_after == 10.0, "the tries become rarer"

    del server.objects["default", plural(first[0]["kind"])][NAME]
    for key, objects in server.objects.items():
        server.objects[key] = {n: one for n, one in objects.items() if f"{key[1]}/{n}" not in before}
    assert run(server, *second)["reason"] == ""
    assert {"pods/a-worker-0", "pods/a-worker-1"} <= set(owned(server, uid))


def test_the_jobs_own_deadline_ends_the_wait_and_quotes_it() -> None:
    limited = named(pytorchjob(1, 2))
    limited["spec"]["runPolicy"] = {"activeDeadlineSeconds": 60}
    server = of_two(TFJOB, (limited, PYTORCH))
    run(server, *TFJOB)
    run(server, limited, PYTORCH)
    status = run(server, limited, PYTORCH, after=60.0)
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert "does not belong to this job, but to TFJob a" in status["reason"]


SERVICE = {"kind": "Service", "metadata": {"name": "a-master-0", "namespace": "default"}, "spec": {}}


def test_pods_do_not_work_in_vain_while_the_name_of_their_service_is_taken() -> None:
    """They are created together with the Services, and would look for one another until they fail."""
    server = of_two(PYTORCHJOB)
    server.add(("default", "services"), SERVICE)
    status = run(server, *PYTORCHJOB)
    assert status["reason"].startswith("Service/a-master-0: an object of that name exists")
    assert not any(not pod["metadata"].get("deletionTimestamp") for pod in server.objects["default", "pods"].values())
    assert events(server, "uid-of-PyTorchJob") == ["FailedCreatePod"], "and not that they were created"
    server.objects["default", "pods"] = {}
    run(server, *PYTORCHJOB)
    assert server.objects["default", "pods"] == {}
    del server.objects["default", "services"]["a-master-0"]
    assert run(server, *PYTORCHJOB)["reason"] == ""
    assert len(server.objects["default", "pods"]) == 3


def test_a_running_job_goes_on_while_the_name_of_a_replacement_is_taken() -> None:
    server = of_two(PYTORCHJOB)
    run(server, *PYTORCHJOB)
    pods = server.objects["default", "pods"]
    others = {name: pod for name, pod in pods.items() if name != "a-worker-1"}
    del pods["a-worker-1"]
    server.add(
        ("default", "pods"), {"kind": "Pod", "metadata": {"name": "a-worker-1", "namespace": "default"}, "spec": {}}
    )
    status = run(server, *PYTORCHJOB)
    assert "failure" not in status
    assert status["reason"].startswith("Pod/a-worker-1: an object of that name exists")
    assert server.objects["default", "pods"].items() >= others.items()


def test_an_object_that_the_training_does_not_need_is_tried_again() -> None:
    server = of_two(TFJOB)
    run(server, *TFJOB)
    board = next(iter(server.objects["default", "deployments"]))
    del server.objects["default", "deployments"][board]
    server.add(("default", "deployments"), {"kind": "Deployment", "metadata": {"name": board, "namespace": "default"}})
    outcome = step(server, *TFJOB)
    assert outcome.requeue_after == 5.0
    assert "does not belong to this job" in server.objects["default", "tfjobs"][NAME]["status"]["reason"]
    del server.objects["default", "deployments"][board]
    assert run(server, *TFJOB)["reason"] == ""
    assert f"deployments/{board}" in owned(server, TFJOB[0]["metadata"]["uid"])


# --- jobs deleted with --cascade=orphan


def orphaned(server: FakeApiServer, job: Resource, *, is_ours: bool) -> None:
    """Delete the job and leave its objects without an owner, of this operator or of training-operator."""
    del server.objects["default", plural(job["kind"])][NAME]
    for objects in server.objects.values():
        for name, one in objects.items():
            labels = one["metadata"].get("labels", {})
            if not is_ours:
                labels = {"training.kubeflow.org/job-name": NAME}
            metadata = {key: value for key, value in one["metadata"].items() if key != "ownerReferences"}
            objects[name] = {**one, "metadata": {**metadata, "labels": labels}}


@pytest.mark.parametrize(
    ("is_ours", "label"),
    [(True, "dljob.operator/job-uid=uid-of-PyTorchJob"), (False, "training.kubeflow.org/job-name=a")],
    ids=["of this operator", "of training-operator"],
)
def test_what_an_orphaned_job_has_left_is_waited_for_with_the_command_that_deletes_it(
    is_ours: bool, label: str
) -> None:
    server = of_two(PYTORCHJOB)
    run(server, *PYTORCHJOB)
    orphaned(server, PYTORCHJOB[0], is_ours=is_ours)
    left = dict(server.objects["default", "pods"])
    again = {**PYTORCHJOB[0], "metadata": {**PYTORCHJOB[0]["metadata"], "uid": "second"}}
    server.add(("default", "pytorchjobs"), again)
    status = run(server, again, PYTORCH)
    assert status["state"] == "Created"
    assert f"the job waits until it is gone: kubectl delete pods,services -l {label}" in status["reason"]
    assert server.objects["default", "pods"] == left, "they may be at work"
    for kind in ("pods", "services"):
        server.objects["default", kind] = {}
    assert run(server, again, PYTORCH)["reason"] == ""
    assert len(owned(server, "second")) >= 3
