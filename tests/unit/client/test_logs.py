"""The merged logs of a job, at an API server over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from dljob import AsyncClient, cli, errors
from dljob.logs import Choice
from dljob.logs import follow as follow_
from support.polling import until

from .conftest import PODS, Cluster, Log
from .test_cli import run


def texts(lines: Any) -> list[str]:
    return [f"{line.replica} {line.text}" for line in lines]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_, "WINDOW", 0.05)
    monkeypatch.setattr(follow_, "_PAUSE", 0.05)


def test_the_lines_of_all_replicas_come_in_the_order_of_time(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "step 1", "step 3")
    cluster.worker(job, 1).lines += [b"2026-11-29T10:00:01.000500000Z step 2\n", b"2026-11-29T10:00:09Z last"]
    lines = list(cluster.client().logs("a"))
    assert texts(lines) == ["worker-0 step 1", "worker-1 step 2", "worker-0 step 3", "worker-1 last"]
    assert (lines[0].pod, lines[0].container) == ("a-worker-0", "pytorch")
    assert lines[0].time == "2026-11-29T10:00:01.000000000Z"


def test_unsorted_the_first_line_waits_for_no_other_log(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "late 1", "late 2")
    cluster.worker(job, 1).write(2, "early 1", "early 2")
    begins = cluster.logs["a-worker-0/pytorch"].waits_for = threading.Event()
    try:
        lines = cluster.client().logs("a", choice=Choice(unsorted=True))
        assert texts([next(lines), next(lines)]) == ["worker-1 early 1", "worker-1 early 2"]
    finally:
        begins.set()
    assert texts(lines) == ["worker-0 late 1", "worker-0 late 2"]


def test_what_is_wanted_of_them(cluster: Cluster) -> None:
    job = cluster.job("a")
    for index in (0, 1, 10):
        cluster.worker(job, index).write(index, "one", "two")
    client = cluster.client()
    assert texts(client.logs("a", choice=Choice(replicas=("worker-10",)))) == ["worker-10 one", "worker-10 two"]
    assert texts(client.logs("a", choice=Choice(replicas=("a-worker-1", "Worker-0"), tail=1))) == [
        "worker-0 two",
        "worker-1 two",
    ]
    list(client.logs("a", choice=Choice(since_seconds=90)))
    assert {one.query.get("sinceSeconds") for one in cluster.requests[-3:]} == {"90"}
    with pytest.raises(errors.NotFound, match="no replica worker-2 or ps with a pod"):
        list(client.logs("a", choice=Choice(replicas=("worker-2", "ps"))))
    with pytest.raises(errors.NotFound, match="such a container: they have pytorch"):
        list(client.logs("a", choice=Choice(containers=("sidecar",))))
    with pytest.raises(errors.NotFound, match="has restarted: there is no previous log"):
        list(client.logs("a", choice=Choice(previous=True)))


def test_the_lines_after_a_time(cluster: Cluster) -> None:
    """The API server counts in full seconds; a piece of a long line goes with it."""
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "one", "two", "three", "x" * 3_000_000)
    cluster.worker(job, 1).write(2, "four")
    choice = Choice(after="2026-11-29T11:00:01.001+01:00", tail=100, since_seconds=5)
    lines = list(cluster.client().logs("a", choice=choice))
    assert (lines[0].text, lines[-1].text, "".join(line.text for line in lines[1:-1])) == (
        "three",
        "four",
        "x" * 3_000_000,
    )
    assert cluster.requests[-1].query["sinceTime"] == "2026-11-29T10:00:01Z"
    assert cluster.requests[-1].query["tailLines"] == "100" and "sinceSeconds" not in cluster.requests[-1].query
    late = Choice(after="2026-11-29T10:00:01.003Z")
    assert texts(cluster.client().logs("a", choice=late)) == ["worker-1 four"]


def test_a_long_line_comes_in_pieces_and_nothing_is_lost(cluster: Cluster) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "x" * 3_000_000, "after")
    cluster.worker(job, 1).write(2, "other")
    lines = list(cluster.client().logs("a"))
    assert "".join(line.text for line in lines[:-2]) == "x" * 3_000_000
    assert texts(lines[-2:]) == ["worker-0 after", "worker-1 other"]
    assert max(len(line.data) for line in lines) < 2_000_000


@pytest.mark.parametrize(
    ("state", "phase", "said"),
    [("waiting", "Running", "No container of pytorchjobs.kubeflow.org/a has started"), ("", "Running", "has no pods")],
)
def test_there_is_no_log_yet(cluster: Cluster, state: str, phase: str, said: str) -> None:
    job = cluster.job("a")
    if state:
        cluster.worker(job, 0, state)
    with pytest.raises(errors.NotFound, match=said):
        list(cluster.client().logs("a"))


def test_the_pods_of_an_ended_job_are_gone(cluster: Cluster) -> None:
    cluster.end(cluster.job("a"))
    for follow in (False, True):
        with pytest.raises(errors.NotFound, match="are gone, and their logs with them"):
            list(cluster.client().logs("a", follow=follow))


def test_a_log_that_cannot_be_read_does_not_hide_the_others(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "one")
    gone, cut = cluster.worker(job, 1), cluster.worker(job, 2)
    gone.status = 404
    cut.write(2, "begin", "end")
    cut.cut = 1
    said: list[str] = []
    assert texts(cluster.client().logs("a", tell=said.append)) == ["worker-0 one", "worker-2 begin"]
    assert sorted(said)[0] == "The log of worker-1 cannot be read: the pod a-worker-1 is gone."
    assert sorted(said)[1].startswith("The log of worker-2 is not complete: the connection broke")


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_log_that_its_node_has_removed(cluster: Cluster, end: bytes) -> None:
    job = cluster.job("a")
    removed = cluster.worker(job, 0, "terminated")
    removed.lines = [b"unable to retrieve container logs for containerd://66bec4b4550403bf" + end]
    with pytest.raises(errors.NotFound, match="its node has removed it"):
        list(cluster.client().logs("a"))
    cluster.worker(job, 1).write(1, "one")
    said: list[str] = []
    assert texts(cluster.client().logs("a", tell=said.append)) == ["worker-1 one"]
    assert said == [
        "The log of worker-0 cannot be read: its node has removed it, as it does with containers of pods that have ended."
    ]


@pytest.mark.parametrize("denied", ["pods", "log"])
def test_a_user_without_the_right(cluster: Cluster, denied: str) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    if denied == "pods":
        cluster.denied = {"GET pods"}
    else:
        log.status = 403
    said: list[str] = []
    with pytest.raises(errors.ApiError) as caught:
        list(cluster.client().logs("a", tell=said.append))
    assert caught.value.status == 403
    assert said == (
        []
        if denied == "pods"
        else ["The log of worker-0 cannot be read: you may not get pods/log in the namespace team."]
    )


# --- follow


class Following:
    """The lines that a thread follows."""

    def __init__(self, cluster: Cluster, choice: Choice | None = None) -> None:
        self.lines: list[str] = []
        self.said: list[str] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(cluster, choice), daemon=True)
        self.thread.start()

    def _run(self, cluster: Cluster, choice: Choice | None) -> None:
        for line in cluster.client().logs(
            "a", choice=choice, follow=True, tell=self.said.append, stop=self.stopped.is_set
        ):
            self.lines.append(f"{line.replica} {line.text}")

    def ended(self) -> bool:
        self.thread.join(10)
        return not self.thread.is_alive()


@pytest.fixture
def follow(cluster: Cluster) -> Iterator[Any]:
    begun: list[Following] = []

    def begin(choice: Choice | None = None) -> Following:
        begun.append(Following(cluster, choice))
        return begun[-1]

    yield begin
    for one in begun:
        one.stopped.set()
        one.thread.join(10)


def end(cluster: Cluster, job: Any) -> None:
    for log in cluster.logs.values():
        log.is_open = False
    for name in list(cluster.fake.objects[PODS]):
        cluster.container_is(name, "terminated")
    cluster.end(job)


def test_it_goes_on_until_the_job_has_ended(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    first, second = cluster.worker(job, 0), cluster.worker(job, 1)
    first.write(1, "one")
    second.write(2, "two")
    following = follow()
    until(lambda: following.lines == ["worker-0 one", "worker-1 two"])
    second.write(4, "four")
    first.write(3, "three")
    until(lambda: len(following.lines) == 4)
    assert following.lines[2:] == ["worker-0 three", "worker-1 four"]
    first.write(5, "five")
    end(cluster, job)
    assert following.ended()
    assert following.lines[4:] == ["worker-0 five"]


def test_pods_that_come_and_containers_that_restart_are_read_whole(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    following = follow()
    late = cluster.worker(job, 0, "waiting")
    late.is_open = True
    late.write(1, "first")
    cluster.container_is("a-worker-0", "running")
    until(lambda: following.lines == ["worker-0 first"])
    late.is_open = False
    cluster.container_is("a-worker-0", "terminated")
    cluster.logs["a-worker-0/pytorch"] = again = Log(is_open=True)
    again.write(2, "anew")
    cluster.container_is("a-worker-0", "running", restarts=1)
    until(lambda: following.lines == ["worker-0 first", "worker-0 anew"])
    end(cluster, job)
    assert following.ended()
    assert len(following.lines) == 2


def test_a_connection_that_breaks_goes_on_without_a_line_twice(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "one", "two")
    log.lines.append(log.lines[-1].replace(b"two", b"three"))  # at the same time as the line before
    following = follow()
    until(lambda: len(following.lines) == 3)
    log.cut = 4
    log.write(1, "four", "five")
    until(lambda: len(following.lines) == 5)
    assert following.lines == [f"worker-0 {text}" for text in ("one", "two", "three", "four", "five")]
    end(cluster, job)
    assert following.ended()


def test_it_goes_on_after_a_time(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "old", "missed")
    following = follow(Choice(after="2026-11-29T10:00:01.000000000Z", tail=5000))
    until(lambda: log.is_followed)
    log.write(2, "new")
    cluster.worker(job, 1).write(2, "other")
    until(lambda: sorted(following.lines) == ["worker-0 missed", "worker-0 new", "worker-1 other"])
    end(cluster, job)
    assert following.ended()
    assert len(following.lines) == 3


def test_it_goes_on_after_events_that_are_nonsense(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    original, seen = cluster._watch, []  # noqa: SLF001

    def watch(exchange: Any, plural: str) -> None:
        exchange.begin_stream()
        for line in (b"{", b"[]", b"null", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": {}}', b"[" * 5000):
            exchange.send(line + b"\n")
        no_kind = {"metadata": {"name": "a", "namespace": "team", "uid": "uid-of-a"}}
        exchange.line({"type": "MODIFIED", "object": no_kind})
        exchange.begin_stream = lambda: None
        seen.append(plural)
        original(exchange, plural)

    cluster._watch = watch  # type: ignore[method-assign]  # noqa: SLF001
    following = follow()
    until(lambda: log.is_followed)
    log.write(1, "one")
    until(lambda: following.lines == ["worker-0 one"])
    end(cluster, job)
    assert following.ended()
    assert sorted(seen) == ["pods", "pods", "pytorchjobs"]


def test_with_tail_0_it_begins_now(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "old")
    following = follow(Choice(tail=0))
    until(lambda: log.is_followed)
    log.write(2, "new")
    until(lambda: following.lines == ["worker-0 new"])


def test_a_job_that_is_deleted_ends_it(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "one")
    following = follow()
    until(lambda: bool(following.lines))
    cluster.logs["a-worker-0/pytorch"].is_open = False
    cluster.client().delete("a")
    assert following.ended()


def test_a_log_whose_node_is_lost_does_not_keep_it_from_ending(cluster: Cluster, follow: Any) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "one")
    following = follow()
    until(lambda: bool(following.lines))
    log.status = 500
    log.is_open = False
    cluster.end(job)
    assert following.ended()


def test_asyncio(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "one", "two")

    async def read() -> list[str]:
        return [line.text async for line in AsyncClient(str(cluster.kubeconfig)).logs("a")]

    assert asyncio.run(read()) == ["one", "two"]

    async def fail() -> None:
        async for _ in AsyncClient(str(cluster.kubeconfig)).logs("b"):
            pass

    with pytest.raises(errors.NotFound):
        asyncio.run(fail())


def test_the_command(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "loss 1", "accuracy 2")
    cluster.worker(job, 1).status = 404
    code, out, err = run(capsys, "logs", "a")
    assert (code, out) == (0, "worker-0 | loss 1\nworker-0 | accuracy 2\n")
    assert err == "warning: The log of worker-1 cannot be read: the pod a-worker-1 is gone.\n"
    assert run(capsys, "logs", "a", "worker-0", "--grep", "^loss", "-o", "raw")[1] == "loss 1\n"
    assert (
        run(capsys, "logs", "a", "worker-0", "--tail=1", "--timestamps")[1].split()[2]
        == "2026-11-29T10:00:01.001000000Z"
    )
    assert json.loads(run(capsys, "logs", "a", "worker-0", "--tail", "1", "-o", "json")[1])["message"] == "accuracy 2"
    assert run(capsys, "logs", "a", "worker-0", "--unsorted")[1] == out
    assert run(capsys, "logs", "b")[0] == 3
    assert run(capsys, "logs", "a", "ps")[0] == 3


@pytest.mark.parametrize(
    "words", [("--tail", "x"), ("--grep", "("), ("--since", "soon"), ("-c", "a", "--all-containers")]
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["logs", "a", *words])
    assert ended.value.code == 2
