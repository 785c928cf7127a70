"""Client and AsyncClient, at an API server over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dljob import AsyncClient, JobView, aio, api, client, config, errors, view
from support.fake_api_server import failure
from support.polling import until
from support.scripted_server import Exchange, scripted

from .conftest import PODS, PTJS, Cluster


def names(jobs: Any) -> list[str]:
    return [job.name for job in jobs]


def test_a_list_has_the_jobs_of_all_kinds_that_the_cluster_has(cluster: Cluster) -> None:
    cluster.job("b")
    cluster.job("a", "tfjobs")
    cluster.job("c", metadata={"namespace": "other"})
    client = cluster.client()
    assert names(client.list()) == ["a", "b"]
    assert names(client.list("tfj")) == ["a"]
    assert names(client.list(all_namespaces=True)) == ["c", "a", "b"]
    assert names(cluster.client(namespace="other").list()) == ["c"]
    assert {exchange.token for exchange in cluster.requests} == {"Bearer secret"}


def test_a_kind_that_has_another_version_only_is_found(cluster: Cluster) -> None:
    cluster.served = {"v2beta1/mpijobs"}
    cluster.job("hosts", "mpijobs", metadata={"name": "hosts"})
    assert names(cluster.client().list()) == ["hosts"]
    assert cluster.client().get("hosts").kind == "MPIJob"


def test_a_list_reads_all_pages(cluster: Cluster) -> None:
    pages = {"": {"items": ["a"], "next": "t"}, "t": {"items": ["b"], "next": ""}}

    def respond(exchange: Any) -> None:
        if not exchange.path.endswith("v1/namespaces/team/tfjobs"):
            exchange.answer(b"404 page not found", 404)
            return
        page: Any = pages[exchange.query.get("continue", "")]
        items = [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": n}} for n in page["items"]]
        exchange.answer({"items": items, "metadata": {"continue": page["next"]}})

    cluster.respond = respond  # type: ignore[method-assign]
    assert names(cluster.client().list()) == ["a", "b"]


def test_a_kind_that_the_user_may_not_list_is_a_problem_beside_the_others(cluster: Cluster) -> None:
    cluster.job("a", "tfjobs")
    cluster.denied = {"GET pytorchjobs", "GET pods"}
    jobs = cluster.client().list(pods=True)
    assert names(jobs) == ["a"]
    assert jobs.problems == (
        "You may not list pytorchjobs.kubeflow.org in the namespace team.",
        "You may not list pods in the namespace team.",
    )
    with pytest.raises(errors.ApiError, match="You may not list pytorchjobs") as caught:
        cluster.client().list("ptj")
    assert caught.value.status == 403


DEEP = b"[" * 1500 + b"]" * 1500


def answer(cluster: Cluster, end: str, body: Any) -> None:
    """Requests whose path has this end have this answer."""
    respond = cluster.respond

    def responds(exchange: Exchange) -> None:
        if exchange.path.endswith(end):
            exchange.answer(body)
        else:
            respond(exchange)

    cluster.respond = responds  # type: ignore[method-assign]


@pytest.mark.parametrize("body", [[], None, {}, {"items": []}, {"items": 3, "metadata": {}}, b"<html>", DEEP])
def test_a_list_that_is_nonsense_is_a_sentence(cluster: Cluster, body: Any) -> None:
    answer(cluster, "/pytorchjobs", body)
    with pytest.raises(errors.ApiError, match="The API server answered with"):
        cluster.client().list()


def test_a_job_that_cannot_be_read_is_left_out(cluster: Cluster) -> None:
    job = cluster.job("a")
    others = [{"metadata": {"name": "x"}}, {}, 3, {**job, "metadata": {"namespace": "team"}}]
    deep = {**job, "metadata": {**job["metadata"], "name": "deep"}, "status": {"x": "DEEP"}}
    body = json.dumps({"items": [deep, *others, job], "metadata": {}}).encode()
    answer(cluster, "/pytorchjobs", body.replace(b'"DEEP"', DEEP))
    jobs = cluster.client().list(all_namespaces=True)
    assert names(jobs) == ["a"]
    assert jobs.problems == ("Left out, since the API server's answer cannot be read: 5 jobs.",)
    assert [one.job.name for one in cluster.client().usage(all_namespaces=True).items] == ["a"]


@pytest.mark.parametrize("body", [[], {}, {"metadata": {"name": "a"}}, b'{"spec": ' + DEEP + b"}"])
def test_a_job_that_is_nonsense_is_a_sentence(cluster: Cluster, body: Any) -> None:
    answer(cluster, "/pytorchjobs/a", body)
    with pytest.raises(errors.ApiError, match="The API server answered with"):
        cluster.client().get("ptj/a")


@pytest.mark.parametrize("kind", [None, "jaxjobs"])
def test_a_cluster_without_the_kinds(cluster: Cluster, kind: str | None) -> None:
    cluster.served = set()
    with pytest.raises(errors.NotFound, match="The cluster does not have"):
        cluster.client().list(kind)
    with pytest.raises(errors.NotFound, match="The cluster does not have"):
        cluster.client().get("a", kind)


def test_a_job_with_its_pods(cluster: Cluster) -> None:
    job = cluster.job("a", status={"startTime": "2026-01-02T12:00:00Z"})
    cluster.pod(job, "a-worker-0")
    seen = cluster.client().get("pytorchjob/a")
    assert (seen.nodes, seen.replicas[0].running, seen.state) == (("node-1",), 1, view.STARTING)
    cluster.denied = {"GET pods"}
    assert cluster.client().get("a").nodes == (), "without the right the status alone"


def test_a_name_of_several_jobs_is_refused_with_the_names_to_write(cluster: Cluster) -> None:
    cluster.job("a")
    cluster.job("a", "tfjobs")
    with pytest.raises(errors.Refused, match=r"pytorchjobs\.kubeflow\.org/a, tfjobs\.kubeflow\.org/a"):
        cluster.client().get("a")
    assert cluster.client().get("a", "tfjob").kind == "TFJob"


@pytest.mark.parametrize("name", ["absent", "tfjob/absent"])
def test_a_job_that_does_not_exist(cluster: Cluster, name: str) -> None:
    with pytest.raises(errors.NotFound, match="There is no job absent in the namespace team"):
        cluster.client().get(name)


@pytest.mark.parametrize("name", ["", "tfjob/", "pod/x"])
def test_a_name_that_means_nothing(cluster: Cluster, name: str) -> None:
    with pytest.raises(errors.Refused):
        cluster.client().get(name)


def test_events_are_those_of_the_job_and_of_its_pods(cluster: Cluster) -> None:
    job = cluster.job("a")
    for number, (kind, name, uid) in enumerate(
        [("Pod", "a-worker-0", "x"), ("PyTorchJob", "a", "uid-of-a"), ("Pod", "other", "y"), ("PyTorchJob", "ab", "z")]
    ):
        event = {
            "metadata": {"name": f"e{number}", "namespace": "team"},
            "involvedObject": {"kind": kind, "name": name, "uid": uid},
            "lastTimestamp": f"2026-01-02T12:00:0{5 - number}Z",
        }
        cluster.fake.add(("team", "events"), event)
    found = cluster.client().around(job)
    assert [event["metadata"]["name"] for event in found.events] == ["e1", "e0"]
    assert found.warnings == []
    cluster.denied = {"GET events"}
    found = cluster.client().around(job)
    assert (found.events, found.warnings) == ([], ["You may not list events in the namespace team."])


def test_refused_credentials_are_no_missing_right(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.status = 401
    with pytest.raises(errors.ApiError, match="credentials"):
        cluster.client().around(job)


# --- steer


def test_suspend_and_resume(cluster: Cluster) -> None:
    cluster.job("a")
    client = cluster.client()
    assert client.suspend("a").state == view.SUSPENDED
    assert cluster.fake.objects[PTJS]["a"]["spec"]["runPolicy"] == {"suspend": True}
    assert client.resume("a").state == view.CREATED


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": {"conditions": [{"type": "Failed", "status": "True"}]}}, "has ended"),
        ({"metadata": {"labels": {view.QUEUE_LABEL: "user"}}}, "Kueue decides when"),
        ({"spec": []}, "has no field for it"),
    ],
)
def test_a_job_that_cannot_be_suspended(cluster: Cluster, change: Any, why: str) -> None:
    cluster.job("a", **change)
    with pytest.raises(errors.Refused, match=why):
        cluster.client().suspend("a")


def test_an_operator_without_suspension_is_noticed(cluster: Cluster) -> None:
    """Its schema lacks the field, so the API server drops it."""
    cluster.job("a")
    update = cluster.fake._update  # noqa: SLF001

    def pruned(call: Any, old: Any, new: Any) -> Any:
        new["spec"].pop("runPolicy", None)
        return update(call, old, new)

    cluster.fake._update = pruned  # type: ignore[method-assign]  # noqa: SLF001
    with pytest.raises(errors.Refused, match="cannot be suspended"):
        cluster.client().suspend("a")


def test_a_restart_waits_for_the_pods_to_go(cluster: Cluster) -> None:
    job = cluster.job("a", status={"conditions": [{"type": "Running", "status": "True"}]})
    cluster.pod(job, "a-worker-0")
    done: list[JobView] = []
    thread = threading.Thread(target=lambda: done.append(cluster.client().restart("a")))
    thread.start()
    until(lambda: cluster.fake.objects[PTJS]["a"]["spec"].get("runPolicy") == {"suspend": True})
    assert not done
    del cluster.fake.objects[PODS]["a-worker-0"]
    thread.join(10)
    assert done and cluster.fake.objects[PTJS]["a"]["spec"]["runPolicy"] == {"suspend": False}


def test_a_restart_gives_up_with_the_job_suspended(cluster: Cluster) -> None:
    job = cluster.job("a", status={"conditions": [{"type": "Running", "status": "True"}]})
    cluster.pod(job, "a-worker-0")
    with pytest.raises(errors.TimedOut, match="the job is suspended"):
        cluster.client().restart("a", timeout=0.2)


def test_an_ended_job_is_created_again_by_a_restart(cluster: Cluster) -> None:
    job = cluster.job("a", metadata={"labels": {"team": "x"}, "ownerReferences": []})
    cluster.end(job)
    seen = cluster.client().restart("a")
    made = cluster.fake.objects[PTJS]["a"]
    assert made["metadata"]["uid"] == seen.uid != job["metadata"]["uid"]
    assert (made["metadata"]["labels"], made["spec"], seen.state) == ({"team": "x"}, job["spec"], view.CREATED)


def refuse_creation(cluster: Cluster) -> None:
    """From the next deletion on."""
    answer = cluster._answer  # noqa: SLF001

    def answers(exchange: Exchange) -> None:
        if exchange.method == "DELETE":
            cluster.denied.add("POST pytorchjobs")
        answer(exchange)

    cluster._answer = answers  # type: ignore[method-assign]  # noqa: SLF001


def test_a_job_that_could_not_be_created_is_not_deleted(cluster: Cluster) -> None:
    cluster.end(cluster.job("a"))
    cluster.denied = {"POST pytorchjobs"}
    with pytest.raises(errors.ApiError, match=r"The job pytorchjobs\.kubeflow\.org/a was not deleted") as caught:
        cluster.client().restart("a")
    assert caught.value.status == 403
    assert "a" in cluster.fake.objects[PTJS] and "DELETE" not in {one.method for one in cluster.requests}


def test_a_job_that_cannot_be_created_again_is_not_lost(cluster: Cluster) -> None:
    job = cluster.job("a", metadata={"labels": {"team": "x"}})
    cluster.end(job)
    refuse_creation(cluster)
    with pytest.raises(errors.NotCreated, match="was deleted, and could not be created again: pods is") as caught:
        cluster.client().restart("a")
    metadata = {"name": "a", "namespace": "team", "labels": {"team": "x"}}
    assert caught.value.manifest == {**{k: job[k] for k in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def test_a_job_with_a_finalizer_is_not_lost(cluster: Cluster) -> None:
    cluster.end(cluster.job("a", metadata={"finalizers": ["example.com/keep"]}))
    with pytest.raises(errors.NotCreated, match=r"The old job a is not gone after 0\.2 s") as caught:
        cluster.client().restart("a", timeout=0.2)
    assert caught.value.manifest["metadata"]["name"] == "a"


def test_a_restart_that_is_interrupted_loses_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.end(cluster.job("a"))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client.Client, "_wait_until_gone", interrupted)
    with pytest.raises(errors.NotCreated, match="KeyboardInterrupt"):
        cluster.client().restart("a")


def test_delete(cluster: Cluster) -> None:
    cluster.job("a")
    cluster.client().delete("a")
    assert "a" not in cluster.fake.objects[PTJS]
    assert cluster.requests[-1].body["preconditions"] == {"uid": "uid-of-a"}


MANIFEST: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "new"},
    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}},
}


def test_submit_creates_and_then_applies(cluster: Cluster) -> None:
    client = cluster.client()
    assert client.submit(MANIFEST, dry_run=True).is_new
    assert PTJS not in cluster.fake.objects
    made = client.submit(MANIFEST)
    assert (made.is_new, made.job.namespace) == (True, "team")
    changed = client.submit({**MANIFEST, "metadata": {"name": "new", "labels": {"a": "b"}}})
    assert (changed.is_new, changed.job.labels) == (False, {"a": "b"})
    generated = client.submit({**MANIFEST, "metadata": {"generateName": "run-"}})
    assert generated.job.name.startswith("run-")
    with pytest.raises(errors.Refused, match=r"no metadata\.name"):
        client.submit({**MANIFEST, "metadata": {}})
    with pytest.raises(errors.NotFound, match="The cluster has no kind jaxjobs"):
        client.submit({**MANIFEST, "kind": "JAXJob"})


# --- watch and wait


def test_a_watch_has_the_jobs_and_then_their_changes(cluster: Cluster) -> None:
    first = cluster.job("a")
    cluster.job("b", "tfjobs")
    changes = cluster.client().watch()
    assert {(change.type, change.job.name) for change in (next(changes), next(changes))} == {
        ("ADDED", "a"),
        ("ADDED", "b"),
    }
    cluster.end(first)
    change = next(changes)
    assert (change.type, change.job.name, change.job.state) == ("MODIFIED", "a", view.SUCCEEDED)
    changes.close()


def test_a_watch_lists_again_where_the_server_has_forgotten_its_place(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.job("gone")
    changes = cluster.client().watch("ptj")
    assert {next(changes).job.name, next(changes).job.name} == {"a", "gone"}
    original = cluster._watch  # noqa: SLF001
    calls = []

    def expired(exchange: Any, plural: str) -> None:
        calls.append(exchange)
        if len(calls) > 1:
            original(exchange, plural)
            return
        cluster.fake.objects[PTJS].pop("gone")
        cluster.end(job)
        exchange.begin_stream()
        exchange.line({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}})
        exchange.send(b"")

    cluster._watch = expired  # type: ignore[method-assign]  # noqa: SLF001
    found = [next(changes), next(changes)]
    assert {(change.type, change.job.name) for change in found} == {("DELETED", "gone"), ("MODIFIED", "a")}
    changes.close()


def watches(cluster: Cluster, begin: Callable[[Exchange, int], bool | None]) -> list[Exchange]:
    """Watches begin with ``begin``, which gets their number and returns whether they go on; all of them are returned."""
    original, seen = cluster._watch, []  # noqa: SLF001

    def watch(exchange: Exchange, plural: str) -> None:
        seen.append(exchange)
        if begin(exchange, len(seen)):
            exchange.begin_stream = lambda: None  # type: ignore[method-assign]
            original(exchange, plural)

    cluster._watch = watch  # type: ignore[method-assign]  # noqa: SLF001
    return seen


def lists(cluster: Cluster) -> int:
    return sum(one.path.endswith("/pytorchjobs") and not one.query.get("watch") for one in cluster.requests)


def test_a_watch_skips_what_cannot_be_decoded(cluster: Cluster) -> None:
    job = cluster.job("a")

    def begin(exchange: Exchange, _: int) -> bool:
        exchange.begin_stream()
        for line in (b"{nonsense\n", b"\xff\n", DEEP + b"\n"):
            exchange.send(line)
        exchange.line({"type": "ADDED", "object": {"metadata": {"name": "of no kind", "resourceVersion": "1"}}})
        return True

    seen = watches(cluster, begin)
    changes = cluster.client().watch("ptj", timeout=30)
    assert next(changes).type == "ADDED"
    timer = threading.Timer(0.3, lambda: cluster.end(job))
    timer.start()
    assert next(changes).job.state == view.SUCCEEDED
    changes.close()
    assert (len(seen), lists(cluster)) == (1, 1)


@pytest.mark.parametrize("event", [{}, [], {"type": "ADDED"}, {"type": "ADDED", "object": {"metadata": 3}}])
def test_a_watch_begins_again_after_an_event_without_an_object(cluster: Cluster, event: Any) -> None:
    cluster.job("a")

    def begin(exchange: Exchange, number: int) -> bool:
        exchange.begin_stream()
        if number == 1:
            cluster.job("b")
            exchange.line(event)
        return number > 1

    watches(cluster, begin)
    changes = cluster.client().watch("ptj", timeout=30)
    assert [next(changes).job.name for _ in range(2)] == ["a", "b"]
    changes.close()
    assert lists(cluster) == 2


def refused(exchange: Exchange, status: int) -> None:
    exchange.answer(failure(status, "Because", "because").content, status)


def ended(exchange: Exchange, status: int) -> None:
    exchange.begin_stream()
    exchange.line({"type": "ERROR", "object": {"code": status, "message": "because"}})
    exchange.send(b"")


@pytest.mark.parametrize("end", [refused, ended])
@pytest.mark.parametrize("status", [410, 429, 500, 504])
def test_a_watch_that_is_refused_rests_before_it_lists_again(
    cluster: Cluster, end: Callable[[Exchange, int], None], status: int
) -> None:
    cluster.job("a")

    def begin(exchange: Exchange, _: int) -> None:
        end(exchange, status)

    watches(cluster, begin)
    assert [change.job.name for change in cluster.client().watch("ptj", timeout=1.2)] == ["a"]
    assert lists(cluster) <= 3, "at once, or after half a second, and then after a second more"


def test_a_watch_that_ends_at_once_rests(cluster: Cluster) -> None:
    cluster.job("a")

    def begin(exchange: Exchange, _: int) -> None:
        exchange.begin_stream()
        exchange.send(b"")

    seen = watches(cluster, begin)
    assert [change.job.name for change in cluster.client().watch("ptj", timeout=0.9)] == ["a"]
    assert len(seen) <= 2 and lists(cluster) == 1


def test_a_watch_of_what_may_not_be_listed_is_a_sentence(cluster: Cluster) -> None:
    cluster.denied = {"GET tfjobs", "GET pytorchjobs"}
    with pytest.raises(errors.ApiError, match="You may not list"):
        list(cluster.client().watch(timeout=1))


@pytest.mark.parametrize("end", [refused, ended])
def test_a_kind_that_may_be_listed_and_not_watched_does_not_end_the_others(
    cluster: Cluster, end: Callable[[Exchange, int], None]
) -> None:
    job = cluster.job("a")
    cluster.job("b", "tfjobs")

    def begin(exchange: Exchange, _: int) -> bool:
        if "tfjobs" in exchange.path:
            end(exchange, 403)
            return False
        return True

    seen, told = watches(cluster, begin), list[str]()
    changes = cluster.client().watch(timeout=30, tell=told.extend)
    assert {next(changes).job.name for _ in range(2)} == {"a", "b"}
    timer = threading.Timer(0.3, lambda: cluster.end(job))
    timer.start()
    assert next(changes).job.name == "a"
    changes.close()
    assert told == ["You may not watch tfjobs.kubeflow.org in the namespace team. Its changes are not shown."]
    assert sum("tfjobs" in one.path for one in seen) == 1


@pytest.mark.parametrize("end", [refused, ended])
def test_where_no_kind_may_be_watched_the_error_is_raised(
    cluster: Cluster, end: Callable[[Exchange, int], None]
) -> None:
    cluster.job("a")

    def begin(exchange: Exchange, _: int) -> None:
        end(exchange, 403)

    watches(cluster, begin)
    with pytest.raises(errors.ApiError):
        list(cluster.client().watch("ptj", timeout=30))


def test_a_job_of_the_same_name_is_another_one(cluster: Cluster) -> None:
    """It was deleted and created while no watch ran."""
    cluster.job("a")

    def begin(exchange: Exchange, number: int) -> bool:
        if number == 1:
            cluster.fake.objects[PTJS].pop("a")
            cluster.job("a", metadata={"uid": "another"})
            ended(exchange, 410)
        else:
            exchange.begin_stream()
        return number > 1

    watches(cluster, begin)
    changes = cluster.client().watch("ptj", timeout=30)
    found = [next(changes) for _ in range(3)]
    changes.close()
    assert [(change.type, change.job.uid) for change in found] == [
        ("ADDED", "uid-of-a"),
        ("DELETED", "uid-of-a"),
        ("ADDED", "another"),
    ]
    assert found[1].object["metadata"] == {"namespace": "team", "name": "a", "uid": "uid-of-a"}


class Held(dict[str, Any]):
    """A dict that may be referred to weakly."""


def test_a_watch_keeps_no_objects(cluster: Cluster) -> None:
    held = Held(cluster.job("a"))
    known: dict[Any, Any] = {}
    change = client._change("ADDED", held, known)  # noqa: SLF001
    assert change and len(known) == 1
    seen = weakref.ref(held)
    del held, change
    assert seen() is None


def test_a_watch_ends_after_its_time(cluster: Cluster) -> None:
    cluster.job("a")
    assert [change.job.name for change in cluster.client().watch(timeout=0.2)] == ["a"]


def test_wait_for_the_end(cluster: Cluster) -> None:
    stored = cluster.job("a")
    seen: list[str] = []

    def progress(job: JobView) -> None:
        seen.append(job.state)
        if job.state == view.CREATED:
            cluster.end(stored, "Failed")

    ended = cluster.client().wait("a", timeout=20, progress=progress)
    assert (ended.state, seen) == (view.FAILED, [view.CREATED, view.FAILED])


def test_wait_ends_where_the_state_cannot_come(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.end(job, "Failed")
    with pytest.raises(errors.Refused, match="has ended as Failed, and will not be Running"):
        cluster.client().wait("a", until=view.RUNNING)
    with pytest.raises(errors.NotFound):
        cluster.client().wait("b")


def test_wait_for_a_job_that_is_deleted(cluster: Cluster) -> None:
    cluster.job("a")
    with pytest.raises(errors.NotFound, match="was deleted"):
        cluster.client().wait("a", timeout=20, progress=lambda job: cluster.client().delete("a") and None)


def test_wait_has_a_timeout(cluster: Cluster) -> None:
    cluster.job("a")
    with pytest.raises(errors.TimedOut, match=r"is not Running after 0\.2 s: it is Created"):
        cluster.client().wait("a", until="Running", timeout=0.2)


def test_asyncio(cluster: Cluster) -> None:
    job = cluster.job("a")

    async def run() -> list[str]:
        client = AsyncClient(str(cluster.kubeconfig))
        assert names(await client.list()) == ["a"]
        assert (await client.get("a")).name == "a"
        found = []
        async for change in client.watch("ptj"):
            found.append(change.job.state)
            if len(found) == 2:
                break
            cluster.end(job)
        with pytest.raises(errors.NotFound):
            await client.delete("b")
        return found

    assert asyncio.run(run()) == [view.CREATED, view.SUCCEEDED]


def test_only_so_much_is_read_ahead() -> None:
    made: list[int] = []

    def begin(stop: Callable[[], bool]) -> Iterator[int]:
        for number in range(1000):
            made.append(number)
            yield number

    async def run() -> None:
        items = aio.iterate(begin, 5)
        assert await anext(items) == 0
        await asyncio.sleep(0.3)
        assert len(made) <= 7
        await items.aclose()

    asyncio.run(run())


def test_only_so_many_connections_are_kept() -> None:
    of = api.Api(config.Config("http://127.0.0.1:1"))
    multis = [of.take_multi() for _ in range(10)]
    for multi in multis:
        of.keep_multi(multi)
    kept = [of.take_multi() for _ in range(10)]
    assert sum(one in multis for one in kept) == 4


@pytest.mark.parametrize("is_followed", [False, True])
def test_only_what_is_followed_may_be_quiet(is_followed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_QUIET_SECONDS", 1)

    def respond(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.hang()

    with scripted(respond) as server, api.Api(config.Config(server.url)).streams() as streams:
        streams.add("log", api.Request("/log", {"follow": "true"} if is_followed else {}))
        found: list[Any] = []
        end = time.monotonic() + (3 if is_followed else 60)
        while len(streams) and time.monotonic() < end:
            found += [item for _, item in streams.take(0.1)]
    assert [type(one) for one in found] == ([] if is_followed else [errors.ConnectionFailed])


@pytest.mark.parametrize("name", [".", "..", "tfjobs/../pods", "tfjobs/..", "tfjobs/a/../b"])
def test_a_name_does_not_lead_elsewhere(cluster: Cluster, name: str) -> None:
    cluster.job("a")
    with pytest.raises(errors.Refused, match="is no name of a Kubernetes object"):
        cluster.client().object(name)
    with pytest.raises(errors.Refused, match="is no name of a Kubernetes object"):
        cluster.client(namespace="../..").list()
    assert cluster.requests == []


def test_a_name_with_other_characters_is_one_part_of_the_path(cluster: Cluster) -> None:
    with pytest.raises(errors.NotFound):
        cluster.client().object("tfjobs/a?watch=1#x%2e")
    assert {one.path.rpartition("/")[2] for one in cluster.requests} == {"a%3Fwatch%3D1%23x%252e"}
