"""The Secret, ConfigMap and batch Job of an MPIJob at the API server: generated once, and never taken from others."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hash
from cryptography.hazmat.primitives import serialization
from support import batch_controller
from support.builders import MPI, NOW, OF_OTHERS, UID, Resource, mpijob
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, failure

KEY = ("default", "mpijobs")
OWNED = {"services": "pi", "configmaps": "pi-config", "secrets": "pi-ssh", "jobs": "pi-launcher", "pods": "pi-worker-0"}


class Here:
    """An API server with one MPIJob."""

    def __init__(self, **spec: Any) -> None:
        self.server = FakeApiServer()
        self.server.add(KEY, mpijob(**spec))

    def get(self, plural: str, name: str) -> Resource:
        return self.server.objects[("default", plural)][name]

    def has(self, plural: str) -> bool:
        return OWNED[plural] in self.server.objects.get(("default", plural), {})

    def step(self, owned: Any = None) -> Outcome:
        client = FakeRestClient(self.server)
        context = Context(client, Reader(client, owned), clock=lambda: NOW)
        outcome = reconcile(context, self.get("mpijobs", "pi"), MPI)
        batch_controller.work(self.server)
        return outcome

    def data(self) -> dict[str, bytes]:
        return {name: base64.b64decode(value) for name, value in self.get("secrets", "pi-ssh")["data"].items()}

    @property
    def status(self) -> Resource:
        status: Resource = self.get("mpijobs", "pi")["status"]
        return status


def foreign(plural: str, **metadata: Any) -> Resource:
    kind = {"services": "Service", "configmaps": "ConfigMap", "secrets": "Secret", "jobs": "Job", "pods": "Pod"}[plural]
    content = {"data": {"ssh-privatekey": "eA=="}} if kind == "Secret" else {"spec": {}, "status": {"conditions": [{}]}}
    if kind == "Pod":
        content = {"spec": {"containers": []}, "status": {"phase": "Pending"}}
    return {"kind": kind, "metadata": {"name": OWNED[plural], "namespace": "default", **metadata}, **content}


def test_a_key_pair_is_generated() -> None:
    here = Here()
    here.step()
    secret, data = here.get("secrets", "pi-ssh"), here.data()
    key: Any = serialization.load_pem_private_key(data["ssh-privatekey"], None)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert data == {"ssh-privatekey": data["ssh-privatekey"], "ssh-publickey": public + b"\n"}
    assert data["ssh-privatekey"].startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert secret["type"] == "kubernetes.io/ssh-auth"
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (UID, True)


def test_each_job_has_its_own() -> None:
    one, other = Here(), Here()
    one.step()
    other.step()
    assert one.data()["ssh-privatekey"] != other.data()["ssh-privatekey"]


def test_it_is_kept() -> None:
    """Also while pods are created anew, and with a cache that does not have the objects yet."""
    here = Here()
    here.step()
    kept, launcher = here.get("secrets", "pi-ssh"), here.get("jobs", "pi-launcher")["metadata"]["uid"]
    here.step()
    del here.server.objects["default", "pods"]["pi-worker-1"]
    here.step()
    here.step(owned={UID: {}})
    assert "pi-worker-1" in here.server.objects["default", "pods"]
    assert here.get("secrets", "pi-ssh") == kept
    assert here.get("jobs", "pi-launcher")["metadata"]["uid"] == launcher
    assert not {("PUT", "secrets"), ("PUT", "jobs")} & {(call.method, call.plural) for call in here.server.calls}
    assert here.status["state"] != "Failed"


def test_secrets_are_neither_listed_nor_deleted() -> None:
    """The operator has no right to."""
    here = Here(runPolicy={"cleanPodPolicy": "All"})
    for _ in range(4):
        here.step()
    for pod in list(here.server.objects["default", "pods"].values()):
        pod["status"] |= {"phase": "Succeeded"}
    for _ in range(4):
        here.step()
    assert here.status["state"] == "Succeeded"
    asked = {(call.method, call.name) for call in here.server.calls if call.plural == "secrets"}
    assert asked <= {("POST", ""), ("GET", "pi-ssh")}


@pytest.mark.parametrize("may_delete", [True, False])
def test_the_secret_that_the_garbage_collector_has_missed(may_delete: bool) -> None:
    """A restart of the API server made a job wait for ever that had been deleted and created again meanwhile."""
    here = Here()
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "pi", "uid": "the first", "controller": True}
    theirs = here.server.add(("default", "secrets"), foreign("secrets", ownerReferences=[owner]))
    if not may_delete:
        denied = Fault(failure(403, "Forbidden", "no"), lambda call: call.method == "DELETE", times=9)
        here.server.faults.append(denied)
    for _ in range(3):
        here.step()
    assert here.has("jobs") is may_delete
    if not may_delete:
        assert here.get("secrets", "pi-ssh") == theirs
        assert here.status["reason"].endswith("delete Secret/pi-ssh")


@pytest.mark.parametrize("plural", OWNED)
@pytest.mark.parametrize("metadata", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_name_that_belongs_to_somebody_else(plural: str, metadata: Resource) -> None:
    here = Here()
    theirs = here.server.add(("default", plural), foreign(plural, **metadata))
    for _ in range(3):
        here.step()
    assert here.status["state"] == "Created"
    assert f"/{OWNED[plural]}: an object of that name exists and does not belong to this job" in str(here.status)
    assert here.get(plural, OWNED[plural]) == theirs
    if plural in ("secrets", "configmaps"):
        assert not here.has("jobs"), "no pod may mount it"
        assert plural == "pods" or not here.has("pods")
    del here.server.objects["default", plural][OWNED[plural]]
    here.step()
    assert all(here.has(one) for one in OWNED), "the job goes on by itself"
    assert here.status["reason"] == ""


def test_a_secret_that_was_exchanged_meanwhile() -> None:
    """A worker that restarts would mount it."""
    here = Here()
    here.server.objects[KEY]["pi"]["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    here.step()
    theirs = here.server.objects["default", "secrets"]["pi-ssh"] = foreign("secrets", uid="theirs")
    del here.server.objects["default", "pods"]["pi-worker-0"]
    for _ in range(3):
        here.step()
    assert not here.has("pods")
    assert here.get("secrets", "pi-ssh") == theirs
    assert here.status["reason"].startswith("Secret/pi-ssh: an object of that name exists")
    assert "failure" not in here.status


def test_the_hash_of_workers_does_not_depend_on_their_number() -> None:
    from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job

    jobs = [parse_job(mpijob(number), MPI) for number in (2, 3)]
    assert len({spec_hash(job, group) for job in jobs for group in job.groups if group.type == "Worker"}) == 1
