"""The informer against a real API server, through a proxy that breaks connections."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from integration.engine.support import GROUP, PODS, Jobs, Line, crd, remove_crd, until

from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.informer import Informer, WatchSource
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.discovery import ApiResource, find_api_resource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, WatchStream
from dljob_operator.engine.lifecycle.crds import install_crds
from dljob_operator.watches import GVK

_OURS = "app.kubernetes.io/managed-by=dljob-operator"


class Log:
    """The changes that an informer has reported, as words."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def __call__(self, change: Change) -> None:
        self.changes.append(change)

    @property
    def words(self) -> list[str]:
        def word(change: Change) -> str:
            return "new" if change.old is None else "gone" if change.new is None else "changed"

        return [f"{word(change)} {change.obj['metadata']['name']}" for change in self.changes]


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def line(kubeconfig: Path, tmp_path: Path) -> Iterator[tuple[Line, KubeApi]]:
    """A line of our own to the API server, and a client that uses it."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    server = urlsplit(cluster["server"])
    line = Line(server.hostname or "", server.port or 443)
    cluster["server"] = f"https://127.0.0.1:{line.port}"
    path = tmp_path / "through-the-line"
    path.write_text(yaml.safe_dump(config))
    yield line, KubeApi.connect(path)
    line.close()


def _pods(api: KubeApi, namespace: str, log: Log) -> Informer:
    return Informer(
        api, WatchSource("pods", lambda: PODS, transforms.owned(OWNED_KINDS["Pod"].cached or {}), namespace, _OURS), log
    )


@pytest.fixture
def started() -> Iterator[list[Informer]]:
    """Informers put here are stopped after the test, and must end."""
    informers: list[Informer] = []
    yield informers
    for informer in informers:
        informer.stop()
    for informer in informers:
        assert informer.join(5)


def test_it_lists_then_follows_what_carries_our_label(
    kube: KubeApi, jobs: Jobs, log: Log, started: list[Informer]
) -> None:
    owner = jobs.create("owner")
    jobs.create_pod("first", owner)
    jobs.create_pod("foreign", owner, ours=False)
    informer = _pods(kube, jobs.namespace, log)
    started.append(informer)
    informer.start()
    assert informer.synced.wait(120)
    assert log.words == ["new first"]
    jobs.create_pod("second", owner)
    until(lambda: "new second" in log.words, "the new pod is seen")
    jobs.pod_phase("second", "Running")
    until(lambda: log.changes[-1].obj["status"]["phase"] == "Running", "the new phase is seen")
    jobs.delete_pod("first")
    until(lambda: "gone first" in log.words, "the deletion is seen")
    (pod,) = informer.store.owned(owner["metadata"]["uid"], jobs.namespace)
    assert (pod["metadata"]["name"], "volumes" in pod["spec"]) == ("second", False)


def test_more_objects_than_a_page_are_listed(
    kube: KubeApi,
    jobs: Jobs,
    echojobs: ApiResource,
    log: Log,
    started: list[Informer],
) -> None:
    for number in range(5):
        jobs.create(f"job-{number}")
    source = WatchSource("jobs", lambda: echojobs, transforms.custom, jobs.namespace, page_size=2)
    informer = Informer(kube, source, log)
    started.append(informer)
    informer.start()
    assert informer.synced.wait(120)
    assert sorted(log.words) == [f"new job-{number}" for number in range(5)]


def test_a_job_that_is_nested_too_deeply_hides_no_other(
    kube: KubeApi,
    jobs: Jobs,
    echojobs: ApiResource,
    log: Log,
    started: list[Informer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Python's decoder cannot read the list with it, nor that of the metadata, since managedFields repeat its levels."""
    jobs.create_nested("deep", levels=1500)
    jobs.create("plain")
    source = WatchSource("jobs", lambda: echojobs, transforms.custom, jobs.namespace, from_tenants=True)
    informer = Informer(kube, source, log)
    started.append(informer)
    informer.start()
    assert informer.synced.wait(120)
    assert log.words == ["new plain"]
    assert "object ignored: its fields are nested too deeply" in caplog.text
    jobs.create_nested("deeper", levels=1500)
    jobs.create("later")
    until(lambda: log.words[-1] == "new later", "the watch goes on")
    assert "new deeper" not in log.words


def test_after_a_cut_it_goes_on_where_it_was(
    line: tuple[Line, KubeApi], jobs: Jobs, echojobs: ApiResource, log: Log, started: list[Informer]
) -> None:
    wire, api = line
    jobs.create("before")
    informer = Informer(api, WatchSource("jobs", lambda: echojobs, transforms.custom, jobs.namespace), log)
    started.append(informer)
    informer.start()
    assert informer.synced.wait(120)
    jobs.create("between")
    until(lambda: "new between" in log.words, "the watch is open")
    wire.cut()
    jobs.create("during")
    until(lambda: "new during" in log.words, "what happened meanwhile is seen")
    # Neither listed anew nor watched from the start, which would have reported some again.
    assert log.words == ["new before", "new between", "new during"]


def test_a_server_that_is_away_is_complained_of_once_and_found_again(
    line: tuple[Line, KubeApi],
    jobs: Jobs,
    echojobs: ApiResource,
    log: Log,
    started: list[Informer],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    wire, api = line
    failures: list[str] = []
    watch = api.watch

    @contextlib.contextmanager
    def recorded(*given: Any) -> Iterator[WatchStream]:
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(watch(*given))
            except ApiConnectionError as error:
                failures.append(str(error))
                raise
            yield stream

    monkeypatch.setattr(api, "watch", recorded)
    informer = Informer(api, WatchSource("jobs", lambda: echojobs, transforms.custom, jobs.namespace), log)
    started.append(informer)
    informer.start()
    assert informer.synced.wait(120)
    wire.close()
    until(lambda: len(failures) >= 3, "it has tried again")
    jobs.create("during")
    wire.open()
    until(lambda: log.words == ["new during"], "what happened meanwhile is seen")
    until(lambda: f"watch resumed resource=jobs namespace={jobs.namespace}" in caplog.text, "the return is said")
    assert caplog.text.count("cannot watch resource=jobs") == len(list(itertools.groupby(failures)))


def test_a_version_that_the_server_no_longer_has_leads_to_a_new_list(
    line: tuple[Line, KubeApi],
    jobs: Jobs,
    echojobs: ApiResource,
    log: Log,
    started: list[Informer],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire, api = line
    jobs.create("stays")
    jobs.create("goes")
    watch, opened, absent = api.watch, threading.Event(), threading.Event()

    @contextlib.contextmanager
    def after_an_absence(path: str, query: Any, quiet_for: float) -> Iterator[WatchStream]:
        """Of a long absence: compaction has left this version behind."""
        if absent.is_set():
            query = {**query, "resourceVersion": "1"}
        try:
            with watch(path, query, quiet_for) as stream:
                absent.clear()
                opened.set()
                yield stream
        except ApiError:
            absent.clear()
            raise

    monkeypatch.setattr(api, "watch", after_an_absence)
    informer = Informer(api, WatchSource("jobs", lambda: echojobs, transforms.custom, jobs.namespace), log)
    started.append(informer)
    informer.start()
    assert opened.wait(120), "the watch is open"
    absent.set()
    wire.close()
    jobs.delete("goes")
    wire.open()
    until(lambda: log.words[-1] == "changed stays", "a list reports what it has, after what is gone")
    assert log.words[-2] == "gone goes"
    jobs.create("later")
    until(lambda: log.words[-1] == "new later", "the watch goes on")
    assert "too old" not in caplog.text  # it is the rule after a long absence, and no trouble


def test_a_watch_that_is_left_early_does_no_harm_to_the_next_request(
    kube: KubeApi, jobs: Jobs, echojobs: ApiResource
) -> None:
    for number in range(3):
        path = echojobs.collection(jobs.namespace)
        version = kube.get(path)["metadata"]["resourceVersion"]
        with kube.watch(path, {"resourceVersion": version}, 30):
            pass
        jobs.create(f"unread-{number}")
    assert len(kube.get(echojobs.collection(jobs.namespace))["items"]) == 3


def test_a_kind_that_is_not_installed_is_named_and_found_once_it_is(
    kube: KubeApi,
    namespace: str,
    log: Log,
    started: list[Informer],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gvk = GVK(GROUP, "v1", "LateJob")
    name = f"latejobs.{GROUP}"
    remove_crd(kube, name)
    source = WatchSource(
        str(gvk), lambda: find_api_resource(kube, gvk), transforms.custom, missing="install it: LateJob"
    )
    informer = Informer(kube, source, log)
    started.append(informer)
    informer.start()
    assert informer.has_synced.wait(120)
    assert informer.missing_now
    assert not informer.synced.is_set()
    assert "install it: LateJob" in caplog.text
    (tmp_path / "late.yaml").write_text(yaml.safe_dump(crd("LateJob")))
    try:
        assert [one.name for one in install_crds(kube, tmp_path)] == [name]
        assert informer.synced.wait(30)
        body: dict[str, Any] = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "j"}}
        kube.request("POST", f"/apis/{GROUP}/v1/namespaces/{namespace}/latejobs", body)
        until(lambda: log.words == ["new j"], "its objects are seen")
    finally:
        remove_crd(kube, name)
    until(lambda: log.words[-1] == "gone j", "its objects go with it")
    until(lambda: informer.missing_now, "its absence is noticed")
    assert caplog.text.count("install it: LateJob") == 2


def test_a_denied_watch_is_logged_with_the_missing_right(
    kubeconfig: Path, tmp_path: Path, log: Log, started: list[Informer], caplog: pytest.LogCaptureFixture
) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "not-a-token"}
    path = tmp_path / "no-access"
    path.write_text(yaml.safe_dump(config))
    informer = _pods(KubeApi.connect(path), "default", log)
    started.append(informer)
    informer.start()
    until(
        lambda: "cannot watch resource=pods namespace=default error=Unauthorized" in caplog.text, "the denial is logged"
    )
    assert not informer.has_synced.is_set()
