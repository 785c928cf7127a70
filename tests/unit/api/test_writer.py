"""The requests of the writer, and what it reports of their results."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import budget as budgets
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.budget import Budget, Times
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.api.writer import Writer
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan
from support.builders import NOW

JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits", "namespace": "lab", "uid": "job-1", "resourceVersion": "41"},
}
OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": "job-1", "controller": True}
LABELS = {"app.kubernetes.io/managed-by": "dljob-operator", "dljob.operator/job-uid": "job-1"}
MANAGED_BY = "app.kubernetes.io/managed-by=dljob-operator"
EXISTS = ApiError(409, "AlreadyExists", "it exists")
INVALID, DENIED, AWAY = ApiError(422, "Invalid", "bad"), ApiError(403, "Forbidden", "quota"), ApiError(500, "", "away")
STRICT = {"fieldManager": "dljob-operator", "fieldValidation": "Strict"}
JOBS, PODS = "/apis/kubeflow.org/v1/namespaces/lab/mxjobs", "/api/v1/namespaces/lab/pods"


class Api(RestClient):
    """Accepts each write; `answers` has other responses by method and the end of the path, or its errors."""

    def __init__(self, **answers: Any) -> None:
        self.executor = BoundedExecutor(1)
        self.answers = answers
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.queries: list[Any] = []
        self.types: list[str] = []

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        name = body["metadata"].get("name", "") if method == "POST" else path.rpartition("/")[2]
        self.requests.append((method, f"{path}/{name}" if method == "POST" else path))
        self.bodies.append(body)
        self.queries.append(query)
        self.types.append(content_type)
        answer = self.answers.get(
            f"{method}_{name}".replace("-", "_"), {"metadata": {"uid": f"uid of {name}", "resourceVersion": "7"}}
        )
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def methods(self) -> list[str]:
        return [f"{method} {path.rpartition('/')[2]}" for method, path in self.requests]


def manifest(kind: str, name: str) -> dict[str, Any]:
    version = OWNED_KINDS[kind].api_version
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "lab"}}


def present(name: str, **metadata: Any) -> dict[str, Any]:
    """An object of the job."""
    ours = {"namespace": "lab", "uid": f"uid of {name}", "resourceVersion": "6", "ownerReferences": [OWNER]}
    return {"metadata": {"name": name, **ours, "labels": LABELS, **metadata}}


def over() -> Budget:
    """A budget of which only the writes that are never cut are left."""
    return Budget(Times(-1.0, -1.0, -1.0), budgets.LEAST)


# --- creation


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_created_and_with_which_versions(dry_run: bool) -> None:
    api = Api()
    plan = Plan((manifest("ConfigMap", "env"),), (manifest("Service", "digits"),), (manifest("Pod", "worker-0"),))
    written = Writer(api, JOB, dry_run).objects(plan)
    assert api.methods() == ["POST env", "POST digits", "POST worker-0"]
    assert api.requests[2] == ("POST", f"{PODS}/worker-0")
    assert api.queries == [{**STRICT, "dryRun": "All"} if dry_run else STRICT] * 3
    assert written.created == ["ConfigMap/env", "Service/digits", "Pod/worker-0"]
    versions = [(f"uid of {name}", "7") for name in ("env", "digits", "worker-0")]
    assert written.versions == ([] if dry_run else versions)
    assert not written.incomplete


def test_the_congestion_window_learns_from_the_time_of_each_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(POST_b=DENIED)
    measured: list[float] = []
    monkeypatch.setattr(api.executor.window, "measured", measured.append)
    began = time.monotonic()
    Writer(api, JOB).objects(Plan(services=(manifest("Service", "a"), manifest("Service", "b"))))
    assert len(measured) == 1, "a refusal is quicker than a write"
    assert 0 <= measured[0] <= time.monotonic() - began


def test_a_kind_that_no_engine_watches_has_no_version_to_wait_for() -> None:
    unwatched = next(kind for kind in OWNED_KINDS.values() if not kind.watched)
    written = Writer(Api(), JOB).objects(Plan((manifest(unwatched.kind, "a"),)))
    assert (written.created, written.versions) == ([f"{unwatched.kind}/a"], [])


@pytest.mark.parametrize(
    ("error", "refused", "postponed"),
    [
        (INVALID, ["ConfigMap/env: bad"], []),
        (DENIED, [], ["ConfigMap/env: quota"]),
        (AWAY, [], ["ConfigMap/env: away"]),
        (ApiError(404, "NotFound", 'namespaces "lab" not found'), [], ['ConfigMap/env: namespaces "lab" not found']),
    ],
)
def test_without_what_the_pods_need_none_is_created(error: ApiError, refused: list[str], postponed: list[str]) -> None:
    api = Api(POST_env=error)
    written = Writer(api, JOB).objects(
        Plan((manifest("ConfigMap", "env"),), pods=(manifest("Pod", "a"),), deletions=(Deletion("Pod", "b", "u"),))
    )
    asked = ["GET env"] if error is DENIED else []  # it may exist: a quota is asked before the names are compared
    assert api.methods() == ["POST env", *asked]
    assert (written.refused, written.postponed) == (refused, postponed)
    assert written.denied == ({"ConfigMap"} if error is DENIED else set())


def test_denied_deletions_have_one_order_whichever_is_answered_first() -> None:
    """The status quotes the first of them: another order would be another reason, and another Event."""
    denied = {f"DELETE_{name}": DENIED for name in "abc"}
    for names in ("abc", "cab"):
        written = Writer(Api(**denied), JOB).objects(Plan(deletions=tuple(Deletion("Pod", x, "u") for x in names)))
        assert written.postponed == ["Pod/a: quota", "Pod/b: quota", "Pod/c: quota"]


@pytest.mark.parametrize("field", ["refused", "taken"])
def test_refusals_have_the_order_of_the_pods_whichever_is_answered_first(field: str) -> None:
    names, answered = ["b", "a"], ["a", "b"]
    release = {name: threading.Event() for name in names}
    release[answered[0]].set()
    error = INVALID if field == "refused" else EXISTS

    class Slow(Api):
        def request(self, method: str, path: str, body: Any = None, *rest: Any, **more: Any) -> Any:
            if method == "POST":
                name = body["metadata"]["name"]
                assert release[name].wait(5)
            try:
                return super().request(method, path, body, *rest, **more)
            finally:
                if method == "POST" and name != answered[-1]:
                    threading.Timer(0.02, release[answered[answered.index(name) + 1]].set).start()

    found = {f"GET_{name}": present(name, ownerReferences=[]) for name in names}
    api = Slow(**{f"POST_{name}": error for name in names}, **found)
    api.executor = BoundedExecutor(2)
    written = Writer(api, JOB).objects(Plan(pods=tuple(manifest("Pod", name) for name in names)))
    assert [text.partition(":")[0] for text in getattr(written, field)] == [f"Pod/{name}" for name in names]


def test_objects_that_the_job_has_already_are_no_change_and_its_pods_follow() -> None:
    api = Api(POST_env=EXISTS, GET_env=present("env"))
    written = Writer(api, JOB).objects(Plan((manifest("ConfigMap", "env"),), pods=(manifest("Pod", "a"),)))
    assert api.methods() == ["POST env", "GET env", "POST a"]
    assert (written.created, written.incomplete) == (["Pod/a"], False)


OF_PREDECESSOR = {"ownerReferences": [{**OWNER, "uid": "job-0"}]}
THE_JOB = {"metadata": {"uid": "job-1"}}


@pytest.mark.parametrize(
    ("kind", "metadata", "answers", "asked"),
    [
        pytest.param("Secret", {}, {"GET_digits": THE_JOB}, ["GET digits", "DELETE a"], id="Secret"),
        pytest.param("ServiceAccount", {}, {"GET_digits": THE_JOB}, ["GET digits", "DELETE a"], id="ServiceAccount"),
        pytest.param("ConfigMap", {}, {}, [], id="a kind that an engine watches"),
        pytest.param("Secret", {"deletionTimestamp": "2026-01-02T03:04:05Z"}, {}, [], id="terminating"),
        pytest.param("Secret", {}, {"GET_digits": {"metadata": {"uid": "job-2"}}}, ["GET digits"], id="an old cache"),
        pytest.param("Secret", {}, {"GET_digits": ApiError(404, "NotFound", "")}, ["GET digits"], id="deleted again"),
        pytest.param(
            "Secret", {}, {"GET_digits": THE_JOB, "DELETE_a": DENIED}, ["GET digits", "DELETE a"], id="no right"
        ),
    ],
)
def test_what_a_deleted_job_of_this_name_has_left(
    kind: str, metadata: dict[str, Any], answers: dict[str, Any], asked: list[str]
) -> None:
    """The garbage collector may have missed it, and nothing else would find it."""
    api = Api(POST_a=EXISTS, GET_a=present("a", **OF_PREDECESSOR, **metadata), **answers)
    written = Writer(api, JOB).objects(Plan((manifest(kind, "a"),)))
    assert api.methods() == ["POST a", "GET a", *asked]
    if "DELETE a" in asked:
        assert api.bodies[-1]["preconditions"] == {"uid": "uid of a"}
    assert (written.predecessors, written.deleted, written.postponed) == ([f"{kind}/a"], [], [])


def test_a_dry_run_deletes_nothing_that_a_deleted_job_has_left() -> None:
    api = Api(POST_a=EXISTS, GET_a=present("a", **OF_PREDECESSOR), GET_digits=THE_JOB)
    Writer(api, JOB, dry_run=True).objects(Plan((manifest("Secret", "a"),)))
    assert api.bodies[-1]["dryRun"] == ["All"]


@pytest.mark.parametrize(
    ("found", "field", "text"),
    [
        (present("a", ownerReferences=[]), "taken", "Pod/a: an object of that name exists and does not belong"),
        (present("a", deletionTimestamp="2026-01-02T03:04:05Z"), "waiting", "Pod/a"),
        (present("a", ownerReferences=[{**OWNER, "uid": "job-0"}]), "predecessors", "Pod/a"),
        (present("a", labels=None), "postponed", f"{MANAGED_BY} and dljob.operator/job-uid=job-1"),
        (
            present("a", labels={**LABELS, "dljob.operator/job-uid": "job-0"}),
            "postponed",
            "dljob.operator/job-uid=job-1",
        ),
        (present("a", labels={"dljob.operator/job-uid": "job-1"}), "postponed", f"lacks the label {MANAGED_BY}: "),
        (AWAY, "postponed", "Pod/a: away"),
    ],
)
def test_a_name_that_is_taken(found: Any, field: str, text: str) -> None:
    written = Writer(Api(POST_a=EXISTS, GET_a=found), JOB).objects(Plan(pods=(manifest("Pod", "a"),)))
    problems = {name: getattr(written, name) for name in ("refused", "taken", "waiting", "predecessors", "postponed")}
    assert [name for name, texts in problems.items() if texts] == [field]
    assert text in problems[field][0]
    assert (written.created, written.incomplete) == ([], True)


MARKS = {
    "labels": {**LABELS, "dljob.operator/replica-type": "worker", "dljob.operator/attempt": "0"},
    "annotations": {"dljob.operator/spec-hash": "4f"},
}


def unmarked(name: str, **metadata: Any) -> dict[str, Any]:
    """A pod of the job that another operator has created."""
    return present(name, labels={"training.kubeflow.org/job-name": "digits"}, resourceVersion="5", **metadata)


def intended(kind: str, name: str) -> dict[str, Any]:
    made = manifest(kind, name)
    labels = {**MARKS["labels"], "of-the-template": "yes"}
    made["metadata"] |= {"labels": labels, "annotations": {**MARKS["annotations"], "of-the-template": "yes"}}
    return made


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_object_that_another_operator_has_created_is_adopted(dry_run: bool) -> None:
    """Only the marks of this operator change, and only of the object that was read."""
    adopted = present("a", labels=MARKS["labels"], resourceVersion="6")
    api = Api(POST_a=EXISTS, GET_a=unmarked("a"), PATCH_a=adopted)
    written = Writer(api, JOB, dry_run).objects(Plan(pods=(intended("Pod", "a"),)))
    assert api.methods() == ["POST a", "GET a", "PATCH a"]
    assert api.bodies[-1] == {"metadata": {"uid": "uid of a", "resourceVersion": "5", **MARKS}}
    assert api.types[-1] == "application/merge-patch+json"
    assert api.queries[-1] == {**STRICT, **({"dryRun": "All"} if dry_run else {})}
    assert (written.adopted, written.changed, written.incomplete) == (["Pod/a"], True, False)
    assert written.versions == ([] if dry_run else [("uid of a", "6")])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ApiError(403, "Forbidden", 'cannot patch resource "pods"'), 'job-uid=job-1: cannot patch resource "pods"'),
        (ApiError(409, "Conflict", "the object has been modified"), "job-uid=job-1: the object has been modified"),
        (unmarked("a"), "job-uid=job-1: another operator or a webhook has left it out or changed it"),
    ],
)
def test_what_cannot_be_adopted_is_reported(answer: Any, text: str) -> None:
    api = Api(POST_a=EXISTS, GET_a=unmarked("a"), PATCH_a=answer)
    written = Writer(api, JOB).objects(Plan(pods=(intended("Pod", "a"),)))
    assert (written.adopted, written.versions, len(written.postponed)) == ([], [], 1)
    assert text in written.postponed[0]


@pytest.mark.parametrize(
    ("stored", "lost"),
    [
        (
            {"labels": LABELS, "annotations": MARKS["annotations"]},
            "dljob.operator/replica-type and dljob.operator/attempt",
        ),
        ({**MARKS, "labels": {**MARKS["labels"], "dljob.operator/attempt": "1"}}, "dljob.operator/attempt"),
        ({"labels": MARKS["labels"]}, "dljob.operator/spec-hash"),
        (MARKS, ""),
        ({}, ""),
    ],
    ids=["labels removed", "a label changed", "annotation removed", "all kept", "adopted later"],
)
def test_a_pod_whose_marks_a_webhook_removes_is_refused(stored: dict[str, Any], lost: str) -> None:
    """The plan takes it for another replica, or one of another template: it would delete and create it for ever."""
    answer = {"metadata": {"uid": "uid of a", "resourceVersion": "7", **stored}}
    written = Writer(Api(POST_a=answer), JOB).objects(Plan(pods=(intended("Pod", "a"),)))
    exempt = f"exempt objects with the label {MANAGED_BY} from it"
    assert written.refused == ([f"Pod/a: a webhook has changed its {lost}; {exempt}"] if lost else [])
    assert written.created == ["Pod/a"], "it is there, and the job owns it"


def test_an_object_that_the_pods_can_do_without_is_adopted_too() -> None:
    adopted = present("a", labels=LABELS, resourceVersion="6")
    api = Api(POST_a=EXISTS, GET_a=unmarked("a"), PATCH_a=adopted)
    written = Writer(api, JOB).objects(Plan(ensured_objects=(intended("Service", "a"),)))
    assert (api.methods(), written.adopted) == (["POST a", "GET a", "PATCH a"], ["Service/a"])


def test_what_the_job_has_already_is_adopted_where_a_quota_leaves_no_room() -> None:
    """The API server asks the quota before it compares the names, and answers no AlreadyExists."""
    foreign = {"GET_worker_0": present("worker-0", labels={}), "PATCH_worker_0": present("worker-0")}
    api = Api(POST_worker_0=DENIED, POST_worker_1=DENIED, GET_worker_1=ApiError(404, "NotFound", "no"), **foreign)
    written = Writer(api, JOB).objects(Plan(pods=(manifest("Pod", "worker-0"), manifest("Pod", "worker-1"))))
    assert (written.adopted, written.denied) == (["Pod/worker-0"], {"Pod"})
    assert written.postponed == ["Pod/worker-1: quota"]


def test_another_conflict_is_not_taken_for_a_name() -> None:
    api = Api(POST_a=ApiError(409, "Conflict", "the quota has changed"))
    written = Writer(api, JOB).objects(Plan(pods=(manifest("Pod", "a"),)))
    assert (api.methods(), written.postponed) == (["POST a"], ["Pod/a: the quota has changed"])


def pods_named(names: str) -> tuple[dict[str, Any], ...]:
    return tuple(manifest("Pod", name) for name in names)


def test_the_objects_of_a_kind_end_with_the_first_that_is_denied() -> None:
    services = (manifest("Service", "s"), manifest("Service", "t"))
    pods = pods_named("abc")
    api = Api(POST_a=DENIED)
    written = Writer(api, JOB).objects(Plan(services=services, pods=pods))
    assert api.methods() == ["POST s", "POST t", "POST a", "GET a"]
    assert written.denied == {"Pod"}

    api = Api(POST_s=DENIED)
    written = Writer(api, JOB).objects(Plan(services=services, pods=pods))
    assert api.methods() == ["POST s", "GET s", "POST a", "POST b", "POST c"], (
        "a pod needs its Service only once it runs"
    )
    assert written.denied == {"Service"}


@pytest.mark.parametrize("kind", ["Service", "Pod", "Job"])
def test_after_a_refusal_the_objects_of_a_kind_end_with_the_first_of_any_error(kind: str) -> None:
    class Slow(Api):
        def request(self, *arguments: Any, **options: Any) -> Any:
            threading.Event().wait(0.01)  # others may begin meanwhile
            return super().request(*arguments, **options)

    api = Slow(POST_s=AWAY, POST_t=AWAY, POST_a=AWAY, POST_b=AWAY)
    api.executor = BoundedExecutor(8)
    plan = Plan(services=(manifest("Service", "s"), manifest("Service", "t")), pods=pods_named("ab"))
    Writer(api, {**JOB, "status": {"reason": f"{kind}/s: away"}}).objects(plan)
    assert api.methods() == ["POST s", "POST a"]


def test_the_denial_of_an_object_that_no_pod_needs_is_reported() -> None:
    api = Api(POST_t=DENIED)
    written = Writer(api, JOB).objects(Plan(ensured_objects=(manifest("Deployment", "t"),)))
    assert written.denied == {"Deployment"}


# --- budgets


def test_only_pods_and_deletions_are_limited_by_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "LEAST", 2)
    pods = tuple(manifest("Pod", name) for name in "abc")
    deletions = tuple(Deletion("Pod", name, "u") for name in "de")
    plan = Plan(
        (manifest("ConfigMap", "env"),), (manifest("Service", "s"),), pods, deletions, (manifest("Deployment", "t"),)
    )
    api = Api()
    written = Writer(api, JOB).objects(plan, over())
    assert api.methods() == ["POST env", "POST s", "POST a", "POST b", "POST t"]
    assert written.is_partial
    written = Writer(api := Api(), JOB).objects(Plan(deletions=(*deletions, Deletion("Pod", "f", "u"))), over())
    assert (api.methods(), written.is_partial) == (["DELETE d", "DELETE e"], True)
    assert not Writer(Api(), JOB).objects(plan).is_partial


# --- deletion


@pytest.mark.parametrize(
    ("deletion", "dry_run", "options"),
    [
        (Deletion("Pod", "a", "u"), False, {"preconditions": {"uid": "u"}}),
        (Deletion("Pod", "a", ""), False, {}),
        (Deletion("Pod", "a", "u", lost_node="n"), False, {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 0}),
        (Deletion("Pod", "a", "u"), True, {"preconditions": {"uid": "u"}, "dryRun": ["All"]}),
    ],
)
def test_a_deletion_has_its_options(deletion: Deletion, dry_run: bool, options: dict[str, Any]) -> None:
    api = Api()
    written = Writer(api, JOB, dry_run).objects(Plan(deletions=(deletion,)))
    assert api.requests == [("DELETE", f"{PODS}/a")]
    assert api.bodies == [{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", **options}]
    assert written.deleted == ["Pod/a"]
    assert written.versions == ([] if dry_run else [("uid of a", "7")])


def test_a_kind_of_several_groups_is_deleted_in_its_own() -> None:
    api = Api()
    Writer(api, JOB).objects(Plan(deletions=(Deletion("PodGroup", "a", "u", "scheduling.volcano.sh/v1beta1"),)))
    assert api.requests == [("DELETE", "/apis/scheduling.volcano.sh/v1beta1/namespaces/lab/podgroups/a")]


def test_a_batch_job_stays_until_its_pods_are_gone() -> None:
    """They have the hostname of the next Job's pods."""
    api = Api()
    Writer(api, JOB).objects(Plan(deletions=(Deletion("Job", "a", "u", "batch/v1"),)))
    assert api.requests == [("DELETE", "/apis/batch/v1/namespaces/lab/jobs/a")]
    assert api.bodies[0]["propagationPolicy"] == "Foreground"


@pytest.mark.parametrize("kind", ["Secret", "Job", "ServiceAccount"])
def test_what_allows_no_change_is_not_replaced(kind: str) -> None:
    """A cache that is behind may lack it."""
    api = Api(POST_a=EXISTS, GET_a=present("a"))
    written = Writer(api, JOB).objects(Plan(ensured_objects=(manifest(kind, "a"),)))
    assert api.methods() == ["POST a", "GET a"]
    assert (written.created, written.optional_failures) == ([], [])


@pytest.mark.parametrize("answer", [{"kind": "Status", "metadata": {"uid": "x", "resourceVersion": "7"}}, {}])
def test_an_object_that_is_gone_at_once_has_no_version(answer: Mapping[str, Any]) -> None:
    written = Writer(Api(DELETE_a=answer), JOB).objects(Plan(deletions=(Deletion("Pod", "a", "u"),)))
    assert written.versions == [("u", None)]


@pytest.mark.parametrize(
    ("error", "postponed"),
    [
        (ApiError(404, "NotFound", "gone"), []),
        (ApiError(409, "Conflict", "another uid"), []),
        (DENIED, ["Pod/a: quota"]),
        (AWAY, ["Pod/a: away"]),
        (INVALID, ["Pod/a: bad"]),
    ],
)
def test_errors_of_a_deletion(error: ApiError, postponed: list[str]) -> None:
    written = Writer(Api(DELETE_a=error), JOB).objects(Plan(deletions=(Deletion("Pod", "a", "u"),)))
    assert (written.refused, written.postponed, written.deleted, written.versions) == ([], postponed, [], [])


# --- ensured objects


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_object_of_the_job_is_replaced(dry_run: bool) -> None:
    api = Api(POST_t=EXISTS, GET_t=present("t"))
    written = Writer(api, JOB, dry_run).objects(Plan(ensured_objects=(manifest("Deployment", "t"),)))
    assert api.methods() == ["POST t", "GET t", "PUT t"]
    wanted = manifest("Deployment", "t")
    assert api.bodies[2] == {**wanted, "metadata": {**wanted["metadata"], "uid": "uid of t"}}, (
        "the one that was checked; its controller may have written its status meanwhile"
    )
    assert api.queries[2] == api.queries[0]
    assert written.created == ["Deployment/t"]
    assert written.versions == ([] if dry_run else [("uid of t", "7")])


def test_an_object_that_was_just_created_is_not_replaced() -> None:
    api = Api()
    written = Writer(api, JOB).objects(Plan(ensured_objects=(manifest("Deployment", "t"),)))
    assert api.methods() == ["POST t"]
    assert (written.created, written.versions) == (["Deployment/t"], [("uid of t", "7")])


@pytest.mark.parametrize(
    ("answers", "field", "texts"),
    [
        ({"POST_t": INVALID}, "optional_failures", ["Deployment/t: bad"]),
        ({"POST_t": AWAY}, "postponed", ["Deployment/t: away"]),
        ({"POST_t": EXISTS, "GET_t": present("t"), "PUT_t": INVALID}, "optional_failures", ["Deployment/t: bad"]),
        ({"POST_t": EXISTS, "GET_t": present("t"), "PUT_t": AWAY}, "postponed", ["Deployment/t: away"]),
        ({"POST_t": EXISTS, "GET_t": present("t", deletionTimestamp="now")}, "waiting", ["Deployment/t"]),
        (
            {"POST_t": EXISTS, "GET_t": present("t", ownerReferences=[{**OWNER, "uid": "job-0"}])},
            "predecessors",
            ["Deployment/t"],
        ),
    ],
)
def test_an_object_that_the_training_does_not_need_is_never_a_refusal(
    answers: dict[str, Any], field: str, texts: list[str]
) -> None:
    written = Writer(Api(**answers), JOB).objects(Plan(ensured_objects=(manifest("Deployment", "t"),)))
    assert getattr(written, field) == texts
    assert (written.refused, written.created, written.versions) == ([], [], [])


def test_an_outdated_object_is_replaced_unread() -> None:
    api = Api()
    wanted = manifest("ConfigMap", "c")
    written = Writer(api, JOB).objects(Plan(ensured_objects=(wanted,), outdated={"ConfigMap/c": "uid of c"}))
    assert api.methods() == ["PUT c"]
    assert api.bodies == [{**wanted, "metadata": {**wanted["metadata"], "uid": "uid of c"}}]
    assert (written.created, written.versions) == (["ConfigMap/c"], [("uid of c", "7")])


@pytest.mark.parametrize("gone", [ApiError(404, "NotFound", "gone"), ApiError(409, "Conflict", "another uid")])
def test_an_outdated_object_that_is_gone_meanwhile_is_made_again(gone: ApiError) -> None:
    api = Api(PUT_c=gone)
    plan = Plan(ensured_objects=(manifest("ConfigMap", "c"),), outdated={"ConfigMap/c": "old"})
    written = Writer(api, JOB).objects(plan)
    assert api.methods() == ["PUT c", "POST c"]
    assert (written.created, written.incomplete) == (["ConfigMap/c"], False)


def test_an_outdated_object_whose_name_somebody_else_has_meanwhile() -> None:
    theirs = present("c", ownerReferences=[{**OWNER, "uid": "other", "name": "other"}])
    api = Api(PUT_c=ApiError(409, "Conflict", "another uid"), POST_c=EXISTS, GET_c=theirs)
    plan = Plan(ensured_objects=(manifest("ConfigMap", "c"),), outdated={"ConfigMap/c": "old"})
    (failure,) = Writer(api, JOB).objects(plan).optional_failures
    assert api.methods() == ["PUT c", "POST c", "GET c"]
    assert "ConfigMap/c" in failure


@pytest.mark.parametrize(("error", "field"), [(INVALID, "optional_failures"), (AWAY, "postponed")])
def test_an_outdated_object_that_cannot_be_replaced(error: ApiError, field: str) -> None:
    api = Api(PUT_c=error)
    plan = Plan(ensured_objects=(manifest("ConfigMap", "c"),), outdated={"ConfigMap/c": "uid of c"})
    assert getattr(Writer(api, JOB).objects(plan), field) == [f"ConfigMap/c: {error.message}"]
    assert api.methods() == ["PUT c"]


def test_what_others_write_into_an_object_is_read_before_it_is_replaced() -> None:
    kind = f"PodGroup.{OWNED_KINDS['PodGroup.scheduling.volcano.sh'].group}"
    group = {**manifest(kind, "g"), "kind": "PodGroup", "spec": {"minMember": 2}}
    group["metadata"] = {**group["metadata"], "labels": {}, "annotations": {}}
    api = Api(POST_g=EXISTS, GET_g={**present("g"), "spec": {"queue": "theirs"}})
    Writer(api, JOB).objects(Plan(ensured_objects=(group,), outdated={"PodGroup/g": "uid of g"}))
    assert api.methods() == ["POST g", "GET g", "PUT g"]
    assert api.bodies[2]["spec"] == {"minMember": 2, "queue": "theirs"}


# --- objects of kinds that no engine watches, which an earlier plan has made

ACCOUNT = (manifest("ServiceAccount", "a"), manifest("Role", "r"), manifest("RoleBinding", "b"))


@pytest.mark.parametrize("field", ["auxiliary_objects", "ensured_objects"])
def test_they_are_read_first(field: str) -> None:
    api = Api(GET_a=present("a"), GET_r=present("r"), GET_b=present("b"))
    written = Writer(api, JOB).objects(Plan(**{field: ACCOUNT}, reads_first=True))
    assert api.methods() == ["GET a", "GET r", "GET b"]
    assert (written.created, written.incomplete) == ([], False)


def test_those_that_are_gone_are_made_again_and_the_binding_after_its_role() -> None:
    gone = ApiError(404, "NotFound", "gone")
    api = Api(GET_a=present("a"), GET_r=gone, GET_b=gone)
    written = Writer(api, JOB).objects(Plan(auxiliary_objects=(*ACCOUNT[::-1],), reads_first=True))
    assert api.methods() == ["GET b", "GET r", "GET a", "POST r", "POST b"]
    assert written.created == ["Role/r", "RoleBinding/b"]


def test_a_role_of_other_rules_is_replaced_as_it_was_read() -> None:
    role = {**manifest("Role", "r"), "rules": [{"verbs": ["get"]}]}
    api = Api(GET_r=present("r"))
    Writer(api, JOB).objects(Plan(auxiliary_objects=(role,), reads_first=True))
    assert api.methods() == ["GET r", "PUT r"]
    assert api.bodies[1]["metadata"]["resourceVersion"] == "6"


def test_no_pod_is_made_with_the_account_of_somebody_else() -> None:
    api = Api(GET_a=present("a", ownerReferences=[]))
    pods = (manifest("Pod", "p"),)
    written = Writer(api, JOB).objects(Plan(auxiliary_objects=ACCOUNT[:1], pods=pods, reads_first=True))
    assert api.methods() == ["GET a"]
    assert written.taken and not written.created


# --- the job itself


def test_the_status_is_replaced_for_the_version_that_was_read() -> None:
    api = Api()
    Writer(api, JOB).status({"state": "Running"})
    assert api.requests == [("PATCH", f"{JOBS}/digits/status")]
    assert api.bodies == [
        [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "41"},
            {"op": "add", "path": "/status", "value": {"state": "Running"}},
        ]
    ]
    assert (api.queries, api.types) == ([STRICT], ["application/json-patch+json"])


def test_every_event_is_tried_and_its_error_reported() -> None:
    notes = [EventNote("Normal", "Created", "3 pods"), EventNote("Warning", "Failed", "a pod")]
    api = Api()
    assert Writer(api, JOB).events(notes, NOW) == []
    assert [(path, body["reason"]) for (_, path), body in zip(api.requests, api.bodies, strict=True)] == [
        ("/api/v1/namespaces/lab/events/", "Created"),
        ("/api/v1/namespaces/lab/events/", "Failed"),
    ]
    assert api.queries == [STRICT, STRICT]
    assert Writer(Api(POST_=AWAY), JOB).events(notes, NOW) == ["Event: away", "Event: away"]


def test_without_a_uid_no_job_of_that_name_is_deleted() -> None:
    api = Api()
    Writer(api, {**JOB, "metadata": {"name": "digits", "namespace": "lab"}}).delete_job()
    assert api.bodies[0]["preconditions"] == {"uid": ""}, "the API server answers with a conflict"


@pytest.mark.parametrize(
    ("answer", "deleted"), [({}, True), (ApiError(404, "NotFound", "gone"), True), (ApiError(409, "", "edited"), False)]
)
def test_whether_the_job_is_deleted(answer: Any, deleted: bool) -> None:
    assert Writer(Api(DELETE_digits=answer), JOB).delete_job() is deleted


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_deletion_of_the_job_is_for_its_uid_and_version(dry_run: bool) -> None:
    api = Api()
    Writer(api, JOB, dry_run).delete_job()
    assert api.requests == [("DELETE", f"{JOBS}/digits")]
    assert api.bodies == [
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": "job-1", "resourceVersion": "41"},
            **({"dryRun": ["All"]} if dry_run else {}),
        }
    ]
