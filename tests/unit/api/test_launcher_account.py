"""The account of an MPIJob v1's launcher at the API server: made before the pods, kept up to date, never taken over."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from support.builders import MPI, NOW, UID, Resource, mpijob_v1
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, failure
from support.fake_cluster import FakeCluster

KEY = ("default", "mpijobs")
ACCOUNT = ("serviceaccounts", "roles", "rolebindings")
RBAC = "rbac.authorization.k8s.io/v1"
KINDS = {
    "serviceaccounts": ("v1", "ServiceAccount"),
    "roles": (RBAC, "Role"),
    "rolebindings": (RBAC, "RoleBinding"),
}


class Here:
    """An API server with one MPIJob."""

    def __init__(self, **spec: Any) -> None:
        self.server = FakeApiServer()
        self.server.add(KEY, mpijob_v1(**spec))

    def step(self) -> Outcome:
        client = FakeRestClient(self.server)
        context = Context(client, Reader(client, None), clock=lambda: NOW)
        return reconcile(context, self.server.objects[KEY]["pi"], MPI)

    def names(self, plural: str) -> list[str]:
        return sorted(self.server.objects.get(("default", plural), {}))

    def calls(self, *plurals: str) -> list[tuple[str, str]]:
        return [(call.method, call.plural) for call in self.server.calls if call.plural in plurals]

    def workers(self) -> Any:
        (_, run) = self.server.objects["default", "roles"]["pi-launcher"]["rules"]
        return run["resourceNames"]

    def resize(self, workers: int) -> None:
        job = self.server.objects[KEY]["pi"]
        job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
        job["metadata"]["generation"] += 1

    @property
    def status(self) -> Resource:
        status: Resource = self.server.objects[KEY]["pi"]["status"]
        return status


def foreign(plural: str, **metadata: Any) -> Resource:
    api_version, kind = KINDS[plural]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "pi-launcher", "namespace": "default", **metadata},
    }


def test_it_exists_before_the_pods() -> None:
    here = Here()
    here.step()
    made = [plural for method, plural in here.calls(*ACCOUNT, "pods") if method == "POST"]
    assert made[:3] == list(ACCOUNT)
    assert made[3:] == ["pods"] * 3
    for plural in ACCOUNT:
        (owner,) = here.server.objects["default", plural]["pi-launcher"]["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["apiVersion"]) == (UID, "kubeflow.org/v1")


def test_it_goes_through_the_operators_own_connection() -> None:
    """A Route, which is not watched either, has a client of its own."""
    fake_cluster = FakeCluster(mpijob_v1(), MPI)
    planned = fake_cluster.planned()
    assert planned.routes == ()
    kinds = [manifest["kind"] for manifest in planned.auxiliary_objects]
    assert kinds == ["ServiceAccount", "Role", "RoleBinding", "ConfigMap"]


def test_a_job_at_rest_asks_for_nothing() -> None:
    here = Here()
    here.step()
    here.server.calls.clear()
    here.step()
    assert here.calls(*ACCOUNT) == []


def test_the_role_follows_the_workers_before_they_are_created() -> None:
    here = Here()
    here.step()
    here.resize(4)
    here.server.calls.clear()
    here.step()
    assert here.workers() == [f"pi-worker-{index}" for index in range(4)]
    written = [call for call in here.calls(*ACCOUNT, "pods") if call[0] != "GET"]
    assert written.index(("PUT", "roles")) < written.index(("POST", "pods"))
    assert ("PUT", "serviceaccounts") not in written
    assert ("PUT", "rolebindings") not in written, "its subject and role never change"


def test_a_role_of_the_right_content_is_not_written_again() -> None:
    here = Here()
    here.step()
    del here.server.objects["default", "pods"]["pi-worker-0"]
    here.server.calls.clear()
    here.step()
    assert here.names("pods") == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    assert ("PUT", "roles") not in here.calls("roles")


def test_a_role_that_its_tenant_has_extended_is_restored() -> None:
    """Only as far as the job's own pods are created: the operator has no right to list Roles."""
    here = Here()
    here.step()
    role = here.server.objects["default", "roles"]["pi-launcher"]
    role["metadata"]["annotations"]["dljob.operator/spec-hash"] = "another"
    role["rules"] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    here.resize(3)
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1", "pi-worker-2"]


@pytest.mark.parametrize("plural", ACCOUNT)
@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({}, id="without an owner"),
        pytest.param({"labels": {"dljob.operator/job-uid": UID}}, id="with the job's label"),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x", "controller": True}]},
            id="another's",
        ),
    ],
)
def test_a_name_that_belongs_to_somebody_else(plural: str, metadata: Resource) -> None:
    """A job must not extend the rights of an account that it did not create."""
    here = Here()
    theirs = here.server.add(("default", plural), foreign(plural, **metadata))
    for _ in range(3):
        here.step()
    assert here.status["state"] == "Failed"
    assert "/pi-launcher: an object of that name exists and does not belong to this job" in str(here.status)
    assert here.server.objects["default", plural]["pi-launcher"] == theirs
    assert here.names("pods") == []


@pytest.mark.parametrize("plural", ACCOUNT)
def test_one_that_training_operator_created_is_kept(plural: str) -> None:
    """Without a patch, for which the operator would need another right: nothing reads its labels."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "pi", "uid": UID, "controller": True}
    here = Here()
    here.server.add(("default", plural), foreign(plural, ownerReferences=[owner]))
    here.step()
    assert here.names("pods") == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    assert ("PATCH", plural) not in here.calls(plural)
    assert (("PUT", plural) in here.calls(plural)) == (plural == "roles"), "training-operator's lacks get"


def test_without_the_rights_the_job_waits_and_says_what_is_missing() -> None:
    here = Here()
    text = (
        'roles.rbac.authorization.k8s.io "pi-launcher" is forbidden: user "system:serviceaccount:a:b" is attempting to '
        'grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods/exec"], Verbs:["create" "get"]}'
    )
    refusal = failure(403, "Forbidden", text, name="pi-launcher", group="rbac.authorization.k8s.io", kind="roles")
    fault = Fault(refusal, lambda call: (call.method, call.plural) == ("POST", "roles"), times=2)
    here.server.faults.append(fault)
    for _ in range(2):
        outcome = here.step()
        assert outcome.requeue_after is not None
    assert here.names("pods") == []
    assert "permissions not currently held" in here.status["reason"]
    assert here.status["state"] != "Failed"
    here.step()
    assert here.names("pods") == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
