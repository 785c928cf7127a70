"""What the informers of a controller tell its queue, and the cache that they fill, without an API server."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.fake_kube_api import owned_pod
from support.fed_informers import fill, informer_of, kind_of
from support.polling import until

from dljob_operator.engine.cache import informer_set
from dljob_operator.engine.cache.cache import Store
from dljob_operator.engine.cache.informer import Informer
from dljob_operator.engine.cache.informer_set import InformerSet, WatchedKind, flow_of
from dljob_operator.engine.cache.nesting import LIMIT
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.controller_settings import LARGEST_SHARING, ControllerSettings
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.orphans import DeletedJob
from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import PodIdentity
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.watches import GVK, Watch

ECHO = GVK("example.com", "v1", "EchoJob")
TARGET = "example.com/v1 EchoJob"


class Events:
    """Records what a queue would get."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def add(self, key: str, flow: Flow, **given: Any) -> None:
        self.calls.append((key, flow.target, given))

    def discard(self, key: str) -> None:
        self.calls.append((key, "gone"))

    def taken(self) -> list[tuple[Any, ...]]:
        calls, self.calls = self.calls, []
        return calls


class Fed:
    """An informer set whose informers a test feeds by hand."""

    def __init__(self, *watches: Watch, api: KubeApi | None = None, **settings: Any) -> None:
        self.events = Events()
        self.counted: list[tuple[str, Change]] = []
        count = lambda target, change: self.counted.append((target, change))  # noqa: E731
        watches = watches or (Watch(ECHO),)
        self.set = InformerSet(
            watches, api or KubeApi.__new__(KubeApi), ControllerSettings(**settings), self.events, count
        )

    @property
    def kind(self) -> WatchedKind:
        return kind_of(self.set, TARGET)

    def informer(self, what: str, namespace: str = "") -> Informer:
        return informer_of(self.set, what, namespace)

    def feed(self, what: str, kind: str, obj: dict[str, Any]) -> None:
        self.informer(what).handle({"type": kind, "object": obj})

    def fill(self, *, left_out: str = "") -> None:
        fill(self.set, left_out=left_out)


def job(uid: str = "1", version: str = "1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": f"j{uid}", "namespace": "team", "uid": uid, "resourceVersion": version, "generation": version}
    return {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata, **fields}


def pod(owner: str, name: str = "p", version: str = "5", phase: str = "Pending") -> dict[str, Any]:
    made = owned_pod(name, owner)
    made["metadata"]["resourceVersion"] = version
    return {**made, "status": {"phase": phase}}


def test_a_new_job_is_urgent_and_one_that_was_reconciled_before_a_restart_is_not() -> None:
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed(str(ECHO), "ADDED", job("2", status={"state": "Running"}))
    assert fed.events.taken() == [
        ("1", TARGET, {"cause": ("1", "1"), "urgent": True}),
        ("2", TARGET, {"cause": ("2", "1"), "urgent": False}),
    ]
    fed.feed(str(ECHO), "MODIFIED", job("1", "2"))
    fed.feed(str(ECHO), "DELETED", job("2", "3"))
    assert fed.events.taken() == [("1", TARGET, {"cause": ("1", "2"), "urgent": True}), ("2", "gone")]
    assert [(target, change.obj["metadata"]["uid"]) for target, change in fed.counted] == [
        (TARGET, uid) for uid in ("1", "2", "1", "2")
    ]


def test_a_job_that_is_nested_too_deeply_is_not_known() -> None:
    """Users write jobs, and a run could not read it."""
    fed = Fed()
    deep: dict[str, Any] = {}
    for _ in range(LIMIT):
        deep = {"a": deep}
    fed.feed(str(ECHO), "ADDED", job("1", spec=deep))
    assert (fed.events.taken(), list(fed.set.jobs())) == ([("1", "gone")], [])


def test_a_change_of_an_owned_object_concerns_its_job() -> None:
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.events.taken()
    fed.feed("pods", "ADDED", pod("1"))
    fed.feed("pods", "ADDED", pod("1", "q", "6"))
    fed.feed("pods", "MODIFIED", pod("1", version="7"))  # nothing but the version
    fed.feed("pods", "MODIFIED", pod("1", version="8", phase="Running"))
    fed.feed("pods", "ADDED", pod("unknown", "r"))
    fed.feed("pods", "DELETED", pod("1", "q", "9"))
    assert fed.events.taken() == [
        ("1", TARGET, {"cause": ("p-uid", "5"), "owned": 1}),
        ("1", TARGET, {"cause": ("q-uid", "6"), "owned": 2}),
        ("1", TARGET, {"cause": ("p-uid", "8"), "owned": 2}),
        ("1", TARGET, {"cause": ("q-uid", None), "owned": 1}),
    ]


def test_a_pod_of_a_batch_job_concerns_the_job_that_owns_that() -> None:
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("jobs", "ADDED", pod("1", "launcher"))
    fed.events.taken()
    fed.feed("pods", "ADDED", pod("launcher-uid", "launcher-x"))
    fed.feed("pods", "ADDED", pod("unknown-uid", "other"))
    assert [(key, given["cause"]) for key, _, given in fed.events.taken()] == [("1", ("launcher-x-uid", "5"))]
    fed.feed("pods", "ADDED", pod("1", "worker"))
    (snapshot,) = (fed.set.view([job("1")]).snapshot or {}).values()
    assert [one["metadata"]["name"] for one in snapshot["Pod"]] == ["worker", "launcher-x"]


def launched(name: str, job: str = "1", **metadata: Any) -> dict[str, Any]:
    """A pod of a batch Job, with the label of the job whose replica it runs."""
    made = pod("launcher-uid", name)
    made["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    made["metadata"] |= {"labels": {"dljob.operator/job-uid": job}, **metadata}
    return made


def pods_of(fed: Fed, uid: str = "1") -> list[str]:
    return [one["metadata"]["name"] for one in (fed.set.view([job(uid)]).snapshot or {})[uid]["Pod"]]


def test_a_pod_outlives_its_batch_job_in_the_cache() -> None:
    """The garbage collector may miss it as the API server restarts, and no other launcher may begin beside it."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("jobs", "ADDED", pod("1", "launcher"))
    for name in ("x", "y"):
        fed.feed("pods", "ADDED", launched(name))
    assert pods_of(fed) == ["x", "y"]
    fed.feed("jobs", "DELETED", pod("1", "launcher"))
    assert pods_of(fed) == ["x", "y"]
    fed.events.taken()
    fed.feed("pods", "DELETED", launched("x"))
    assert pods_of(fed) == ["y"]
    fed.feed("pods", "DELETED", launched("y"))
    assert [key for key, _, _ in fed.events.taken()] == ["1", "1"], "the job waits for this"
    assert pods_of(fed) == []


def test_a_label_counts_only_as_long_as_a_pod_has_it() -> None:
    """A tenant may change it again and again, of one pod."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    for uid in ("1", "2"):
        fed.feed(str(ECHO), "ADDED", job(uid))
    fed.feed("pods", "ADDED", launched("x", "1"))
    fed.events.taken()
    fed.feed("pods", "MODIFIED", launched("x", "2", resourceVersion="6"))
    assert [key for key, _, _ in fed.events.taken()] == ["1", "2"]
    assert (pods_of(fed, "1"), pods_of(fed, "2")) == ([], ["x"])
    fed.feed("pods", "DELETED", launched("x", "2", resourceVersion="7"))
    assert pods_of(fed, "2") == []
    index = fed.informer("pods").store._by_job  # noqa: SLF001 - memory that no answer shows
    assert list(index.keys()) == []


def test_a_pod_with_a_reference_to_the_job_as_a_batch_job_is_one_pod() -> None:
    """A tenant may write it."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    forged = launched("x")
    forged["metadata"]["ownerReferences"][0]["uid"] = "1"
    fed.feed("pods", "ADDED", forged)
    assert pods_of(fed) == ["x"]


def test_a_pod_of_a_batch_job_of_somebody_else_wakes_the_job_that_waits_for_it() -> None:
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("jobs", "ADDED", pod("stranger", "launcher"))
    fed.feed("pods", "ADDED", launched("x"))
    fed.events.taken()
    fed.feed("pods", "DELETED", launched("x"))
    assert [key for key, _, _ in fed.events.taken()] == ["1"]


def test_the_pods_of_a_batch_job_that_is_gone_count_as_the_jobs() -> None:
    """A tenant may write any label, in any number of pods."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    for number in range(LARGEST_SHARING):
        fed.feed("pods", "ADDED", launched(f"p{number}"))
    assert fed.set.may_share("1", "team")
    fed.feed("pods", "ADDED", launched("more"))
    assert not fed.set.may_share("1", "team")


def test_the_label_of_a_pod_in_another_namespace_proves_nothing() -> None:
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.events.taken()
    fed.feed("pods", "ADDED", launched("x", namespace="elsewhere"))
    assert fed.events.taken() == []
    assert pods_of(fed) == []
    fed.feed("pods", "ADDED", launched("y"))
    fed.feed("pods", "DELETED", launched("x", namespace="elsewhere"))
    assert pods_of(fed) == ["y"]


def test_a_batch_job_of_another_namespace_brings_no_pods() -> None:
    """Its owner reference is forged."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    forged, its_pod = pod("1", "launcher"), pod("launcher-uid", "launcher-x")
    for obj in (forged, its_pod):
        obj["metadata"]["namespace"] = "elsewhere"
    fed.feed("jobs", "ADDED", forged)
    fed.events.taken()
    fed.feed("pods", "ADDED", its_pod)
    assert fed.events.taken() == []
    assert (fed.set.view([job("1")]).snapshot or {})["1"]["Pod"] == []


@pytest.mark.parametrize(("owner", "concerned"), [("", ["1"]), ("2", ["1", "2"]), ("unknown", ["1"])])
def test_an_object_that_gets_another_owner_concerns_the_job_that_has_lost_it(owner: str, concerned: list[str]) -> None:
    """Otherwise that job would wait for the pod without a reason."""
    fed = Fed()
    for uid in ("1", "2"):
        fed.feed(str(ECHO), "ADDED", job(uid))
    fed.feed("pods", "ADDED", pod("1"))
    fed.events.taken()
    released = pod(owner, version="6")
    if not owner:
        del released["metadata"]["ownerReferences"]
    fed.feed("pods", "MODIFIED", released)
    calls = fed.events.taken()
    assert [key for key, _, _ in calls] == concerned
    assert {given["cause"] for _, _, given in calls} == {("p-uid", "6")}


def test_a_kind_that_the_watch_entry_excludes_concerns_no_job() -> None:
    fed = Fed(Watch(ECHO, blacklist=(GVK("", "v1", "Pod"),)))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.events.taken()
    fed.feed("pods", "ADDED", pod("1"))
    assert fed.events.taken() == []
    assert len(fed.set.view([job("1")]).snapshot["1"]["Pod"]) == 1  # type: ignore[index]


def test_a_changed_config_map_concerns_all_unfinished_jobs() -> None:
    fed = Fed(config_namespaces=("default",))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed(str(ECHO), "ADDED", job("2", status={"completionTime": "2026-01-01T00:00:00Z"}))
    fed.events.taken()
    config = {"metadata": {"name": "tf-job-operator-config", "namespace": "default", "uid": "c"}, "data": {"a": "b"}}
    informer = fed.informer("configmaps/tf-job-operator-config", "default")
    informer.handle({"type": "ADDED", "object": {**config, "metadata": {**config["metadata"], "resourceVersion": "1"}}})
    assert fed.events.taken() == [("1", TARGET, {})]


def test_the_view_has_what_the_jobs_own_and_the_cluster_info() -> None:
    fed = Fed()
    fed.feed("pods", "ADDED", pod("1", "b"))
    fed.feed("pods", "ADDED", pod("1", "a"))
    fed.feed("pods", "ADDED", pod("2", "c"))
    view = fed.set.view([job("1"), job("3")])
    assert view.snapshot is not None
    assert [one["metadata"]["name"] for one in view.snapshot["1"]["Pod"]] == ["a", "b"]
    assert view.snapshot["3"] == {"Pod": [], "Service": [], "ConfigMap": []}
    assert view.cluster_info == {"config_map": "tf-job-operator-config", "config_maps": [], "resources": []}


@pytest.mark.parametrize("plural", ["pods", "services", "configmaps", "podgroups.scheduling.volcano.sh"])
def test_a_view_has_the_texts_of_the_cache(monkeypatch: pytest.MonkeyPatch, plural: str) -> None:
    """To encode the pods of a large job for each of its runs would take as long as to plan it."""
    fed = Fed(gang=gang_scheduler("volcano"))
    owned = pod("1", "ü")
    fed.feed(plural, "ADDED", owned)
    monkeypatch.setattr("dljob_operator.json_texts.json", None)
    snapshot = fed.set.view([job("1")]).snapshot
    assert snapshot is not None
    (texts,) = (found.texts for found in snapshot["1"].values() if found)  # type: ignore[attr-defined]
    assert [json.loads(text)["metadata"]["name"] for text in texts] == ["ü"]


def test_the_kinds_that_a_role_declares_are_watched_too() -> None:
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Service", "Deployment"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("deployments", "ADDED", pod("1", "d"))
    view = fed.set.view([job("1")])
    assert view.snapshot is not None
    assert {kind: len(found) for kind, found in view.snapshot["1"].items()} == {
        "Pod": 0,
        "Service": 0,
        "ConfigMap": 0,
        "Deployment": 1,
    }


def test_a_pod_of_another_namespace_is_not_the_jobs() -> None:
    """A user who may create pods may write any uid into an owner reference."""
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.events.taken()
    forged = pod("1", "forged")
    forged["metadata"]["namespace"] = "attacker"
    fed.feed("pods", "ADDED", forged)
    assert fed.events.taken() == []
    view = fed.set.view([job("1")])
    assert view.snapshot is not None
    assert view.snapshot["1"]["Pod"] == []
    fed.feed("pods", "ADDED", pod("1", "own"))
    ((_, _, given),) = fed.events.taken()
    assert given["owned"] == 1, "thousands of forged pods would delay the reconcile of the job by seconds"


def test_nothing_is_left_of_a_deleted_job() -> None:
    fed = Fed()
    for uid in ("1", "2"):
        fed.feed(str(ECHO), "ADDED", job(uid))
    fed.feed(str(ECHO), "DELETED", job("1"))
    assert fed.set.find("1") is None
    assert len(fed.set._kinds_of) == 1  # noqa: SLF001 - memory that no answer shows


def test_a_job_with_many_objects_of_all_kinds_shares_no_run() -> None:
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1"))
    for number in range(LARGEST_SHARING):
        fed.feed("pods" if number else "services", "ADDED", pod("1", f"p{number}"))
    elsewhere = pod("1", "forged")
    elsewhere["metadata"]["namespace"] = "another"
    fed.feed("pods", "ADDED", elsewhere)
    assert fed.set.may_share("1", "team")
    fed.feed("pods", "ADDED", pod("1", "more"))
    assert not fed.set.may_share("1", "team")
    assert fed.set.may_share("unknown", "team")


def test_the_pods_of_its_batch_jobs_are_a_jobs_too() -> None:
    """A run gets them; a tenant may create a batch Job that claims to be a job's launcher, with thousands of pods."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("jobs", "ADDED", pod("1", "launcher"))
    for number in range(LARGEST_SHARING - 1):
        fed.feed("pods", "ADDED", pod("launcher-uid", f"p{number}"))
    assert fed.set.may_share("1", "team")
    fed.feed("pods", "ADDED", pod("launcher-uid", "more"))
    assert not fed.set.may_share("1", "team")


def test_of_a_large_job_no_batch_job_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is locked meanwhile."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    for number in range(LARGEST_SHARING + 1):
        fed.feed("jobs", "ADDED", pod("1", f"launcher-{number}"))
    monkeypatch.setattr(Store, "owned", lambda *_: pytest.fail("its objects are read"))
    assert not fed.set.may_share("1", "team")


def test_jobs_are_found_by_uid_and_kinds_by_target() -> None:
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1"))
    found = fed.set.find("1")
    assert found is not None
    assert (found[0].watch.gvk, found[1]["metadata"]["uid"]) == (ECHO, "1")
    assert fed.set.kind(TARGET) is found[0]
    assert (fed.set.find("2"), fed.set.kind("v1 Other")) == (None, None)
    assert [(target, one["metadata"]["uid"]) for target, one in fed.set.jobs()] == [(TARGET, "1")]


def test_a_snapshot_is_complete_once_all_owned_objects_were_listed() -> None:
    fed = Fed()
    assert not fed.set.wait_filled(0)
    fed.fill(left_out="configmaps")
    assert not fed.set.wait_filled(0)
    fed.informer("configmaps").has_synced.set()  # RBAC forbids it
    assert not fed.set.wait_filled(0)
    fed.informer("configmaps").synced.set()
    assert fed.set.wait_filled(0)
    assert fed.set.wait_filled()


def test_who_waits_for_a_complete_snapshot_goes_on_as_soon_as_it_is() -> None:
    fed = Fed()
    fed.fill(left_out="pods")
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(fed.set.wait_filled(20)), daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    fed.fill()
    waiting.join(10)
    assert found == [True]


class ServesNothing(KubeApi):
    def __init__(self) -> None: ...

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        raise ApiError(404, "NotFound", path)


def find_none(informer: Informer) -> None:
    """Let the informer ask for its kind, which is not served."""
    informer.start()
    until(lambda: informer.missing_now and informer.has_synced.is_set())
    informer.stop()
    assert informer.join(10)


def test_a_kind_that_the_cluster_lacks_is_named_with_its_remedy(caplog: pytest.LogCaptureFixture) -> None:
    find_none(Fed(api=ServesNothing()).informer(str(ECHO)))
    (record,) = caplog.records
    assert record.__dict__["dljob_fields"]["error"] == (
        "the cluster has no EchoJob in example.com/v1: its CustomResourceDefinition is not installed; "
        "run 'kubectl apply --server-side -f crds/' or start with --install-crds"
    )


def test_the_kinds_are_known_once_all_informers_have_synced() -> None:
    other = GVK("example.com", "v1", "OtherJob")
    fed = Fed(Watch(ECHO), Watch(other))
    fed.fill(left_out="pods")
    found: list[tuple[list[GVK], list[GVK]]] = []
    waiting = threading.Thread(target=lambda: found.append(fed.set.wait_ready()), daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    fed.informer(str(other)).missing_now = True
    fed.informer("pods").has_synced.set()
    waiting.join(10)
    assert found == [([ECHO], [other])]


class EndsThreads(KubeApi):
    def __init__(self) -> None: ...

    def list_objects(self, path: str, query: Any = None) -> dict[str, Any]:
        raise SystemExit


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_problem_of_any_informer_is_one_of_the_set() -> None:
    fed = Fed(api=EndsThreads())
    assert (fed.set.problem(), fed.set.not_ready()) == ("", "the first list of example.com/v1 EchoJob is not complete")
    fed.fill()
    assert (fed.set.problem(), fed.set.not_ready()) == ("", "")
    nodes = fed.informer("nodes")
    nodes.has_synced.clear()
    assert fed.set.not_ready() == "the first list of nodes is not complete"
    nodes.start()
    assert nodes.join(10)
    assert fed.set.problem() == "the watch of nodes has ended"


def test_a_write_that_the_cache_does_not_observe_is_not_waited_for_forever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(informer_set, "_CACHE_TIMEOUT", 0.01)
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1", "4"))
    fed.feed("pods", "ADDED", pod("1"))
    fed.set.wait_for({("1", "4"), ("p-uid", "5")})
    assert caplog.records == []
    fed.set.wait_for({("p-uid", "6")})
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["dljob_fields"]) == (
        "timed out waiting for the cache to observe our writes",
        {"timeout_seconds": 0.01},
    )


def test_a_write_is_waited_for_until_the_cache_has_it() -> None:
    fed = Fed()
    done = threading.Event()

    def wait() -> None:
        fed.set.wait_for({("p-uid", "5")})
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not done.wait(0.05)
    fed.feed("pods", "ADDED", pod("1"))
    assert done.wait(4)


def test_nothing_is_waited_for_while_stopping(caplog: pytest.LogCaptureFixture) -> None:
    fed = Fed()
    fed.fill(left_out="pods")
    fed.set.begin_stop()
    fed.set.wait_for({("p-uid", "5")})
    assert "timed out" not in caplog.text
    assert fed.informer("pods").has_synced.is_set()  # its thread ends, and so does who waits for its first list
    assert not fed.set.wait_filled(0)


def test_each_namespace_has_informers_of_its_own() -> None:
    fed = Fed(Watch(ECHO, selector="a=b"), namespaces=("x", "y"), selector="team=red")
    sources = [informer.source for informer in fed.set.informers if informer.source.what in (str(ECHO), "pods")]
    assert [(s.what, s.namespace, s.selector) for s in sources] == [
        (str(ECHO), "x", "a=b,team=red"),
        (str(ECHO), "y", "a=b,team=red"),
        ("pods", "x", "app.kubernetes.io/managed-by=dljob-operator"),
        ("pods", "y", "app.kubernetes.io/managed-by=dljob-operator"),
    ]


LARGEST_OBJECT_MB = 1.5  # etcd's limit for a request
LARGEST_PAGE_MB = 80  # json takes ten times that, and the container has 1 GiB (deploy/kustomize/base/deployment.yaml)


def test_a_page_of_what_tenants_write_fits_the_memory_of_the_container() -> None:
    every_kind = tuple(OWNED_KINDS)
    fed = Fed(Watch(ECHO, vars={"dljob_owns": every_kind}), gang=gang_scheduler("volcano"), namespaces=("x", "y"))
    sources = [one.source for one in fed.set.informers if one.source.what != "nodes" and not one.source.only]
    assert {"pods", "services", "jobs", str(ECHO), "podgroups.scheduling.volcano.sh"} <= {s.what for s in sources}
    too_large = {s.what: s.page_size for s in sources if s.page_size * LARGEST_OBJECT_MB > LARGEST_PAGE_MB}
    assert not too_large
    assert min(s.page_size for s in sources) >= 50, "10,000 pods would be a list of more than 200 requests"


# --- objects of deleted jobs


def owned_by(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    """A pod of the job "gone", which the cache does not have."""
    made = pod("gone", name)
    reference = {"apiVersion": "example.com/v1beta1", "kind": kind, "name": "digits"}
    made["metadata"]["ownerReferences"][0] |= reference
    made["metadata"] |= metadata
    return made


def with_pods(*watches: Watch, **settings: Any) -> Fed:
    fed = Fed(*watches, **settings)
    fed.kind.api_resource = ApiResource("/apis/example.com/v1", "echojobs")
    fed.fill()
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("pods", "ADDED", pod("1", "of a known job"))
    fed.feed("pods", "ADDED", owned_by("EchoJob", "left"))
    fed.feed("pods", "ADDED", owned_by("EchoJob", "terminating", deletionTimestamp="2026-01-01T00:00:00Z"))
    fed.feed("pods", "ADDED", owned_by("ReplicaSet", "of another kind"))
    return fed


def orphans(fed: Fed) -> list[str]:
    return [orphan.obj["metadata"]["name"] for orphan in fed.set.orphans()]


def test_an_orphan_is_an_object_of_a_watched_kinds_job_that_the_cache_lacks() -> None:
    fed = with_pods()
    (found,) = fed.set.orphans()
    assert found.obj["metadata"]["name"] == "left"
    assert found.job == DeletedJob(ApiResource("/apis/example.com/v1", "echojobs"), "team", "digits", "gone")
    assert found.api_resource == ApiResource("/api/v1", "pods")


def test_an_incomplete_cache_of_jobs_has_no_orphans() -> None:
    fed = with_pods()
    fed.informer(str(ECHO)).synced.clear()
    assert orphans(fed) == []
    fed.informer(str(ECHO)).synced.set()
    fed.kind.api_resource = None
    assert orphans(fed) == []


def test_an_operator_for_some_jobs_takes_those_of_others_for_no_orphans() -> None:
    assert orphans(with_pods(selector="team=a")) == []
    assert orphans(with_pods(Watch(ECHO, selector="team=a"))) == []


@pytest.mark.parametrize(
    ("scheduler", "watched"),
    [
        ("volcano", ["podgroups.scheduling.volcano.sh"]),
        ("gang", ["podgroups.scheduling.x-k8s.io"]),
        ("", []),
    ],
)
def test_only_the_groups_of_the_gang_scheduler_are_watched(scheduler: str, watched: list[str]) -> None:
    fed = Fed(gang=gang_scheduler(scheduler))
    found = [informer.source for informer in fed.set.informers if "podgroups" in informer.source.what]
    assert [source.what for source in found] == watched
    assert all(source.selector == "app.kubernetes.io/managed-by=dljob-operator" for source in found)


def test_a_change_of_kueues_workload_requeues_its_job_and_a_run_gets_what_kueue_says() -> None:
    assert not any("workloads" in informer.source.what for informer in Fed().set.informers)
    fed = Fed(kueue=True)
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.events.taken()
    made = pod("1", "queued") | {
        "spec": {"podSets": [{}], "queueName": "a"},
        "status": {"admission": {"clusterQueue": "b"}},
    }
    fed.feed("workloads.kueue.x-k8s.io", "ADDED", made)
    assert [call[0] for call in fed.events.taken()] == ["1"]
    snapshot = fed.set.view([job("1")]).snapshot
    assert snapshot is not None
    (seen,) = snapshot["1"]["Workload"]
    assert (seen["spec"], seen["status"]) == ({"queueName": "a"}, {"admission": {"clusterQueue": "b"}})


def test_a_change_of_the_group_requeues_its_job_and_a_run_gets_it() -> None:
    fed = Fed(gang=gang_scheduler("volcano"))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.events.taken()
    group = pod("1", "group")
    fed.feed("podgroups.scheduling.volcano.sh", "ADDED", group)
    assert [call[0] for call in fed.events.taken()] == ["1"]
    snapshot = fed.set.view([job("1")]).snapshot
    assert snapshot is not None
    assert [one["metadata"]["name"] for one in snapshot["1"]["PodGroup.scheduling.volcano.sh"]] == ["group"]


def test_jobs_are_reconciled_where_the_cluster_does_not_serve_the_group(caplog: pytest.LogCaptureFixture) -> None:
    """Their status then says what is missing."""
    fed = Fed(gang=gang_scheduler("volcano"), api=ServesNothing())
    fed.fill(left_out="podgroups.scheduling.volcano.sh")
    assert not fed.set.wait_filled(0)
    groups = fed.informer("podgroups.scheduling.volcano.sh")
    find_none(groups)
    assert fed.set.wait_filled(0)
    (record,) = caplog.records
    remedy = OWNED_KINDS["PodGroup.scheduling.volcano.sh"].remedy
    error = f"the cluster has no podgroups.scheduling.volcano.sh, and jobs wait for it: {remedy}"
    assert record.__dict__["dljob_fields"]["error"] == error
    assert groups.source.without == "; the operator does not see when a PodGroup is deleted or changed"


def test_a_job_queues_with_those_of_its_namespace() -> None:
    assert flow_of(TARGET, job("1")) == Flow(TARGET, "team")
    assert flow_of(TARGET, {"metadata": {"name": "cluster-scoped"}}) == Flow(TARGET, "")


def test_a_run_gets_the_last_state_of_a_launchers_pod_that_failed_and_is_gone() -> None:
    """The Job controller deletes it under OnFailure, between two runs."""
    fed = Fed(Watch(ECHO, vars={"dljob_owns": ["Job"]}))
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("jobs", "ADDED", pod("1", "launcher"))
    launched = pod("launcher-uid", "p1")
    launched["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    failed = {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 17}}}
    launched["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", **failed}]}
    fed.feed("pods", "MODIFIED", launched)
    assert [one["metadata"]["name"] for one in fed.set.view([job("1")]).snapshot["1"]["Pod"]] == ["p1", "p1"]
    fed.feed("pods", "DELETED", launched)
    (kept,) = fed.set.view([job("1")]).snapshot["1"]["Pod"]
    assert (kept["metadata"]["name"], kept["failedBefore"]) == ("p1", True)
    assert kept["status"] == launched["status"]
    fed.feed("jobs", "DELETED", pod("1", "launcher"))
    fed.feed("jobs", "ADDED", pod("1", "launcher"))
    assert list(fed.set.view([job("1")]).snapshot["1"]["Pod"]) == []


def deleted_pods(fed: Fed, job_: dict[str, Any]) -> list[Any]:
    return list(fed.set.view([job_]).snapshot["1"]["DeletedPods"])  # type: ignore[index]


def on_a_node(name: str, version: str = "5") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {**pod("1", name, version, "Running"), "spec": {"nodeName": "n", "containers": [container]}}


def test_a_pod_that_is_gone_is_kept_until_the_status_of_its_job_counts_it() -> None:
    fed = Fed(usage=True)
    fed.feed(str(ECHO), "ADDED", job("1"))
    for name in ("a", "b"):
        fed.feed("pods", "ADDED", on_a_node(name))
        fed.feed("pods", "DELETED", on_a_node(name, "6"))
    fed.feed("pods", "ADDED", on_a_node("c"))
    head, first, second = deleted_pods(fed, job("1"))
    assert [first["metadata"]["name"], second["metadata"]["name"]] == ["a", "b"]
    assert first["spec"]["containers"] == [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    counted = f"{head['watch']}/{first['deleted']['number']}"
    fed.feed(str(ECHO), "MODIFIED", job("1", "2", status={"usage": {"counted": counted}}))
    assert deleted_pods(fed, job("1"))[1:] == [second]
    fed.feed(str(ECHO), "DELETED", job("1", "3"))
    assert len(deleted_pods(fed, job("1"))) == 1


def test_a_pod_that_a_list_lacks_is_gone_too() -> None:
    fed = Fed(usage=True)
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("pods", "ADDED", on_a_node("a"))
    fed.informer("pods")._replace({})  # what follows a list
    assert [one["metadata"]["name"] for one in deleted_pods(fed, job("1"))[1:]] == ["a"]


def test_pods_of_unknown_jobs_are_not_kept() -> None:
    fed = Fed(usage=True)
    fed.feed("pods", "ADDED", on_a_node("a"))
    fed.feed("pods", "DELETED", on_a_node("a", "6"))
    fed.feed(str(ECHO), "ADDED", job("1"))
    assert len(deleted_pods(fed, job("1"))) == 1


def reporting(owner: str = "1", version: str = "5") -> dict[str, Any]:
    made = {**pod(owner, "p", version, "Running"), "spec": {"nodeName": "n"}}
    made["metadata"]["annotations"] = {"dljob.operator/reports-progress": "job"}
    return made


def identity(of: dict[str, Any], namespace: str = "team") -> PodIdentity:
    return PodIdentity(namespace, of["metadata"]["uid"])


def test_what_a_pod_reports_is_handed_to_the_reconcile_of_its_job() -> None:
    fed = Fed(progress=True)
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("pods", "ADDED", reporting())
    fed.events.taken()
    found = fed.set.reporter_of(identity(reporting()))
    assert found is not None
    assert (found.job, found.namespace, found.kind, found.name, found.node) == ("1", "team", TARGET, "j1", "n")
    fed.set.report(found, Report(45))
    assert [(key, target) for key, target, _ in fed.events.taken()] == [("1", TARGET)]
    fed.set.report(found, Report(46))
    assert fed.events.taken() == [], "a status is due once a minute"
    (reported,) = fed.set.view([job("1")]).snapshot["1"]["ReportedProgress"]  # type: ignore[index]
    assert reported["trainerStatus"]["progressPercentage"] == 46
    fed.feed(str(ECHO), "DELETED", job("1", "3"))
    assert fed.set.progress is not None
    assert list(fed.set.progress.shown()) == []
    fed.set.report(found, Report(47))
    assert list(fed.set.progress.shown()) == [], "the job went between the two"


@pytest.mark.parametrize("case", ["no such pod", "another namespace", "unknown job", "ended job", "no reporter"])
def test_who_reports_nothing(case: str) -> None:
    fed = Fed(progress=True)
    status = {"status": {"completionTime": "2026-11-30T10:00:00Z"}} if case == "ended job" else {}
    fed.feed(str(ECHO), "ADDED", job("2" if case == "unknown job" else "1", **status))
    fed.feed("pods", "ADDED", pod("1") if case == "no reporter" else reporting())
    asked = identity(reporting(), "other" if case == "another namespace" else "team")
    if case == "no such pod":
        asked = PodIdentity("team", "none")
    assert fed.set.reporter_of(asked) is None


def test_the_report_of_a_job_that_has_ended_is_forgotten() -> None:
    fed = Fed(progress=True)
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("pods", "ADDED", reporting())
    found = fed.set.reporter_of(identity(reporting()))
    assert found is not None
    fed.set.report(found, Report(100))
    fed.feed(str(ECHO), "MODIFIED", job("1", "2", status={"completionTime": "2026-11-30T10:00:00Z"}))
    assert fed.set.progress is not None
    assert list(fed.set.progress.shown()) == []


def test_without_accounts_nothing_of_them_is_kept() -> None:
    fed = Fed()
    fed.feed(str(ECHO), "ADDED", job("1"))
    fed.feed("pods", "ADDED", on_a_node("a"))
    snapshot = fed.set.view([job("1")]).snapshot
    assert snapshot is not None
    assert "DeletedPods" not in snapshot["1"]
    assert "ReportedProgress" not in snapshot["1"]
    assert snapshot["1"]["Pod"][0]["spec"]["containers"] == [{"name": "c"}]
