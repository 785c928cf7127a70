"""How far the training of jobs is, as their programs report it: the view, the tables and the commands."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from dljob import view
from dljob.client import Client
from dljob.matching import matches
from dljob.output import JobTable, described, printable, progress_cell, progress_text, structured
from dljob.output import Progress as Bar
from dljob.progress import MOST_METRICS, Metric, Progress, Ranks, Slowest, progress_of
from hypothesis import given
from hypothesis import strategies as st

from .conftest import PTJS, Cluster
from .test_cli import run

NOW = datetime(2026, 11, 30, 10, 0, 15, tzinfo=UTC)
REPORT = {
    "progressPercentage": 45,
    "estimatedRemainingSeconds": 795,
    "metrics": [{"name": "loss", "value": "0.2347"}, {"name": "eval_accuracy", "value": "0.91"}],
    "lastUpdatedTime": "2026-11-30T10:00:00Z",
}
RANKS = {
    "reporting": 8,
    "medianStepSeconds": 1.2,
    "slowest": {"replica": "worker-3", "pod": "digits-worker-3", "node": "n4", "stepSeconds": 1.9},
}
SLOWEST = "slowest: worker-3 on n4, 1.9 s a step (median 1.2 s, 8 ranks)"
SENTENCE = f"45%, 13m left, reported 15s ago; loss 0.2347, eval_accuracy 0.91; {SLOWEST}"


def running(ago: float = 0, **more: Any) -> dict[str, Any]:
    """The status of a job that runs, whose report is from so many seconds before now."""
    updated = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**state("Running"), "trainerStatus": {**REPORT, "lastUpdatedTime": updated, **more}}


def state(*types: str) -> dict[str, Any]:
    return {"conditions": [{"type": one, "status": "True"} for one in types]}


def job(status: Any, name: str = "digits") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "uid": f"uid-of-{name}"}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": {}, "status": status}


def seen(status: Any, now: datetime = NOW) -> view.JobView:
    return view.view(job(status), now=now)


# --- the view


def test_what_a_program_and_its_ranks_report() -> None:
    assert progress_of({"trainerStatus": REPORT, "rankStatus": RANKS}, NOW) == Progress(
        percent=45,
        remaining_seconds=795,
        updated=datetime(2026, 11, 30, 10, tzinfo=UTC),
        metrics=(Metric("loss", "0.2347"), Metric("eval_accuracy", "0.91")),
        ranks=Ranks(8, 1.2, Slowest("worker-3", "digits-worker-3", "n4", 1.9)),
        left=780.0,
        age=15.0,
    )


@pytest.mark.parametrize(
    "status",
    [None, "x", [], {}, {"trainerStatus": {}}, {"trainerStatus": [45]}, {"trainerStatus": {"rankStatus": RANKS}}],
)
def test_a_job_that_reports_nothing(status: Any) -> None:
    assert progress_of(status, NOW) is None
    assert seen(status).progress is None


def odd(field: str, *values: Any) -> list[tuple[str, Any]]:
    return [(field, value) for value in values]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *odd("progressPercentage", -1, 101, 10**400, True, "45", 4.5, None, [1]),
        *odd("estimatedRemainingSeconds", -1, 2**31, 10**400, False, "9", float("nan")),
        *odd("metrics", {}, "loss", [1, None, {}, {"name": 1, "value": "x"}, {"name": "loss"}]),
        *odd("metrics", *([{"name": "loss", "value": value}] for value in ("", 1, None, ["0.1"]))),
        *odd("lastUpdatedTime", 5, "yesterday", "", 10**30, "2026-13-01T00:00:00Z"),
        *odd("rankStatus", 7, [], {"reporting": -1}, {"medianStepSeconds": "1"}, {"slowest": [1]}),
        *odd("rankStatus", *({"slowest": one} for one in ({"node": "n"}, {"replica": 3}, {"stepSeconds": 1}))),
    ],
)
def test_nonsense_counts_as_absent(field: str, value: Any) -> None:
    """Alone it is no report, and beside others it changes nothing else."""
    if field == "rankStatus":
        assert progress_of({field: value}, NOW) is None
        return
    assert progress_of({"trainerStatus": {field: value}}, NOW) is None
    found = progress_of({"trainerStatus": {**REPORT, field: value}}, NOW)
    left_out = progress_of({"trainerStatus": {name: one for name, one in REPORT.items() if name != field}}, NOW)
    assert found == left_out and found is not None


def test_a_report_has_so_many_metrics_of_so_many_characters() -> None:
    many = [{"name": "n" * 1000, "value": f"{number:05}" * 1000} for number in range(1000)]
    found = progress_of({"trainerStatus": {"metrics": many}}, NOW)
    assert found and len(found.metrics) == MOST_METRICS
    assert {len(text) for one in found.metrics for text in one} == {128}


@pytest.mark.parametrize(
    ("after", "left"), [(-3600, 795.0), (0, 795.0), (15, 780.0), (794.5, 0.5), (795, 0.0), (10**6, 0.0)]
)
def test_the_time_left_counts_from_the_report(after: float, left: float) -> None:
    now = NOW - timedelta(seconds=15) + timedelta(seconds=after)
    found = progress_of({"trainerStatus": REPORT}, now)
    assert found and (found.left, found.age) == (left, max(0, after))
    assert found.remaining_seconds == 795, "as it was reported"


@pytest.mark.parametrize("types", [("Succeeded",), ("Failed",), ("Running", "Suspended")])
def test_a_job_at_rest_has_a_percentage_and_no_time_left(types: tuple[str, ...]) -> None:
    found = seen({**state(*types), "trainerStatus": REPORT})
    assert found.progress and (found.progress.percent, found.progress.left) == (45, None)
    assert progress_cell(found) == "45%"
    assert "left" not in progress_text(found) and "reported 15s ago" in progress_text(found)
    assert progress_cell(seen({**state("Running"), "trainerStatus": REPORT})) == "45% ~13m"


@pytest.mark.parametrize("types", [("Running",), ("Succeeded",), ("Suspended",)])
@pytest.mark.parametrize("left_out", [None, *REPORT])
def test_a_report_grows_older_without_its_object(types: tuple[str, ...], left_out: str | None) -> None:
    report = {name: one for name, one in REPORT.items() if name != left_out}
    made = job({**state(*types), "trainerStatus": report, "rankStatus": RANKS})
    before, later = view.view(made, now=NOW), NOW + timedelta(minutes=5)
    assert view.aged(before, view.times_of(made, before.state), later) == view.view(made, now=later)


def test_plain_data_has_all_of_it() -> None:
    found = seen({**state("Running"), "trainerStatus": REPORT, "rankStatus": RANKS}).as_dict()
    for form in ("json", "yaml"):
        assert yaml.safe_load(structured(found, form))["progress"] == {
            "percent": 45,
            "remainingSeconds": 795,
            "updated": "2026-11-30T10:00:00Z",
            "metrics": REPORT["metrics"],
            "ranks": RANKS,
            "left": 780.0,
            "age": 15.0,
        }
    assert seen({}).as_dict()["progress"] is None


# --- the texts


@pytest.mark.parametrize(
    ("report", "cell", "text"),
    [
        (REPORT, "45% ~13m", "45%, 13m left, reported 15s ago; loss 0.2347, eval_accuracy 0.91"),
        ({"progressPercentage": 0}, "0%", "0%"),
        ({"progressPercentage": 100, "estimatedRemainingSeconds": 0}, "100%", "100%"),
        ({"progressPercentage": 99, "estimatedRemainingSeconds": 0}, "99% ~0s", "99%, 0s left"),
        ({"estimatedRemainingSeconds": 90}, "~90s", "90s left"),
        ({"lastUpdatedTime": REPORT["lastUpdatedTime"]}, "", "reported 15s ago"),
        ({"metrics": [{"name": "loss", "value": "3"}]}, "", "loss 3"),
        ({"metrics": [{"name": f"m{n}", "value": "1"} for n in range(9)]}, "",
         "m0 1, m1 1, m2 1, m3 1, m4 1, m5 1, m6 1, m7 1, 1 more"),
        ({"metrics": [{"name": "x" * 99, "value": "y" * 99}]}, "", f"{'x' * 57}... {'y' * 57}..."),
    ],
)  # fmt: skip
def test_the_cell_and_the_line(report: Any, cell: str, text: str) -> None:
    found = seen({**state("Running"), "trainerStatus": report})
    assert (progress_cell(found), progress_text(found)) == (cell, text)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (RANKS, SLOWEST),
        ({"reporting": 1}, "steps: 1 rank"),
        ({"medianStepSeconds": 0.01234}, "steps: median 0.0123 s"),
        ({"slowest": {"replica": "worker-3"}}, "slowest: worker-3"),
        ({"slowest": {"pod": "digits-worker-3", "stepSeconds": 2}, "reporting": 2},
         "slowest: digits-worker-3, 2 s a step (2 ranks)"),
    ],
)  # fmt: skip
def test_the_ranks(ranks: Any, text: str) -> None:
    assert progress_text(seen({"rankStatus": ranks})) == text


def test_a_filter_finds_it() -> None:
    found = seen({**state("Running"), "trainerStatus": REPORT})
    assert matches(found, "progress:45%") and not matches(found, "progress:46")


# --- anything

TIMES = ("2026-11-30T10:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999-12-31", "10:00")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(TIMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(max_size=8) | st.sampled_from(("\x1b[2J", "a\nb\r", "\u202e", "\ud800")) | ANYTHING
NUMBER = st.integers(-1, 101) | st.sampled_from((2**31 - 1, 2**31, 10**400, 1e308, -0.0, float("inf"))) | ANYTHING


def some(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional=fields) | ANYTHING


STATUS = some(
    trainerStatus=some(
        progressPercentage=NUMBER,
        estimatedRemainingSeconds=NUMBER,
        lastUpdatedTime=TEXT,
        metrics=st.lists(some(name=TEXT, value=TEXT), max_size=10) | ANYTHING,
    ),
    rankStatus=some(
        reporting=NUMBER,
        medianStepSeconds=NUMBER,
        slowest=some(replica=TEXT, pod=TEXT, node=TEXT, stepSeconds=NUMBER),
    ),
    conditions=st.sampled_from([state(one)["conditions"] for one in ("Running", "Succeeded", "Suspended")]),
)


@given(STATUS)
def test_any_status_is_shown_and_nothing_that_a_terminal_acts_on(status: Any) -> None:
    made = job(status)
    found = view.view(made, now=NOW)
    table = JobTable(wide=True, namespaces=True, colored=False)
    bar = io.StringIO()
    Bar(bar)(found)
    lines = [*described(found, made, [], []), *table.lines([found]), *bar.getvalue().splitlines()]
    assert all(line.isprintable() for line in lines)
    assert printable(progress_text(found)).isprintable()
    for form in ("json", "yaml"):
        shown = structured(found.as_dict(), form)
        assert all(line.isprintable() for line in shown.splitlines()) and shown.isascii()
    json.loads(structured(found.as_dict(), "json"), parse_constant=pytest.fail)
    assert view.aged(found, view.times_of(made, found.state), NOW) == found


# --- list


@pytest.fixture
def reported(cluster: Cluster) -> Cluster:
    cluster.job("a", status=running())
    cluster.job("b", status={**running(progressPercentage=7), **state("Succeeded")})
    cluster.job("c")
    return cluster


def test_the_list_has_a_column_where_a_job_reports(reported: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = run(capsys, "list")[1].splitlines()
    assert head.split() == ["NAME", "STATE", "READY", "GPUS", "RESTARTS", "QUEUE", "RUNNING", "PROGRESS", "AGE"]
    place = head.index("PROGRESS")
    assert [line[place : place + 8].strip() for line in lines] == ["45% ~13m", "7%", ""]
    assert "PROGRESS" not in run(capsys, "list", "--state", "Created")[1]
    assert "PROGRESS" in run(capsys, "list", "--state", "Created", "-o", "wide")[1]
    found = json.loads(run(capsys, "list", "-o", "json")[1])
    assert [one["progress"] and one["progress"]["percent"] for one in found] == [45, 7, None]


@pytest.mark.parametrize(("key", "names"), [("progress", ["c", "b", "a"]), ("-progress", ["a", "b", "c"])])
def test_it_sorts(reported: Cluster, capsys: pytest.CaptureFixture[str], key: str, names: list[str]) -> None:
    found = run(capsys, "list", "-o", "name", f"--sort-by={key}")[1]
    assert [line.rpartition("/")[2] for line in found.splitlines()] == names


def test_a_watched_list_gets_the_column_when_a_job_reports(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cluster.job("a")
    watch = Client.watch

    def ends(self: Client, *given: Any, **named: Any) -> Any:
        for number, change in enumerate(watch(self, *given, **named)):
            yield change
            if number == 1:
                raise KeyboardInterrupt
            cluster.fake.store("MODIFIED", PTJS, {**made, "status": running()})

    monkeypatch.setattr(Client, "watch", ends)
    lines = run(capsys, "list", "-w")[1].splitlines()
    assert ["PROGRESS" in line for line in lines] == [False, False, True, False]
    assert "45% ~13m" in lines[-1]


# --- one job


def test_get_and_describe_have_a_line(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    made = cluster.job("a", status={**running(ago=15), "rankStatus": RANKS})
    lines = run(capsys, "get", "a")[1].splitlines()
    assert len(lines) == 3 and lines[0].split()[-2:] == ["PROGRESS", "AGE"]
    for line, begin in ((lines[2], "Progress: "), (_line(run(capsys, "describe", "a")[1]), "Progress:   ")):
        assert line.startswith(f"{begin}45%, 1") and line.endswith(f"; loss 0.2347, eval_accuracy 0.91; {SLOWEST}")
    cluster.job("b", status=running())
    cluster.job("c")
    lines = run(capsys, "get", "a", "b", "c")[1].splitlines()
    assert [line.partition(":")[0] for line in lines[4:]] == [
        f"Progress of pytorchjobs.kubeflow.org/{name}" for name in "ab"
    ]
    assert json.loads(run(capsys, "get", "a", "-o", "json")[1])["progress"]["ranks"] == RANKS
    assert run(capsys, "get", "c")[1].count("\n") == 2 and not _line(run(capsys, "describe", "c")[1])
    shown = described(view.view(made, now=NOW), made, [], [])
    assert not [line for line in shown if len(line.splitlines()) > 1]


def test_a_line_has_no_control_characters(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = [{"name": "loss\n\x1b[2J", "value": "\u202e1"}]
    cluster.job("a", status=running(metrics=metrics))
    for command in ("get", "describe"):
        assert "loss\\n\\x1b[2J \\u202e1" in run(capsys, command, "a")[1]


def _line(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith("Progress")), "")


def test_the_whole_line() -> None:
    found = seen({**state("Running"), "trainerStatus": REPORT, "rankStatus": RANKS})
    assert progress_text(found) == SENTENCE


# --- wait


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_shows_it() -> None:
    found = seen({**state("Running"), "trainerStatus": REPORT})
    key = "pytorchjobs.kubeflow.org/digits Running 0/0"
    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        bar = Bar(stream)
        for one in (found, found, dataclasses.replace(found, progress=None)):
            bar(one)
    assert plain.getvalue() == f"{key} 45%\n{key}\n", "a change of the time left is no line"
    assert terminal.getvalue().split("\r\x1b[K")[1:3] == [f"[#########...........] {key} 45% ~13m"] * 2
    assert terminal.getvalue().endswith(f"[{'.' * 20}] {key}")


def test_submit_follows_it(cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "new"}, "spec": spec}
    file.write_text(yaml.safe_dump(manifest))
    original = cluster._watch  # noqa: SLF001

    def changes() -> None:
        cluster.fake.store("MODIFIED", PTJS, {**cluster.fake.objects[PTJS]["new"], "status": running()})
        cluster.end(cluster.fake.objects[PTJS]["new"])

    def watched(exchange: Any, plural: str) -> None:
        threading.Timer(0.05, changes).start()
        original(exchange, plural)

    cluster._watch = watched  # type: ignore[method-assign]  # noqa: SLF001
    code, _, err = run(capsys, "submit", "-f", str(file), "--watch")
    assert code == 0
    assert err.splitlines()[1] == "pytorchjobs.kubeflow.org/new Running 0/1 45%"


# --- a program that reports nothing, without RE2


def test_without_re2_the_line_names_the_extra(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    made = cluster.job("a", metadata={"annotations": {"dljob.operator/progress-pattern": r"(?P<percent>\d+)%"}})
    cluster.worker(made, 0).write(1, "45%")
    assert _line(run(capsys, "describe", "a")[1]) == (
        "Progress:   unknown: its pattern needs RE2: pip install 'dljob[progress]'"
    )
