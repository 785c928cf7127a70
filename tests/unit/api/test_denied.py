"""Objects that a quota, an admission rule or an error refuses: few requests, one reason, tries that become rarer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.writer import FIRST_AT_ONCE, Writer
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan
from support.builders import MPI, MXNET, NOW, TENSORFLOW, Resource, grouped, mpijob, mxjob, stamp, tfjob
from support.fake_api_server import (
    Admission,
    Call,
    FakeApiServer,
    FakeRestClient,
    Response,
    failure,
    forbidden,
    pod_quota,
)
from support.recording_api import Api, context_of

QUOTA = ApiError(403, "Forbidden", "exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10")
JOB = mxjob("digits").v1().workers(300).resource()


class Counting(Api):
    """Counts the requests for pods, of which it refuses all but ``admitted``, each after a while."""

    def __init__(self, refuses: Mapping[str, ApiError], width: int = 2, admitted: int = 0) -> None:
        super().__init__(refuses)
        self.executor = BoundedExecutor(width)
        self.admitted = admitted
        self.tries = 0
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "POST" and body["kind"] == "Pod":
            with self._lock:
                self.tries += 1
                is_admitted = self.tries <= self.admitted
            threading.Event().wait(0.002)  # others may begin meanwhile
            if is_admitted:
                return {"metadata": {"uid": path, "resourceVersion": "1"}}
        return super().request(method, path, body, query, content_type)


def seen(api: Api, status: dict[str, Any] | None = None) -> Outcome:
    return reconcile(context_of(api), {**JOB, "status": status or {}}, MXNET)


def aged(status: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The status as if it had been written at that time."""
    conditions = [{**one, "lastTransitionTime": stamp(seconds)} for one in status["conditions"]]
    return {**status, "startTime": stamp(seconds), "conditions": conditions}


FIRST = "Pod/digits-scheduler-0"
WEBHOOK = ApiError(500, "InternalError", 'failed calling webhook "w.example.com": context deadline exceeded')
NO_ANSWER = ApiError(0, "Timeout", "Read timed out.")


@pytest.mark.parametrize("admitted", [0, 10, 100])
def test_a_quota_answers_few_requests(admitted: int) -> None:
    """300 replicas under a quota of 10 pods made 3,502 requests a minute."""
    api = Counting({"Pod": QUOTA}, width=64, admitted=admitted)
    outcome = seen(api)
    services = 3
    in_progress = min(FIRST_AT_ONCE + services + admitted, 64)
    assert admitted < api.tries <= admitted + in_progress
    assert api.status is not None
    assert "exceeded quota" in api.status["reason"]
    (event,) = api.events()
    assert event.startswith("FailedCreatePod")
    assert outcome.requeue_after == 5.0
    again = Counting({"Pod": QUOTA}, width=64)
    assert seen(again, api.status).requeue_after == 5.0
    assert again.tries == 1


class Silent(Api):
    """Answers only the first ``answered`` requests. The others wait until ``expected`` do, and a while for further ones."""

    def __init__(self, expected: int, answered: int) -> None:
        super().__init__()
        self.executor = BoundedExecutor(64)
        self.expected = expected
        self.answered = answered
        self.waiting = 0
        self.most = 0
        self._changed = threading.Condition()

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        with self._changed:
            if self.answered:
                self.answered -= 1
                return super().request(method, path, body, query, content_type)
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self.expected, 10)
            self._changed.wait_for(lambda: self.most > self.expected, 0.05)
            self.waiting -= 1
        raise WEBHOOK


@pytest.mark.parametrize("answered", [0, 10])
def test_deletions_that_are_not_answered_leave_threads_to_other_jobs(answered: int) -> None:
    """32 of one job would wait on all threads of the worker, and make every job of the batch one of a slow namespace."""
    api = Silent(FIRST_AT_ONCE + answered, answered)
    deletions = tuple(Deletion("Pod", f"p{number}", "u") for number in range(60))
    Writer(api, JOB).objects(Plan(deletions=deletions))
    assert api.most == FIRST_AT_ONCE + answered


@pytest.mark.parametrize("error", [QUOTA, WEBHOOK, NO_ANSWER], ids=["quota", "webhook", "no answer"])
def test_one_stable_reason_and_one_event(error: ApiError) -> None:
    """Of whichever pods the answers come first, the reason names the first of the job."""
    api = Counting({"Pod": error}, width=64)
    seen(api)
    assert api.status is not None
    assert api.status["reason"].startswith(f"{FIRST}: {error.message}")
    assert len(api.events()) == 1
    again = Counting({"Pod": error}, width=64)
    outcome = seen(again, aged(api.status, -100))
    assert (again.status, again.events(), again.tries) == (None, [], 1), "the same refusal writes nothing"
    assert outcome.requeue_after == 10.0, "and the tries become rarer"


@pytest.mark.parametrize(("field", "other", "is_news"), [("used", "cpu=7,pods=9", False), ("limited", "pods=4", True)])
def test_what_others_use_of_a_quota_is_no_other_reason(field: str, other: str, is_news: bool) -> None:
    api = Counting({"Pod": QUOTA})
    seen(api)
    message = QUOTA.message.replace(f"{field}: pods=10", f"{field}: {other}")
    again = Counting({"Pod": ApiError(403, "Forbidden", message)})
    seen(again, api.status)
    assert len(again.events()) == is_news
    assert (again.status or {}).get("reason") == (f"{FIRST}: {message}" if is_news else None)


def test_a_job_that_was_denied_is_created_once_it_may_be() -> None:
    api = Counting({}, width=64)
    assert seen(api, {"startTime": stamp(-100), "phase": "Creating", "reason": f"{FIRST}: {QUOTA.message}"}).changed
    assert api.tries == 301
    assert api.status is not None
    assert not api.status.get("reason")


def test_a_restart_after_a_long_time_is_tried_soon() -> None:
    restarted = {"type": "Restarting", "status": "True", "lastTransitionTime": stamp(-20)}
    status = {"startTime": stamp(-100_000), "phase": "Creating", "conditions": [restarted]}
    assert seen(Counting({"Pod": QUOTA}), status).requeue_after == 5.0


@pytest.mark.parametrize(("started", "requeue"), [(0, 5.0), (-40, 5.0), (-100, 10.0), (-300, 30.0), (-100_000, 60.0)])
def test_the_tries_become_rarer(started: float, requeue: float) -> None:
    api = Counting({"Pod": QUOTA})
    assert seen(api, {"startTime": stamp(started), "phase": "Creating"}).requeue_after == requeue


def test_an_error_that_passes_delays_no_other_pod() -> None:
    api = Counting({"Pod": ApiError(500, "InternalError", "etcd is away")})
    assert seen(api).requeue_after == 5.0
    assert api.tries == 301


@pytest.mark.parametrize("error", [QUOTA, WEBHOOK], ids=["quota", "webhook"])
def test_a_denied_service_delays_no_pod(error: ApiError) -> None:
    """And it is tried ever more rarely, as a pod is, with one reason."""
    api = Counting({"Service": error})
    assert seen(api, {"startTime": stamp(-1), "phase": "Creating"}).requeue_after == 5.0
    assert api.tries == 301
    assert api.status is not None
    assert api.status["reason"].count("Service/") == 1
    assert api.status["reason"].endswith(f": {error.message}")
    again = Counting({"Service": error})
    outcome = seen(again, aged(api.status, -300))
    (event,) = again.events()
    assert event.startswith("SuccessfulCreatePod"), "of the pods, which are created again where nothing lists them"
    assert (again.status, outcome.requeue_after) == (None, 30.0)


@pytest.mark.parametrize(("started", "requeue"), [(-10, 5.0), (-100, 10.0), (-100_000, 60.0)])
@pytest.mark.parametrize("kind", ["ConfigMap", "Job"])
def test_what_the_pods_need_is_tried_ever_more_rarely(kind: str, started: float, requeue: float) -> None:
    """A launcher's batch Job, and the ConfigMap with its hosts: without a limit each took a request every 5 s."""
    job = mpijob()
    job["metadata"]["resourceVersion"] = "1"
    job["status"] = {"startTime": stamp(started), "phase": "Creating"}
    assert reconcile(context_of(Counting({kind: QUOTA})), job, MPI).requeue_after == requeue


# --- what limits the pods of a namespace

OF_NODE = {"name": "data", "hostPath": {"path": "/"}}
POWERS: dict[str, Any] = {"serviceAccountName": "admin", "hostNetwork": True, "securityContext": {"runAsUser": 0}}


def pod_security(call: Call, server: FakeApiServer) -> Response | None:
    """Pod Security at the level ``baseline``, as far as the jobs here need it; it admits by the pod's own spec."""
    if call.plural != "pods" or not any("hostPath" in volume for volume in call.body["spec"].get("volumes", ())):
        return None
    text = 'violates PodSecurity "baseline:latest": hostPath volumes (volume "data")'
    return forbidden(call, call.body["metadata"]["name"], text)


@pytest.mark.parametrize(
    ("rule", "reason", "pods"),
    [
        (pod_security, 'violates PodSecurity "baseline:latest": hostPath volumes (volume "data")', 0),
        (pod_quota(1, "q"), "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", 1),
        (None, "", 3),
    ],
    ids=["Pod Security", "quota", "no rule"],
)
def test_what_limits_the_pods_of_a_namespace_limits_those_of_its_jobs(
    rule: Admission | None, reason: str, pods: int
) -> None:
    """Without such a rule a pod has whatever the job's template says, and no other account's rights decide."""
    server, key = FakeApiServer(), ("default", "mxjobs")
    server.admission += [rule] if rule else []
    job = mxjob("digits").v1().workers(2)
    for type_ in ("Scheduler", "Worker"):
        job.pod(type_, volumes=[OF_NODE], **POWERS)
    server.add(key, job.resource())
    client = FakeRestClient(server)
    for _ in range(3):
        reconcile(Context(client, Reader(client, None), clock=lambda: NOW), server.objects[key]["digits"], MXNET)
    status = server.objects[key]["digits"]["status"]
    assert reason in status["reason"]
    assert bool(status["reason"]) is bool(rule)
    assert status["state"] != "Failed", "the limit may be raised"
    created = server.objects.get(("default", "pods"), {})
    assert len(created) == pods
    for pod in created.values():
        assert pod["spec"].items() >= POWERS.items()
        assert OF_NODE in pod["spec"]["volumes"]


MISSPELLED: Any = {"exec": {"commands": ["true"]}}


def strict_decoding(call: Call, server: FakeApiServer) -> Response | None:
    """The API server's refusal of the one unknown field that a pod has here, where the client asks for it."""
    if call.plural != "pods" or call.query.get("fieldValidation") != "Strict":
        return None
    if call.body["spec"]["containers"][0].get("livenessProbe") != MISSPELLED:
        return None
    field = "spec.containers[0].livenessProbe.exec.commands"
    text = f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "{field}"'
    return failure(400, "BadRequest", text)


@pytest.mark.parametrize(
    ("job", "framework"),
    [
        pytest.param(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), TENSORFLOW, id="TFJob"),
        pytest.param(mxjob("digits").v1().workers(2).resource(), MXNET, id="MXJob"),
    ],
)
def test_an_unknown_key_that_the_schema_of_a_group_lets_through_fails_the_job(
    job: Resource, framework: Framework
) -> None:
    server, key = FakeApiServer(), ("default", f"{job['kind'].lower()}s")
    server.admission.append(strict_decoding)
    server.add(key, grouped(job, "Worker", large=(1, {"livenessProbe": MISSPELLED})))
    name = job["metadata"]["name"]
    client = FakeRestClient(server)
    for _ in range(3):
        reconcile(Context(client, Reader(client, None), clock=lambda: NOW), server.objects[key][name], framework)
    status = server.objects[key][name]["status"]
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "RefusedByKubernetes")
    assert 'unknown field "spec.containers[0].livenessProbe.exec.commands"' in status["reason"]
    assert server.objects.get(("default", "pods"), {}) == {}, "those that were made before are gone"
