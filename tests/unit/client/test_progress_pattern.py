"""How far a program is that reports nothing: by its log and a pattern, which a hostile tenant may have written."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("re2")
from dljob.logs import pattern as pattern_
from dljob.logs import progress as progress_
from dljob.logs.pattern import LONGEST, NoProgress, Pattern
from dljob.logs.progress import BYTES, LINES, log_progress
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_server import Exchange

from .conftest import PODS, Cluster, Log
from .test_cli import run
from .test_progress import running

PERCENT, STEPS = r"(?P<percent>[\d.]+)%", r"step (?P<done>\S+)/(?P<total>\S+)"


# --- the pattern


@pytest.mark.parametrize(
    ("pattern", "lines", "percent"),
    [
        (PERCENT, ["at 45%"], 45),
        (PERCENT, ["at 45%", "at 46.9%", "nothing"], 46),
        (PERCENT, ["at 45%", "at 101%"], 45),
        (PERCENT, ["at 100.0%"], 100),
        (PERCENT, ["none", ""], None),
        (PERCENT, [], None),
        (r"(?P<percent>[ \d]+)%", ["at  45%"], 45),
        (STEPS, ["step 3/8"], 37),
        (STEPS, ["step 1e3/2000"], 50),
        (STEPS, ["step 0/8"], 0),
        *((STEPS, [f"step {odd}"], None) for odd in ("3/0", "9/8", "-1/8", "nan/1", "1/inf", "3x/8", "1/" + "9" * 99)),
        (f"{PERCENT}|{STEPS}", ["step 3/8"], 37),
        (f"{STEPS} {PERCENT}", ["step 3/8 90%"], 90),
        (r"(?P<percent>é+|\d+)%", ["ééé 45%"], 45),
    ],
)
def test_the_last_line_that_has_a_percentage_counts(pattern: str, lines: list[str], percent: int | None) -> None:
    assert Pattern(pattern).percent_in(lines) == percent


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?P<percent>", r"is invalid: missing \): \(\?P<percent>"),
        (r"(?P<percent>\d+)(?=%)", r"is invalid: invalid perl operator: \(\?="),
        (r"(?P<percent>a)\1", "is invalid: invalid escape sequence"),
        (r"(?P<percent>\pL{1000})", "is invalid: pattern too large"),
        ("(?P<percent>a{100}{100})", "is invalid: "),
        ("(?P<percent>\ud800)", "is invalid: it is no text"),
        (r"\d+%", "has no group percent, and not both done and total"),
        (r"(?P<done>\d+)", "has no group percent, and not both done and total"),
        ("(?P<percent>a)" + "b" * LONGEST, "has more than 512 characters"),
    ],
)
def test_a_pattern_that_cannot_be_used(pattern: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoProgress, match=words):
        Pattern(pattern)
    assert capfd.readouterr() == ("", ""), "RE2 writes nothing to the terminal"


def test_a_pattern_may_have_all_characters_that_it_may() -> None:
    assert Pattern("(?P<percent>4.)|".ljust(LONGEST, "x")).percent_in(["45%"]) == 45


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$|(?P<percent>x)",
        "(?P<percent>(a|aa)+)$",
        "(?P<percent>(?:a?){900}a{90}x)",
        r"(?P<percent>(.*a){12}x)",
        "(?P<percent>[^x]{0,300}x)",
    ],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Python's re takes hours for the first one."""
    begun = time.process_time()
    for text in ("a" * (BYTES - 1) + "!", "é" * (BYTES // 2)):
        assert Pattern(pattern).percent_in([text]) is None
    assert time.process_time() - begun < 20


@given(st.text(max_size=20) | st.text(alphabet=r"(?P<percent>\d+)[]{}|*", max_size=30), st.lists(st.text(), max_size=3))
def test_any_pattern_gives_a_percentage_or_a_sentence(pattern: str, lines: list[str]) -> None:
    texts = [line.encode(errors="replace").decode() for line in lines]
    try:
        found = Pattern(pattern).percent_in(texts)
    except NoProgress as e:
        assert str(e).startswith("its pattern")
    else:
        assert found is None or 0 <= found <= 100


# --- the log


def job(cluster: Cluster, pattern: Any = PERCENT, **more: Any) -> dict[str, Any]:
    return cluster.job("a", metadata={"annotations": {progress_.ANNOTATION: pattern}}, **more)


def found(cluster: Cluster, made: dict[str, Any]) -> str:
    """What is said of a job; "" where nothing is."""
    result = log_progress(cluster.client().api, made, list(cluster.fake.objects.get(PODS, {}).values()))
    return result.sentence if result else ""


def logs_read(cluster: Cluster) -> list[str]:
    return [one.path.split("/")[-2] for one in cluster.requests if one.path.endswith("/log")]


def test_describe_shows_it(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    made = job(cluster)
    cluster.worker(made, 0).write(1, "epoch 1", "\x1b[32m45%\x1b[0m", "saved")
    cluster.worker(made, 1).write(1, "99%")
    assert "Progress:   45%, by the log of a-worker-0\n" in run(capsys, "describe", "a")[1]
    (request,) = (one for one in cluster.requests if one.path.endswith("/log"))
    assert request.query == {"container": "pytorch", "tailLines": str(LINES), "limitBytes": str(BYTES)}
    job(cluster, status=running())
    assert "by the log" not in run(capsys, "describe", "a")[1], "a report counts more"
    assert len(logs_read(cluster)) == 1


@pytest.mark.parametrize("pattern", [None, "", 5, ["x"], {}])
def test_without_a_pattern_no_log_is_read(cluster: Cluster, pattern: Any) -> None:
    made = job(cluster, pattern)
    cluster.worker(made, 0).write(1, "45%")
    assert found(cluster, made) == "" and not logs_read(cluster)
    for metadata in ({"annotations": [1]}, {"annotations": None}, [1]):
        assert log_progress(cluster.client().api, {**made, "metadata": metadata}, []) is None


def test_who_may_not_read_logs_reads_so(cluster: Cluster) -> None:
    made = job(cluster)
    cluster.worker(made, 0).write(1, "45%")

    def forbidden(exchange: Exchange) -> None:
        exchange.answer(b'{"reason": "Forbidden"}', 403)

    cluster.respond = forbidden  # type: ignore[method-assign]
    assert found(cluster, made) == "unknown: you may not get pods/log in the namespace team"


def test_why_it_is_unknown(cluster: Cluster) -> None:
    made = job(cluster)
    assert found(cluster, made) == "unknown: there is no log of worker-0"
    log = cluster.worker(made, 0, "waiting")
    assert found(cluster, made) == "unknown: there is no log of worker-0"
    cluster.container_is("a-worker-0", "running")
    log.write(1, "nothing")
    assert found(cluster, made) == "unknown: no line at the end of the log of a-worker-0 matches its pattern"
    before = len(logs_read(cluster))
    assert found(cluster, job(cluster, "(")) == "unknown: its pattern is invalid: missing ): ("
    assert len(logs_read(cluster)) == before, "no log is read for it"
    log.lines = [b"unable to retrieve container logs for containerd://1\n"]
    assert found(cluster, made).startswith("unknown: the log of a-worker-0 is gone: its node has removed it")
    log.status = 404
    assert found(cluster, made) == "unknown: the pod a-worker-0 is gone"
    log.status = 500
    assert found(cluster, made) == "unknown: because"


def test_a_node_that_does_not_answer_is_given_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_, "SECONDS", 0.3)
    made = job(cluster)
    cluster.worker(made, 0)

    def hangs(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.send(b"45%\n")
        exchange.closing.wait(20)

    cluster.respond = hangs  # type: ignore[method-assign]
    assert found(cluster, made) == "unknown: the log of a-worker-0 cannot be read within 0.3 s"


def test_only_the_end_of_the_log_is_read(cluster: Cluster) -> None:
    made = job(cluster)
    log = cluster.worker(made, 0)
    log.lines = [b"45%\n", *([b"nothing\n"] * LINES)]
    assert "no line at the end" in found(cluster, made)
    log.lines = [b"45%\n", *([b"nothing\n"] * (LINES - 1))]
    assert found(cluster, made) == "45%, by the log of a-worker-0"


def test_of_long_lines_the_last_ones_count(cluster: Cluster) -> None:
    """The API server cuts an answer at its end."""
    made = job(cluster)
    log = cluster.worker(made, 0)
    log.lines = [*([b"1%" + b"x" * 5000 + b"\n"] * 99), b"45%\n"]
    assert found(cluster, made) == "45%, by the log of a-worker-0"
    log.lines = [*([b"1%" + b"x" * 16000 + b"\n"] * 99), b"45%\n"]
    assert found(cluster, made) == "45%, by the log of a-worker-0"
    cluster.requests.clear()
    log.lines = [b"1%" + b"x" * BYTES, b"46%" + b"x" * BYTES + b"\n"]
    assert found(cluster, made) == "46%, by the log of a-worker-0"
    assert len(logs_read(cluster)) == 3


def test_an_answer_without_end_is_cut(cluster: Cluster) -> None:
    made = job(cluster)
    cluster.worker(made, 0)

    def endless(exchange: Exchange) -> None:
        exchange.begin_stream()
        while not exchange.closing.is_set():
            exchange.send(b"45%\n" * 1000)

    cluster.respond = endless  # type: ignore[method-assign]
    assert found(cluster, made) == "45%, by the log of a-worker-0"


def test_of_a_progress_bar_the_last_state_counts(cluster: Cluster) -> None:
    made = job(cluster)
    cluster.worker(made, 0).lines = [b"\r 1%|     |\r 45%|##   |\r\n"]
    assert found(cluster, made) == "45%, by the log of a-worker-0"


def test_bytes_that_are_no_text(cluster: Cluster) -> None:
    made = job(cluster)
    cluster.worker(made, 0).lines = [b"\xff\x00 45% \xc3\n"]
    assert found(cluster, made) == "45%, by the log of a-worker-0"


# --- rank 0


@pytest.mark.parametrize(
    ("plural", "field", "types", "first"),
    [
        ("pytorchjobs", "pytorchReplicaSpecs", ("Worker", "Master"), "master"),
        ("pytorchjobs", "pytorchReplicaSpecs", ("Worker",), "worker"),
        ("tfjobs", "tfReplicaSpecs", ("PS", "Worker", "Chief"), "chief"),
        ("tfjobs", "tfReplicaSpecs", ("PS", "Worker"), "worker"),
        ("mpijobs", "mpiReplicaSpecs", ("Worker", "Launcher"), "launcher"),
        ("tfjobs", "tfReplicaSpecs", ("PS",), "ps"),
    ],
)
def test_rank_0_is_the_first_replica(
    cluster: Cluster, plural: str, field: str, types: tuple[str, ...], first: str
) -> None:
    specs = {name: {"replicas": 2, "template": {}} for name in types}
    metadata = {"annotations": {progress_.ANNOTATION: PERCENT}}
    made = cluster.job("a", plural, spec={field: specs}, metadata=metadata)
    for type_ in types:
        for index in range(2):
            name = f"a-{type_.lower()}-{index}"
            pod = cluster.pod(made, name, containerStatuses=[{"name": "pytorch", "state": {"running": {}}}])
            labels = {"dljob.operator/replica-type": type_.lower(), "dljob.operator/replica-index": str(index)}
            pod["metadata"]["labels"] |= labels
            cluster.logs[f"{name}/pytorch"] = log_of(f"{45 if (type_.lower(), index) == (first, 0) else 1}%")
    assert found(cluster, made) == f"45%, by the log of a-{first}-0"


def test_of_the_pods_of_a_batch_job_the_newest_one_counts(cluster: Cluster) -> None:
    """They have no index: mpi-operator's launcher is tried again."""
    spec = {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 1}}}
    made = cluster.job("a", "mpijobs", spec=spec, metadata={"annotations": {progress_.ANNOTATION: PERCENT}})
    for name, created in (("a-launcher-x", "2026-11-29T10:00:09Z"), ("a-launcher-y", "2026-11-29T10:00:01Z")):
        pod = cluster.pod(made, name, containerStatuses=[{"name": "pytorch", "state": {"running": {}}}])
        pod["metadata"] |= {"creationTimestamp": created}
        pod["metadata"]["labels"]["dljob.operator/replica-type"] = "launcher"
        cluster.logs[f"{name}/pytorch"] = log_of("45%" if name.endswith("x") else "1%")
    assert found(cluster, made) == "45%, by the log of a-launcher-x"


def log_of(text: str) -> Log:
    return Log([f"{text}\n".encode()])


def test_the_pattern_is_kept_small() -> None:
    assert pattern_._MEMORY < 1024 * 1024, "RE2 keeps 128 compiled patterns"  # noqa: SLF001
