"""A user sees that the operator ignores a job which is nested too deeply, and the watch does not wait for that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.fake_kube_api import ECHO, FakeKubeApi
from support.polling import until

from dljob_operator.engine.cache import ignored_jobs as module
from dljob_operator.engine.cache import informer_set
from dljob_operator.engine.cache.ignored_jobs import IgnoredJobs
from dljob_operator.engine.cache.informer_set import InformerSet
from dljob_operator.engine.cache.nesting import LIMIT, UNREADABLE
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.events import EventRecorder
from dljob_operator.watches import Watch


class Queue:
    def add(self, key: str, *given: Any, **more: Any) -> None: ...

    def discard(self, key: str) -> None: ...


def identity(name: str = "deep", version: str = "7") -> dict[str, Any]:
    return {"name": name, "namespace": "team", "uid": f"{name}-uid", "resourceVersion": version}


def event(type_: str = "ADDED", version: str = "7", *, unreadable: bool = False) -> dict[str, Any]:
    if unreadable:
        return {"type": type_, UNREADABLE: True, "object": {"metadata": identity(version=version)}}
    spec: dict[str, Any] = {}
    for _ in range(LIMIT + 1):
        spec = {"a": spec}
    return {"type": type_, "object": {"metadata": {**identity(version=version), "labels": {"a": "b"}}, "spec": spec}}


@pytest.fixture
def api() -> FakeKubeApi:
    return FakeKubeApi()


@pytest.fixture
def watching(api: FakeKubeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[InformerSet]:
    """An informer set of which only the thread that writes Events runs."""
    jobs = IgnoredJobs(EventRecorder(api))
    jobs.start()
    monkeypatch.setattr(informer_set, "IgnoredJobs", lambda recorder: jobs)
    yield InformerSet([Watch(ECHO)], api, ControllerSettings(), Queue())
    jobs.stop()
    assert jobs.join(10)


@pytest.mark.parametrize("unreadable", [False, True])
def test_an_event_names_the_problem_and_the_fix_once_for_each_version(
    api: FakeKubeApi, watching: InformerSet, unreadable: bool
) -> None:
    informer = watching.informers[0]
    for version in ("7", "7", "8", "8"):  # a list that begins anew brings the same version again
        informer.handle(event(version=version, unreadable=unreadable))
    until(lambda: bool(api.events()) and api.events()[0]["count"] == 2)
    (found,) = api.events()
    assert (found["type"], found["reason"]) == ("Warning", "NestedTooDeeply")
    assert found["message"].startswith(
        "The operator ignores this job because its fields are nested more than 100 levels"
    )
    assert "; remove the fields" in found["message"]
    assert found["involvedObject"] == {
        **{key: value for key, value in identity().items() if key != "resourceVersion"},
        "apiVersion": "example.com/v1",
        "kind": "EchoJob",
        "resourceVersion": "7",
    }
    assert api.requests() == ["POST events", "PATCH events"]


def test_the_deletion_of_such_a_job_is_no_news(api: FakeKubeApi, watching: InformerSet) -> None:
    watching.informers[0].handle(event("DELETED"))
    watching.informers[0].handle(event(version="8"))
    until(lambda: bool(api.events()))
    assert api.events()[0]["involvedObject"]["resourceVersion"] == "8"


class Hung(EventRecorder):
    """An API server that does not answer until `answers` is set."""

    def __init__(self) -> None:
        self.answers, self.asked = threading.Event(), threading.Event()
        self.names: list[str] = []

    def warn(self, obj: dict[str, Any], reason: str, message: str) -> None:
        self.asked.set()
        assert self.answers.wait(10)
        self.names.append(obj["metadata"]["name"])
        if len(self.names) == 1:
            raise RuntimeError("a bug")


def test_neither_a_slow_api_server_nor_an_error_concerns_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 2)
    recorder = Hung()
    jobs = IgnoredJobs(recorder)
    jobs.start()
    jobs.note(ECHO, identity("a"))
    assert recorder.asked.wait(10)
    for name in ("b", "c", "left-out"):
        jobs.note(ECHO, identity(name))
    assert recorder.names == [], "the Events wait, and not the thread that noted the jobs"
    recorder.answers.set()
    until(lambda: recorder.names == ["a", "b", "c"])
    assert "an Event failed with an internal error" in caplog.text
    jobs.note(ECHO, identity("left-out"))
    until(lambda: recorder.names[3:] == ["left-out"])
    jobs.stop()
    assert jobs.join(10)


def test_an_informer_set_starts_and_stops_the_thread(api: FakeKubeApi) -> None:
    before = set(threading.enumerate())
    informers = InformerSet([Watch(ECHO)], api, ControllerSettings(), Queue())
    informers.start()
    assert "ignored jobs" in {thread.name for thread in set(threading.enumerate()) - before}
    informers.stop()
    informers.join()
    assert set(threading.enumerate()) <= before


def test_only_the_last_jobs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    jobs = IgnoredJobs(recorder := Hung())
    recorder.answers.set()
    jobs.start()
    for name in "abcd":
        jobs.note(ECHO, identity(name))
    for name in "cdba":  # of which "a" and "b" are new again
        jobs.note(ECHO, identity(name))
    until(lambda: recorder.names == list("abcdba"))
    jobs.stop()
