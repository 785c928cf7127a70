"""What `dljob why` reads, with which rights, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from dljob import cli
from dljob.api import Api
from dljob.client import Client
from dljob.errors import ApiError
from dljob.view import view
from dljob.why import Snapshot, explain, show
from dljob.why.read import snapshot
from support.why_snapshots import NOW, UID, container, ended, job, pod, unplaced, waiting

CORE = "/api/v1/namespaces/team"
JOB = "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/train"


class FakeApi:
    """Answers from a table of paths; the lists of all others are empty, and other objects are absent."""

    def __init__(self, answers: Mapping[str, Any], denied: tuple[str, ...] = (), status: int = 403) -> None:
        self.answers, self.denied, self.status = answers, denied, status
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def get(self, path: str, **query: Any) -> Any:
        self.asked.append((path, query))
        if path in self.denied:
            raise ApiError(self.status, "Forbidden", f"{path} is forbidden")
        if path not in self.answers and "limit" not in query:
            raise ApiError(404, "NotFound", "not found")
        found = self.answers.get(path, [])
        if not isinstance(found, list):
            return found
        start = int(query.get("continue") or 0)
        page = {"items": found[start : start + 1], "metadata": {}}
        if start + 1 < len(found):
            page["metadata"] = {"continue": str(start + 1)}
        return page


def owned(found: dict[str, Any]) -> dict[str, Any]:
    found["metadata"] |= {"namespace": "team", "ownerReferences": [{"uid": UID}]}
    return found


def read(api: FakeApi, of: dict[str, Any] | None = None) -> Snapshot:
    return snapshot(cast(Api, api), of or job(), NOW)


def test_a_job_that_runs_needs_few_requests() -> None:
    api = FakeApi({f"{CORE}/pods": [owned(pod()), owned(pod("worker"))]})
    found = read(api)
    assert {one["metadata"]["name"] for one in found.pods} == {"train-master-0", "train-worker-0"}
    assert {path for path, _ in api.asked} == {f"{CORE}/{one}" for one in ("pods", "events", "services")}
    assert explain(found) == ()


def test_pods_of_other_jobs_are_left_out() -> None:
    stranger = pod("other")
    stranger["metadata"] |= {"namespace": "team", "ownerReferences": [{"uid": "another"}]}
    assert read(FakeApi({f"{CORE}/pods": [stranger]})).pods == ()


def test_a_pod_without_a_node_needs_the_nodes_and_what_is_on_them() -> None:
    api = FakeApi(
        {f"{CORE}/pods": [owned(unplaced("0/1 nodes are available: 1 Insufficient cpu."))], "/api/v1/nodes": [{}]}
    )
    assert read(api).nodes == ({},)
    assert "/api/v1/pods" in {path for path, _ in api.asked}


def test_claims_and_pod_groups_are_read_by_name() -> None:
    volume = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    gang = "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups/train"
    answers = {
        f"{CORE}/pods": [owned(unplaced("", spec=volume))],
        f"{CORE}/persistentvolumeclaims/data": {"metadata": {"name": "data"}},
        gang: {"metadata": {"name": "train"}},
    }
    found = read(FakeApi(answers))
    assert [one["metadata"]["name"] for one in (*found.claims, *found.pod_groups)] == ["data", "train"]


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_the_queue_of_kueue(version: str) -> None:
    base, queued = f"/apis/kueue.x-k8s.io/{version}", job(reason="Waits in the queue research")
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    pending = f"/apis/visibility.kueue.x-k8s.io/{version}/namespaces/team/localqueues/research/pendingworkloads"
    answers = {
        f"{base}/namespaces/team/localqueues/research": {
            "metadata": {"name": "research"},
            "spec": {"clusterQueue": "all"},
        },
        f"{base}/namespaces/team/workloads": [{"metadata": {"name": "w"}}],
        f"{base}/clusterqueues/all": {"metadata": {"name": "all"}},
        pending: [{"metadata": {"name": "w"}}],
    }
    found = read(FakeApi(answers), queued)
    assert (len(found.local_queues), len(found.workloads), len(found.cluster_queues), len(found.pending_workloads)) == (
        1,
        1,
        1,
        1,
    )


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/api/v1/nodes", "list nodes"),
        (f"{CORE}/events", "list events"),
        (f"{CORE}/pods", "list pods"),
        (f"{CORE}/resourcequotas", "list resourcequotas"),
        ("/apis/coordination.k8s.io/v1/leases", "list leases"),
        ("/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups/train", "get podgroups.scheduling.volcano.sh"),
    ],
)
def test_a_missing_right_is_named_and_the_rest_is_read(path: str, right: str) -> None:
    stuck = owned(pod("master", "Pending", container(waiting("ErrImageNeverPull"))))
    found = read(FakeApi({f"{CORE}/pods": [stuck]}, denied=(path,)))
    assert [one.right for one in found.unread] == [right]
    assert bool(explain(found)) or path.endswith("/pods")


def test_credentials_that_are_refused_end_it() -> None:
    with pytest.raises(ApiError, match="forbidden"):
        read(FakeApi({}, denied=(f"{CORE}/events",), status=401))


def run(monkeypatch: pytest.MonkeyPatch, api: FakeApi, *arguments: str) -> int:
    monkeypatch.setattr(cli, "_client", lambda given: Client(namespace="team", api=cast(Api, api)))
    monkeypatch.setattr(Client, "object", lambda self, name, kind=None, namespace=None: job())
    return cli.main(["why", "train", *arguments])


CRASHED = {f"{CORE}/pods": [owned(pod("master", "Failed", container(ended(3, "Error", "lost\x1b[2Jdata"))))]}


def test_the_command_prints_sentence_words_and_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, FakeApi(CRASHED, denied=("/api/v1/nodes",))) == cli.OK
    out, err = capsys.readouterr()
    assert "error: Container pytorch of pod train-master-0 ended with exit code 3" in out
    assert "[exit-code]" in out
    assert "  Pod/train-master-0: exit code 3, reason Error: lost\\x1b[2Jdata" in out
    assert "  Fix: Read the end of its log: kubectl logs train-master-0 -c pytorch." in out
    assert "Some causes may stay hidden, since you may not list nodes." in err


def test_nothing_is_wrong_is_an_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, FakeApi({f"{CORE}/pods": [owned(pod()), owned(pod("worker"))]})) == cli.OK
    assert capsys.readouterr().out.startswith("Nothing is wrong: ")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str) -> None:
    import yaml

    assert run(monkeypatch, FakeApi(CRASHED), "-o", form) == cli.OK
    text = capsys.readouterr().out
    found = json.loads(text) if form == "json" else yaml.safe_load(text)
    (cause,) = [one for one in found if one["id"] == "exit-code"]
    assert cause["evidence"][0]["object"] == "Pod/train-master-0"
    assert cause["severity"] == "error"
    assert cause["since"].startswith("2026-01-02T11:")


def test_colors_only_where_they_are_wanted() -> None:
    causes = explain(Snapshot(job(), NOW, pods=(pod("master", "Failed", container(ended(3))),)))
    shown = {colored: "\n".join(show.lines(view(job(), ()), causes, NOW, colored=colored)) for colored in (True, False)}
    assert "\x1b[31merror\x1b[0m" in shown[True]
    assert "\x1b" not in shown[False]
