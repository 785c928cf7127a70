"""Two jobs of one name: the second needs names that the first has, so it fails, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.paths import plural
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
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


def run(server: FakeApiServer, job: Resource, framework: Framework) -> Resource:
    """Reconcile until nothing is due any more; returns the status."""
    key = "default", plural(job["kind"])
    client = FakeRestClient(server)
    for _ in range(10):
        context = Context(client, Reader(client), clock=lambda: NOW)
        outcome = reconcile(context, server.objects[key][NAME], framework)
        if outcome.requeue_after != 0:
            return dict(server.objects[key][NAME]["status"])
    raise AssertionError("the job does not come to rest")


def owned(server: FakeApiServer, uid: str) -> dict[str, Resource]:
    return {
        f"{key[1]}/{name}": found
        for key, objects in server.objects.items()
        for name, found in objects.items()
        if uid in [owner["uid"] for owner in found["metadata"].get("ownerReferences", ())]
    }


@pytest.mark.parametrize(("first", "second"), [(TFJOB, PYTORCHJOB), (PYTORCHJOB, TFJOB)], ids=["TFJob", "PyTorchJob"])
def test_the_second_fails_and_leaves_nothing_and_the_first_is_as_before(
    first: tuple[Resource, Framework], second: tuple[Resource, Framework]
) -> None:
    server = FakeApiServer(lambda: NOW)
    for job, _ in (first, second):
        server.add(("default", plural(job["kind"])), job)
    run(server, *first)
    before = owned(server, first[0]["metadata"]["uid"])
    assert {"pods/a-worker-0", "pods/a-worker-1"} <= set(before)

    status = run(server, *second)
    assert (status["state"], status["phase"]) == ("Failed", "Failed")
    assert "an object of that name exists and does not belong to this job" in status["reason"]
    uid = second[0]["metadata"]["uid"]
    made = {e.key[1] for e in server.watch_events if e.type == "ADDED" and uid in str(e.object["metadata"])}
    assert made.issuperset({"pods", *(["deployments"] if second is TFJOB else [])}), "before the refusal"
    assert owned(server, uid) == {}
    assert owned(server, first[0]["metadata"]["uid"]) == before
