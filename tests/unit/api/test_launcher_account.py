"""The account of an MPIJob v1's launcher at the API server: made before the pods, kept up to date, never taken over."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from support.builders import MPI, NOW, OF_OTHERS, UID, Resource, mpijob_v1
from support.fake_api_server import Call, FakeApiServer, FakeRestClient, Fault, failure
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
        self.settings = OperatorSettings()

    def step(self) -> Outcome:
        client = FakeRestClient(self.server)
        context = Context(client, Reader(client, None), clock=lambda: NOW, settings=self.settings)
        return reconcile(context, self.server.objects[KEY]["pi"], MPI)

    def start(self) -> None:
        """The workers run and are ready, then the launcher is created."""
        self.step()
        self.run()
        self.step()
        assert self.names("pods")[0] == "pi-launcher"

    def run(self) -> None:
        for pod in self.server.objects["default", "pods"].values():
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}

    def grow(self) -> None:
        """A third worker runs, which the next step allows the launcher to reach."""
        self.start()
        self.resize(3)
        self.step()
        self.run()

    def names(self, plural: str) -> list[str]:
        return sorted(self.server.objects.get(("default", plural), {}))

    def calls(self, *plurals: str) -> list[tuple[str, str]]:
        return [(call.method, call.plural) for call in self.server.calls if call.plural in plurals]

    def workers(self) -> list[str]:
        """Those in which the launcher may run commands."""
        rules = self.server.objects["default", "roles"]["pi-launcher"]["rules"]
        return [name for rule in rules for name in rule.get("resourceNames", ())]

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


def role_cannot_be_written(here: Here, times: int) -> Fault:
    failed = failure(500, "InternalError", "etcdserver: request timed out")
    fault = Fault(failed, lambda call: (call.method, call.plural) == ("PUT", "roles"), times=times)
    here.server.faults.append(fault)
    return fault


def test_it_exists_before_the_pods() -> None:
    here = Here()
    here.step()
    made = [plural for method, plural in here.calls(*ACCOUNT, "pods") if method == "POST"]
    assert made == [*ACCOUNT, "pods", "pods"]
    for plural in ACCOUNT:
        (owner,) = here.server.objects["default", plural]["pi-launcher"]["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["apiVersion"]) == (UID, "kubeflow.org/v1")


def test_the_launcher_starts_with_the_right_to_reach_all_workers() -> None:
    here = Here()
    here.step()
    assert here.workers() == []
    here.run()
    here.server.calls.clear()
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1"]
    written = [call for call in here.calls(*ACCOUNT, "pods") if call[0] != "GET"]
    assert written.index(("PUT", "roles")) < written.index(("POST", "pods"))


def test_nothing_is_created_twice() -> None:
    here = Here()
    here.step()
    here.run()
    here.server.calls.clear()
    here.step()
    written = [call for call in here.calls(*ACCOUNT, "configmaps", "pods") if call[0] != "GET"]
    assert written == [("PUT", "roles"), ("POST", "pods"), ("PUT", "configmaps")]


@pytest.mark.parametrize("plural", [*ACCOUNT, "configmaps"])
def test_what_is_gone_before_the_launcher_is_made_again(plural: str) -> None:
    here = Here()
    here.step()
    here.run()
    before = here.names(plural)
    here.server.objects["default", plural].clear()
    here.step()
    assert (here.names(plural), here.names("pods")[0]) == (before, "pi-launcher")


def test_it_goes_through_the_operators_own_connection() -> None:
    """A Route, which is not watched either, has a client of its own."""
    fake_cluster = FakeCluster(mpijob_v1(), MPI)
    planned = fake_cluster.planned()
    assert planned.routes == ()
    kinds = [manifest["kind"] for manifest in planned.auxiliary_objects]
    assert kinds == ["ServiceAccount", "Role", "RoleBinding", "ConfigMap"]


def test_a_job_at_rest_asks_for_nothing() -> None:
    here = Here()
    here.start()
    here.step()
    here.server.calls.clear()
    here.step()
    assert here.calls(*ACCOUNT) == []


def test_the_role_follows_the_workers() -> None:
    here = Here()
    here.start()
    here.resize(4)
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1"], "the new ones may not be this job's yet"
    here.run()
    here.server.calls.clear()
    here.step()
    assert here.workers() == [f"pi-worker-{index}" for index in range(4)]
    written = [call for call in here.calls(*ACCOUNT, "configmaps") if call[0] != "GET"]
    assert written.index(("PUT", "roles")) < written.index(("PUT", "configmaps")), (
        "a host is listed once it is in reach"
    )
    assert {("PUT", "serviceaccounts"), ("PUT", "rolebindings")}.isdisjoint(written), "their content is the same"
    here.resize(1)
    for _ in range(3):
        here.step()
    assert here.workers() == ["pi-worker-0"], "another job may take the names"


def end(here: Here, how: str) -> None:
    """Suspend the job, or let its launcher succeed, so that the workers are deleted."""
    if how == "suspended":
        here.server.objects[KEY]["pi"]["spec"]["runPolicy"] = {"suspend": True}
        here.server.objects[KEY]["pi"]["metadata"]["generation"] += 1
    else:
        launcher = here.server.objects["default", "pods"]["pi-launcher"]
        ended = {"name": "launcher", "state": {"terminated": {"exitCode": 0}}}
        launcher["status"] = {"phase": "Succeeded", "containerStatuses": [ended]}


@pytest.mark.parametrize(("how", "failures"), [("suspended", 0), ("suspended", 2), ("succeeded", 0), ("succeeded", 2)])
def test_no_right_outlives_the_workers(how: str, failures: int) -> None:
    """Also where the first requests fail: each reconcile tries it again while a pod terminates."""
    here = Here(runPolicy={"cleanPodPolicy": "All"})
    here.start()
    end(here, how)
    fault = role_cannot_be_written(here, failures)
    for _ in range(5):
        here.step()
    assert fault.times == 0
    assert here.status["state"] in ("Suspended", "Succeeded")
    left = here.server.objects["default", "pods"].values()
    assert all(pod["metadata"].get("deletionTimestamp") for pod in left)
    assert here.workers() == []


@pytest.mark.parametrize("failures", [0, 2])
def test_a_list_of_hosts_that_outlives_the_workers_names_none(failures: int) -> None:
    here = Here(runPolicy={"cleanPodPolicy": "Running"})
    here.start()
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1"]
    end(here, "succeeded")
    fault = role_cannot_be_written(here, failures)
    for _ in range(5):
        here.step()
    assert (fault.times, here.status["state"], here.workers()) == (0, "Succeeded", [])
    hosts = here.server.objects["default", "configmaps"]["pi-config"]
    assert "workers-in-reach" not in str(hosts["metadata"]["annotations"])
    here.server.objects["default", "pods"] = {
        name: pod
        for name, pod in here.server.objects["default", "pods"].items()
        if not pod["metadata"].get("deletionTimestamp")
    }
    here.step()
    here.server.calls.clear()
    here.step()
    assert (here.status["phase"], here.names("pods"), here.names("configmaps")) == (
        "Done",
        ["pi-launcher"],
        ["pi-config"],
    )
    assert {method for method, _ in here.calls(*ACCOUNT, "configmaps", "pods")} <= {"GET"}


@pytest.mark.parametrize("failures", [0, 2])
def test_a_finished_job_that_keeps_its_pods_has_no_right_in_them(failures: int) -> None:
    """Its launcher may still run, and other jobs may take the names of its workers."""
    here = Here(runPolicy={"cleanPodPolicy": "None"})
    here.start()
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1"]
    end(here, "succeeded")
    fault = role_cannot_be_written(here, failures)
    for _ in range(5):
        here.step()
    assert (fault.times, here.status["state"], here.workers()) == (0, "Succeeded", [])
    assert here.names("pods") == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    here.server.calls.clear()
    here.step()
    assert {method for method, _ in here.calls(*ACCOUNT, "configmaps", "pods")} <= {"GET"}


def test_rights_in_workers_that_are_no_hosts_yet_are_revoked() -> None:
    """Killed after it had created the launcher, the operator has not listed the hosts."""
    here = Here(runPolicy={"cleanPodPolicy": "None"})
    here.step()
    configs = here.server.objects["default", "configmaps"]
    before = copy.deepcopy(configs["pi-config"])
    here.run()
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1"]
    configs["pi-config"] = before
    end(here, "succeeded")
    for pod in here.server.objects["default", "pods"].values():
        if pod["metadata"]["name"] != "pi-launcher":
            pod["status"] = {"phase": "Pending"}
    for _ in range(4):
        here.step()
    assert (here.status["state"], here.workers()) == ("Succeeded", [])


def test_the_cleanup_revokes_the_rights_with_the_pods_and_only_then() -> None:
    """They may be gone before the operator sees them terminate."""
    here = Here(runPolicy={"cleanPodPolicy": "All"})
    here.start()
    end(here, "succeeded")
    here.step()
    here.step()
    assert here.workers() == []
    here.server.objects["default", "pods"].clear()
    here.step()
    here.server.calls.clear()
    here.step()
    assert here.status["phase"] == "Done"
    assert here.calls(*ACCOUNT) == []


def test_a_suspended_job_without_pods_still_revokes_its_rights() -> None:
    """Its pods were gone before the Role could be written: the list of hosts shows it."""
    here = Here()
    here.start()
    here.step()
    end(here, "suspended")
    fault = role_cannot_be_written(here, 2)
    here.step()
    here.server.objects["default", "pods"].clear()
    for _ in range(2):
        here.step()
    assert (fault.times, here.workers()) == (0, [])
    here.server.calls.clear()
    here.step()
    assert {method for method, _ in here.calls(*ACCOUNT, "configmaps")} <= {"GET"}


def test_a_pod_of_another_job_is_out_of_reach() -> None:
    """A PyTorchJob of this name has a pod of this name; this job waits, and its Role does not name that pod."""
    here = Here()
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "pi", "uid": "other", "controller": True}
    metadata = {"name": "pi-worker-0", "namespace": "default", "ownerReferences": [owner]}
    victim = {"kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Running"}}
    here.server.add(("default", "pods"), victim)
    for _ in range(4):
        here.step()
        assert "pi-worker-0" not in here.workers()
        assert "pi-launcher" not in here.names("pods")
    assert here.status["reason"].startswith("Pod/pi-worker-0: an object of that name exists")
    assert here.names("pods") == ["pi-worker-0"]
    assert here.workers() == []


def test_what_is_written_of_kinds_that_are_not_watched_is_waited_for_by_no_engine() -> None:
    """Its cache never shows them: each such write held up a worker, and with it other tenants' jobs, for seconds."""
    here = Here()
    here.step()
    here.run()
    outcome = here.step()
    assert ("PUT", "roles") in here.calls("roles")
    unwatched = {here.server.objects["default", plural]["pi-launcher"]["metadata"]["uid"] for plural in ACCOUNT}
    assert unwatched.isdisjoint(uid for uid, _ in outcome.wrote)


def test_a_role_of_the_right_content_is_not_written_again() -> None:
    here = Here()
    here.start()
    del here.server.objects["default", "pods"]["pi-launcher"]
    here.server.calls.clear()
    here.step()
    assert here.names("pods") == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    assert here.calls(*ACCOUNT)
    assert "PUT" not in {method for method, _ in here.calls(*ACCOUNT)}


@pytest.mark.parametrize("rules", [[], [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]])
def test_a_role_that_its_tenant_has_changed_is_restored(rules: list[Resource]) -> None:
    """Before the next pod is created: the operator has no right to list Roles."""
    here = Here()
    here.start()
    here.server.objects["default", "roles"]["pi-launcher"]["rules"] = rules
    del here.server.objects["default", "pods"]["pi-launcher"]
    here.step()
    assert here.workers() == ["pi-worker-0", "pi-worker-1"]
    (pods, _) = here.server.objects["default", "roles"]["pi-launcher"]["rules"]
    assert pods["resources"] == ["pods"]


def test_a_late_request_does_not_give_a_right_back() -> None:
    """A deposed leader reads the Role, its successor writes it, and then the deposed leader's update arrives."""
    here = Here()
    here.grow()
    newer = {**here.server.objects["default", "roles"]["pi-launcher"], "rules": []}

    def successor_writes_first(call: Call) -> bool:
        if (call.method, call.plural) == ("PUT", "roles"):
            here.server.faults.clear()
            here.server.add(("default", "roles"), newer)
        return False  # the request itself is not disturbed

    here.server.faults.append(Fault(failure(500, "", ""), successor_writes_first))
    here.step()
    assert ("PUT", "roles") in here.calls("roles")
    assert here.workers() == []
    here.step()
    assert here.workers() == [f"pi-worker-{index}" for index in range(3)], "by what the server has now"


def test_a_role_that_could_not_be_written_is_written_later() -> None:
    """The operator cannot list Roles: it knows by the list of hosts, which it must not write before."""
    here = Here()
    here.grow()
    role_cannot_be_written(here, 2)
    hosts = here.server.objects["default", "configmaps"]["pi-config"]["data"]["discover_hosts.sh"]
    for _ in range(2):
        here.step()
        assert here.workers() == ["pi-worker-0", "pi-worker-1"]
        assert here.server.objects["default", "configmaps"]["pi-config"]["data"]["discover_hosts.sh"] == hosts
    here.step()
    assert here.workers() == [f"pi-worker-{index}" for index in range(3)]
    assert here.server.objects["default", "configmaps"]["pi-config"]["data"]["discover_hosts.sh"] != hosts


def test_a_list_of_hosts_that_was_deleted_waits_for_the_role_too() -> None:
    here = Here()
    here.start()
    here.resize(1)
    fault = role_cannot_be_written(here, 2)
    here.step()
    del here.server.objects["default", "configmaps"]["pi-config"]
    here.step()
    assert fault.times == 0
    assert here.names("configmaps") == []
    here.step()
    assert (here.workers(), here.names("configmaps")) == (["pi-worker-0"], ["pi-config"])


def test_other_objects_do_not_wait_for_the_role() -> None:
    here = Here()
    here.settings = OperatorSettings(gang=gang_scheduler("volcano"))
    here.start()
    assert here.names("podgroups") == ["pi"]
    role_cannot_be_written(here, 9)
    here.resize(1)
    del here.server.objects["default", "podgroups"]["pi"]
    for _ in range(2):
        here.step()
    assert here.names("podgroups") == ["pi"]


def test_another_account_gets_the_rights_in_place_of_the_first() -> None:
    here = Here()
    here.start()
    job = here.server.objects[KEY]["pi"]
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["serviceAccountName"] = "trainer"
    job["metadata"]["generation"] += 1
    for _ in range(3):
        here.step()
    assert here.server.objects["default", "pods"]["pi-launcher"]["spec"]["serviceAccountName"] == "trainer"
    (subject,) = here.server.objects["default", "rolebindings"]["pi-launcher"]["subjects"]
    assert subject["name"] == "trainer"


@pytest.mark.parametrize("plural", ACCOUNT)
@pytest.mark.parametrize("metadata", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_name_that_belongs_to_somebody_else(plural: str, metadata: Resource) -> None:
    """A job must not extend the rights of an account that it did not create."""
    here = Here()
    theirs = here.server.add(("default", plural), foreign(plural, **metadata))
    for _ in range(3):
        here.step()
    assert here.status["state"] == "Created"
    assert "/pi-launcher: an object of that name exists and does not belong to this job" in str(here.status)
    assert here.server.objects["default", plural]["pi-launcher"] == theirs
    assert here.names("pods") == []


@pytest.mark.parametrize("plural", ACCOUNT)
def test_one_that_training_operator_created_needs_no_patch(plural: str) -> None:
    """For which the operator would need another right: nothing reads its labels."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "pi", "uid": UID, "controller": True}
    here = Here()
    here.server.add(("default", plural), foreign(plural, ownerReferences=[owner]))
    here.start()
    assert here.names("pods") == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    assert ("PATCH", plural) not in here.calls(plural)
    assert (("PUT", plural) in here.calls(plural)) == (plural != "serviceaccounts")
    assert here.workers() == ["pi-worker-0", "pi-worker-1"]


def is_patch_of(call: Call, pod: Resource) -> bool:
    return (call.method, call.name) == ("PATCH", pod["metadata"]["name"])


def test_the_rights_of_a_launcher_that_runs_stay_until_its_workers_are_adopted() -> None:
    """It may be about to start processes in them. The plan knows them only in the next reconcile."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "pi", "uid": UID, "controller": True}
    here = Here()
    names = ["pi-worker-0", "pi-worker-1"]
    role = foreign("roles", ownerReferences=[owner])
    reads = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    role["rules"] = [reads, {**reads, "resources": ["pods/exec"], "verbs": ["create"], "resourceNames": names}]
    here.server.add(("default", "roles"), role)
    for name in ("pi-launcher", *names):
        metadata = {"name": name, "namespace": "default", "ownerReferences": [owner]}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        here.server.add(("default", "pods"), {"kind": "Pod", "metadata": metadata, "spec": {}, "status": status})
    late = here.server.objects["default", "pods"]["pi-worker-1"]
    fault = Fault(failure(500, "InternalError", "etcdserver: request timed out"), lambda call: is_patch_of(call, late))
    here.server.faults.append(fault)
    for _ in range(6):
        here.step()
        assert here.workers() == names
    (_, run) = here.server.objects["default", "roles"]["pi-launcher"]["rules"]
    assert run["verbs"] == ["create", "get"], "the Role is this operator's in the end"


def test_without_the_rights_the_job_waits_and_says_what_is_missing() -> None:
    here = Here()
    text = (
        'roles.rbac.authorization.k8s.io "pi-launcher" is forbidden: user "system:serviceaccount:a:b" is attempting to '
        'grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods/exec"], Verbs:["create" "get"]}'
    )
    refusal = failure(403, "Forbidden", text, name="pi-launcher", group="rbac.authorization.k8s.io", kind="roles")
    here.step()
    here.run()
    here.server.faults.append(Fault(refusal, lambda call: (call.method, call.plural) == ("PUT", "roles"), times=3))
    for _ in range(2):
        outcome = here.step()
        assert outcome.requeue_after is not None
    assert "pi-launcher" not in here.names("pods")
    assert "permissions not currently held" in here.status["reason"]
    assert here.status["state"] != "Failed"
    here.server.faults.clear()
    here.step()
    assert here.names("pods")[0] == "pi-launcher"
