"""A job whose pods another operator has created: the reconcile that finds them adopts them and reports nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import RETRY_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import slices
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_JOB_UID
from support.builders import MXNET, NOW, UID, mxjob, stamp
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, failure
from support.recording_api import Api, context_of

PODS = ["digits-scheduler-0", "digits-worker-0", "digits-worker-1"]


class Cluster(Api):
    """The pods of the job exist, as training-operator creates them. ``denied`` is the answer to an Event."""

    def __init__(self, denied: ApiError | None = None) -> None:
        super().__init__({"Event": denied} if denied else {})

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "POST" and body["kind"] == "Pod":
            raise ApiError(409, "AlreadyExists", "is there")
        if "/pods/" not in path:
            return super().request(method, path, body, query, content_type)
        found = {
            "namespace": "default",
            "uid": path.rpartition("/")[2],
            "resourceVersion": "5",
            "ownerReferences": [{"uid": UID, "controller": True}],
        }
        if method == "PATCH":
            found |= {"resourceVersion": "6", "labels": body["metadata"]["labels"]}
        return {"metadata": found}


def adopted(api: Api) -> Outcome:
    return reconcile(context_of(api), mxjob("digits").v1().workers(2).resource(), MXNET)


def test_the_next_reconcile_writes_the_status() -> None:
    api = Cluster()
    outcome = adopted(api)
    assert (outcome.ok, outcome.changed, outcome.continues) == (True, True, False)
    assert (outcome.status, api.status) == (None, None), "it would call the pods missing"
    assert outcome.requeue_after
    assert outcome.requeue_after > 0
    assert {(pod, "6") for pod in PODS} <= set(outcome.wrote), "the cache has to observe them first"


def test_one_event_names_what_was_adopted() -> None:
    api = Cluster()
    message = adopted(api).message
    assert message == f"Adopted 3 objects of another operator: {', '.join(f'Pod/{pod}' for pod in PODS)}"
    assert api.events() == [f"Adopted: {message}"]


@pytest.mark.parametrize(
    ("denied", "warned"),
    [(None, False), (ApiError(403, "Forbidden", 'cannot create resource "events" in API group ""'), True)],
)
def test_an_event_that_the_operator_may_not_write_is_a_warning_in_its_log(
    denied: ApiError | None, warned: bool
) -> None:
    outcome = adopted(Cluster(denied))
    assert (outcome.ok, bool(outcome.warnings)) == (True, warned)


# What happens to a job before its pods are adopted


KEY = ("default", "mxjobs")
PODS_KEY = ("default", "pods")
RUNNING = [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]
OF_ANOTHER_JOB = "of-another-job"
FAILED_REQUEST = failure(500, "InternalError", "etcdserver: request timed out")
DENIED = failure(403, "Forbidden", "admission webhook denied the request")


def fault(answer: Any, method: str, *, times: int = 1) -> Fault:
    """``answer`` to the next ``times`` requests for pods with that method."""
    return Fault(answer, lambda call: (call.method, call.plural) == (method, "pods"), times=times)


class Here:
    """An API server with a job of training-operator that runs, and the cache of an engine: it has the pods that have
    the labels of this operator, which are none of them."""

    def __init__(self, workers: int = 2, **run_policy: Any) -> None:
        self.server = FakeApiServer()
        self.names = [PODS[0], *(f"digits-worker-{i}" for i in range(workers))]
        job = mxjob("digits").v1().workers(workers).run_policy(**run_policy)
        self.server.add(KEY, job.status(conditions=RUNNING, startTime=stamp(-60)).resource())
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": UID, "controller": True}
        for name, uid in [*((pod, UID) for pod in self.names), (OF_ANOTHER_JOB, "other")]:
            metadata = {"name": name, "namespace": "default", "labels": {"training.kubeflow.org/job-name": "digits"}}
            pod = {"metadata": {**metadata, "ownerReferences": [{**owner, "uid": uid}]}, "spec": {}}
            self.server.add(PODS_KEY, {"kind": "Pod", **pod, "status": {"phase": "Running"}})

    def step(self) -> Outcome:
        client = FakeRestClient(self.server)
        cached = Reader(client, {UID: self.cached()})
        context = Context(client, cached, clock=lambda: NOW)
        return reconcile(context, self.server.objects[KEY]["digits"], MXNET)

    def cached(self) -> dict[str, list[Any]]:
        pods = self.server.objects[PODS_KEY].values()
        return {"Pod": [pod for pod in pods if LABEL_JOB_UID in (pod["metadata"].get("labels") or {})], "Service": []}

    def settle(self) -> None:
        for _ in range(4):
            self.step()
            pods = self.server.objects[PODS_KEY]
            for name in [name for name, pod in pods.items() if pod["metadata"].get("deletionTimestamp")]:
                del pods[name]

    def suspend(self) -> None:
        self.server.objects[KEY]["digits"]["spec"]["runPolicy"]["suspend"] = True

    def searches(self) -> bool:
        """Whether a reconcile searches for pods of training-operator."""
        self.server.calls.clear()
        self.step()
        return any("training.kubeflow.org" in call.query.get("labelSelector", "") for call in self.server.calls)

    def pods(self) -> list[str]:
        return sorted(self.server.objects[PODS_KEY])

    @property
    def status(self) -> Any:
        return self.server.objects[KEY]["digits"]["status"]

    @property
    def condition(self) -> str:
        return str(self.status["conditions"][-1]["type"])


@pytest.mark.parametrize("times", [0, 2])
def test_the_pods_of_a_suspended_job_go(times: int) -> None:
    """Kueue gives their quota to another job."""
    here = Here(suspend=True)
    here.server.faults.append(fault(FAILED_REQUEST, "DELETE", times=times))
    here.settle()
    assert (here.pods(), here.condition) == ([OF_ANOTHER_JOB], "Suspended")
    assert not here.searches(), "it searches once"
    assert not here.server.calls


def test_the_status_says_suspended_after_their_deletion() -> None:
    here = Here(suspend=True)
    here.server.faults.append(fault(DENIED, "DELETE", times=9))
    outcome = here.step()
    assert here.condition == "Running"
    assert "admission webhook denied" in here.status["reason"]
    assert outcome.requeue_after == RETRY_REQUEUE
    here.server.faults.clear()
    here.settle()
    assert (here.pods(), here.condition) == ([OF_ANOTHER_JOB], "Suspended")


@pytest.mark.parametrize("refused", [1, 9])
def test_those_go_too_that_could_not_be_adopted(refused: int) -> None:
    """One refused, or all: the status is that of this operator, and some of the pods are known."""
    here = Here()
    here.server.faults.append(fault(DENIED, "PATCH", times=refused))
    here.step()
    assert len(here.cached()["Pod"]) == max(0, 3 - refused)
    here.suspend()
    here.settle()
    assert (here.pods(), here.condition) == ([OF_ANOTHER_JOB], "Suspended")
    assert [call.method for call in here.server.calls].count("DELETE") == len(PODS), "each once"


@pytest.mark.usefixtures("enough_time")
def test_more_pods_than_one_slice_deletes() -> None:
    here = Here(workers=slices.LARGEST + 5, suspend=True)
    here.settle()
    assert (here.pods(), here.condition) == ([OF_ANOTHER_JOB], "Suspended")


def test_a_pod_that_terminates_does_not_delay_the_status() -> None:
    """Its node may be lost, and its end is not awaited of a pod of this operator either."""
    here = Here(suspend=True)
    here.server.objects[PODS_KEY][PODS[0]]["metadata"]["deletionTimestamp"] = stamp()
    here.step()
    assert [call.name for call in here.server.calls if call.method == "DELETE"] == PODS[1:]
    here.step()
    assert here.condition == "Suspended"


def test_no_cache_is_awaited_that_never_has_them() -> None:
    here = Here(suspend=True)
    outcome = here.step()
    assert (outcome.changed, outcome.wrote) == (True, ())


@pytest.mark.parametrize(("policy", "left"), [("All", []), ("Running", ["digits-worker-1"]), ("None", [*PODS])])
def test_the_pods_of_a_job_that_fails_go_as_its_policy_demands(policy: str, left: list[str]) -> None:
    here = Here(activeDeadlineSeconds=30, cleanPodPolicy=policy)
    here.server.objects[PODS_KEY]["digits-worker-1"]["status"]["phase"] = "Succeeded"
    here.server.faults.append(fault(FAILED_REQUEST, "DELETE"))
    here.settle()
    assert (here.status["failure"]["reason"], here.pods()) == ("DeadlineExceeded", sorted([*left, OF_ANOTHER_JOB]))
    assert not here.searches()


def test_a_job_with_all_its_pods_is_not_searched() -> None:
    here = Here()
    here.settle()
    assert here.pods() == sorted([*PODS, OF_ANOTHER_JOB])
    here.suspend()
    assert not here.searches()
    here.settle()
    assert (here.pods(), here.condition) == ([OF_ANOTHER_JOB], "Suspended")


def test_nor_is_a_new_one_that_kueue_holds_back() -> None:
    here = Here(suspend=True)
    here.server.objects[KEY]["digits"]["status"] = {}
    assert not here.searches()


def test_nor_is_one_that_goes_on() -> None:
    here = Here(activeDeadlineSeconds=300)
    assert not here.searches()


def test_a_job_of_another_manager_is_left_alone() -> None:
    here = Here(suspend=True, managedBy="kueue.x-k8s.io/multikueue")
    assert not here.searches()
    assert here.pods() == sorted([*PODS, OF_ANOTHER_JOB])


@pytest.mark.parametrize("policy", ["All", "Running"])
def test_a_pod_that_was_never_adopted_does_not_outlive_the_success(policy: str) -> None:
    here = Here(cleanPodPolicy=policy)
    here.server.faults.append(Fault(DENIED, lambda call: (call.method, call.name) == ("PATCH", PODS[2]), times=9))
    here.step()
    here.server.objects[PODS_KEY][PODS[0]]["status"] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "mxnet", "state": {"terminated": {"exitCode": 0}}}],
    }
    here.server.objects[PODS_KEY][PODS[1]]["status"]["phase"] = "Succeeded"
    here.settle()
    assert here.status["state"] == "Succeeded"
    assert PODS[2] not in here.pods()
