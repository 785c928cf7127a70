"""The clean-up at the end of `dljob-operator run --install-crds --cleanup-on-exit`: what it deletes, and in which order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.lifecycle import cleanup
from dljob_operator.engine.lifecycle.cleanup import remove_created
from dljob_operator.engine.lifecycle.crds import CRDS, Installed

DEFINITIONS, JOBS = CRDS.collection(), "/apis/example.com/v1/echojobs"


class Clock:
    """Passes only where the clean-up waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Server(KubeApi):
    """Has definitions and jobs by name with their UIDs. A deleted definition is gone at the end of the next watch."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.definitions: dict[str, str] = {}
        self.jobs: list[dict[str, Any]] = []
        self.deleted: list[tuple[str, str, str]] = []
        """Path, UID and propagation of each deletion."""
        self.errors: dict[str, list[Exception]] = {}
        """By path, for the next requests."""
        self.watches: list[tuple[dict[str, Any], float]] = []
        self.on_watch: Callable[[], list[dict[str, Any]]] = self.end

    def request(self, method: str, path: str, body: Any = None, *, query: Any = None, **_: Any) -> dict[str, Any]:
        if self.errors.get(path):
            raise self.errors[path].pop(0)
        if method == "DELETE":
            assert (body["apiVersion"], body["kind"]) == ("v1", "DeleteOptions")
            self.deleted.append((path, body["preconditions"]["uid"], body["propagationPolicy"]))
            return {}
        if path != DEFINITIONS:
            return {"items": self.jobs}
        name = query["fieldSelector"].removeprefix("metadata.name=")
        found = {name: self.definitions[name]} if name in self.definitions else {}
        return {
            "metadata": {"resourceVersion": "7"},
            "items": [{"metadata": {"name": name, "uid": uid}} for name, uid in found.items()],
        }

    @contextlib.contextmanager
    def watch(self, path: str, query: Mapping[str, Any], quiet_for: float) -> Iterator[Any]:
        self.watches.append((dict(query), quiet_for))
        yield iter(self.on_watch())

    def end(self) -> list[dict[str, Any]]:
        """The events of the end of all deletions so far."""
        for path, uid, _ in self.deleted:
            name = path.rpartition("/")[2]
            if self.definitions.get(name) == uid:
                del self.definitions[name]
        return [{"type": "MODIFIED"}, {"type": "DELETED"}]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    clock = Clock()
    monkeypatch.setattr(cleanup, "time", clock)
    made = Server(clock)
    made.definitions = {"echojobs.example.com": "u1"}
    return made


def installed(name: str = "echojobs.example.com", uid: str = "u1", **fields: Any) -> Installed:
    values = {"created": True, "group": "example.com", "version": "v1", "plural": "echojobs", "namespaced": True}
    return Installed(name, uid, **{**values, **fields})


def job(name: str, uid: str, namespace: str | None = "team") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid, **({"namespace": namespace} if namespace else {})}}


def deletion(path: str, uid: str, propagation: str = "Background") -> tuple[str, str, str]:
    return path, uid, propagation


OURS = deletion(f"{DEFINITIONS}/echojobs.example.com", "u1")


def test_jobs_are_deleted_with_what_they_own_before_their_definition(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    server.jobs = [job("a", "j1"), job("b", "j2", "other")]
    assert remove_created(server, [installed()]) == []
    assert server.deleted == [
        deletion("/apis/example.com/v1/namespaces/team/echojobs/a", "j1", "Foreground"),
        deletion("/apis/example.com/v1/namespaces/other/echojobs/b", "j2", "Foreground"),
        OURS,
    ]
    assert [(r.message, r.__dict__["dljob_fields"]) for r in caplog.records] == [
        ("cleanup: deleting objects and what they own", {"crd": "echojobs.example.com", "objects": 2}),
        ("cleanup: CustomResourceDefinition deleted", {"crd": "echojobs.example.com"}),
    ]


def test_jobs_of_a_cluster_scoped_kind_have_paths_without_a_namespace(server: Server) -> None:
    server.jobs = [job("a", "j1", None)]
    remove_created(server, [installed(namespaced=False)])
    assert server.deleted[0] == deletion(f"{JOBS}/a", "j1", "Foreground")


def test_a_kind_without_jobs_is_not_announced(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    remove_created(server, [installed()])
    assert [record.message for record in caplog.records] == ["cleanup: CustomResourceDefinition deleted"]


@pytest.mark.parametrize(
    ("definition", "present"),
    [
        (installed(created=False), "u1"),
        (installed(), "another process's"),
        (installed(), None),
    ],
    ids=["it existed before", "it was created anew", "it is gone"],
)
def test_a_definition_of_others_stays_with_its_jobs(server: Server, definition: Installed, present: str | None) -> None:
    server.definitions = {definition.name: present} if present else {}
    server.jobs = [job("a", "j1")]
    assert remove_created(server, [definition]) == []
    assert (server.deleted, server.watches) == ([], [])


def test_a_definition_that_is_gone_does_not_keep_the_next(server: Server) -> None:
    assert remove_created(server, [installed("others.example.com", "u2"), installed()]) == []
    assert server.deleted == [OURS]


def test_all_definitions_are_deleted_before_any_is_waited_for(server: Server) -> None:
    server.definitions["others.example.com"] = "u2"
    order: list[int] = []

    def watched() -> list[dict[str, Any]]:
        order.append(len(server.deleted))
        return server.end()

    server.on_watch = watched
    kept = installed("kept.example.com", "u3", created=False)
    assert remove_created(server, [installed(), kept, installed("others.example.com", "u2")]) == []
    assert [uid for _, uid, _ in server.deleted] == ["u1", "u2"]
    assert order == [2]


@pytest.mark.parametrize("status", [404, 409])
@pytest.mark.parametrize(
    "path", [f"{DEFINITIONS}/echojobs.example.com", "/apis/example.com/v1/namespaces/team/echojobs/a"]
)
def test_what_others_have_deleted_or_replaced_meanwhile_is_no_error(server: Server, path: str, status: int) -> None:
    server.jobs = [job("a", "j1"), job("b", "j2")]
    server.errors[path] = [ApiError(status, "", "not this one")]

    def gone() -> list[dict[str, Any]]:
        server.definitions.clear()
        return []

    server.on_watch = gone
    assert remove_created(server, [installed()]) == []
    assert len(server.deleted) == 2


def test_another_error_of_a_deletion_ends_the_clean_up(server: Server) -> None:
    server.errors[OURS[0]] = [ApiError(403, "Forbidden", "not yours")]
    with pytest.raises(ApiError, match="not yours"):
        remove_created(server, [installed()])


# --- lists of a kind that the API server does not know yet, or no longer


@pytest.mark.parametrize("status", [429, 503])
def test_a_kind_that_cannot_be_listed_yet_is_listed_again(server: Server, status: int) -> None:
    server.jobs = [job("a", "j1")]
    server.errors[JOBS] = [ApiError(status, "", "storage is (re)initializing")] * 3
    assert remove_created(server, [installed()]) == []
    assert len(server.deleted) == 2
    assert len(server.clock.slept) == 3
    assert all(0 < pause < 1 for pause in server.clock.slept)


def test_a_kind_that_can_never_be_listed_is_an_error_after_the_timeout(server: Server) -> None:
    server.errors[JOBS] = [ApiError(503, "", "storage is (re)initializing")] * 1000
    with pytest.raises(ApiError, match="initializing"):
        remove_created(server, [installed()], 5.0)
    assert 5.0 <= sum(server.clock.slept) < 6.0


def test_another_error_of_the_list_ends_the_clean_up(server: Server) -> None:
    server.errors[JOBS] = [ApiError(403, "Forbidden", "not yours")]
    with pytest.raises(ApiError, match="not yours"):
        remove_created(server, [installed()])
    assert server.clock.slept == []


def test_a_kind_that_is_no_longer_served_has_no_jobs(server: Server) -> None:
    server.errors[JOBS] = [ApiError(404, "NotFound", "the server could not find the requested resource")]
    assert remove_created(server, [installed()]) == []
    assert server.deleted == [OURS]


# --- the wait for the end


def test_the_watch_continues_from_the_list_and_ends_at_the_timeout(server: Server) -> None:
    remove_created(server, [installed()], 60.5)
    ((query, quiet_for),) = server.watches
    assert query == {
        "fieldSelector": "metadata.name=echojobs.example.com",
        "resourceVersion": "7",
        "timeoutSeconds": 60,
    }
    assert 60.5 < quiet_for < 70, "longer than the watch itself"


def test_a_watch_lasts_at_least_a_second(server: Server) -> None:
    remove_created(server, [installed()], 0.5)
    assert server.watches[0][0]["timeoutSeconds"] == 1


@pytest.mark.parametrize("ending", ["the end of the watch", "an error", "a lost connection"])
def test_an_interrupted_watch_is_opened_again(server: Server, caplog: pytest.LogCaptureFixture, ending: str) -> None:
    caplog.set_level(logging.DEBUG, "dljob_operator")

    def interrupted() -> list[dict[str, Any]]:
        server.on_watch = server.end
        if ending == "a lost connection":
            raise ApiConnectionError("connection reset")
        return [{"type": "ERROR"}, {"type": "unread"}] if ending == "an error" else []

    server.on_watch = interrupted
    assert remove_created(server, [installed()]) == []
    assert len(server.watches) == 2
    errors = [r.__dict__["dljob_fields"] for r in caplog.records if r.message == "watch interrupted"]
    assert [(one["resource"], str(one["error"])) for one in errors] == (
        [("echojobs.example.com", "connection reset")] if ending == "a lost connection" else []
    )


@pytest.mark.parametrize("event", ["DELETED", "ERROR"])
def test_nothing_is_read_after_the_last_event(server: Server, event: str) -> None:
    read: list[str] = []

    def events() -> Any:
        server.end()
        for name in ("MODIFIED", event, "after it"):
            read.append(name)
            yield {"type": name}

    server.on_watch = events
    assert remove_created(server, [installed()]) == []
    assert read == ["MODIFIED", event]


def test_definitions_that_still_exist_after_the_timeout_are_named(server: Server) -> None:
    server.definitions["others.example.com"] = "u2"

    def first_only() -> list[dict[str, Any]]:
        server.definitions.pop("echojobs.example.com", None)
        server.clock.now += 30.0
        return []

    server.on_watch = first_only
    both = [installed(), installed("others.example.com", "u2")]
    assert remove_created(server, both, 60.0) == ["others.example.com"]
    assert len(server.watches) == 2


def test_a_definition_that_was_created_anew_meanwhile_is_not_waited_for(server: Server) -> None:
    def replaced() -> list[dict[str, Any]]:
        server.definitions["echojobs.example.com"] = "another process's"
        return []

    server.on_watch = replaced
    assert remove_created(server, [installed()]) == []
    assert len(server.watches) == 1
