"""The probes' endpoint."""

from __future__ import annotations

import ast
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import dljob_operator
from dljob_operator.engine.serving.health import Health
from dljob_operator.failed_check import FailedCheck


@pytest.fixture
def health() -> Iterator[Health]:
    made = Health("127.0.0.1:0")
    made.start()
    yield made
    made.stop()


def ask(health: Health, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{health.port}{path}", timeout=10) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def status(health: Health, path: str) -> int:
    return ask(health, path)[0]


def test_healthy_immediately_and_ready_once_every_check_says_so(health: Health) -> None:
    waits = [FailedCheck("a first list is not complete", "the first list of pods is not complete")]
    assert status(health, "/healthz") == 200
    assert ask(health, "/readyz") == (503, "the operator is starting; the operator's log says more\n")
    health.ready_checks += [lambda: "", lambda: next(iter(waits), "")]
    assert ask(health, "/readyz") == (503, "a first list is not complete; the operator's log says more\n")
    waits.clear()
    assert ask(health, "/readyz?verbose") == (200, "ok\n")
    assert status(health, "/") == 404


def test_without_an_address_nothing_is_served() -> None:
    made = Health("")
    made.start()
    assert (made.port, made.not_ready()) == (0, "the operator is starting")
    made.stop()


@pytest.mark.parametrize("address", ["6789x", "localhost:"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write :6789"):
        Health(address)


def test_a_thread_that_has_ended_is_reported_and_makes_kubernetes_restart_the_pod(health: Health) -> None:
    problems = ["", FailedCheck("a worker has ended", "the thread worker 1 has ended")]
    health.checks += [lambda: "", lambda: problems.pop(0)]
    assert status(health, "/healthz") == 200
    assert ask(health, "/healthz") == (503, "a worker has ended; the operator's log says more\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize(
    ("found", "check"),
    [
        (FailedCheck("a watch fails", "team/digits at https://10.0.0.1:6443: refused"), "a watch fails"),
        ("team/digits at https://10.0.0.1:6443: refused", "a check fails"),
    ],
    ids=["with the name of a check", "without one"],
)
def test_an_answer_names_the_check_alone(health: Health, path: str, found: str, check: str) -> None:
    (health.checks if path == "/healthz" else health.ready_checks).append(lambda: found)
    assert ask(health, path) == (503, f"{check}; the operator's log says more\n")


def test_the_names_of_checks_are_constants() -> None:
    """So an answer cannot have the name of a job or an error of the API server."""
    sources = Path(dljob_operator.__file__).parent.rglob("*.py")
    calls = [node for path in sources for node in ast.walk(ast.parse(path.read_text("utf-8"))) if _is_problem(node)]
    assert len(calls) >= 10
    assert [ast.unparse(call) for call in calls if not isinstance(call.args[0], ast.Constant)] == []


def _is_problem(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "FailedCheck"


def test_the_log_has_the_details_once_for_each_change(health: Health, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    problems: list[str] = []
    health.ready_checks.append(lambda: problems.pop(0))
    details = ["the first list of pods is not complete: refused", "pods could not be watched for 61 s: refused"]
    problems += [FailedCheck("a first list is not complete", details[0]), ""]
    problems += [
        FailedCheck("a watch fails", details[1]),
        FailedCheck("a watch fails", details[1].replace("61", "71")),
        "",
        "",
    ]
    answers = [status(health, path) for path in ("/readyz", "/healthz") * len(problems)]
    assert answers == [503, 200, 200, 200, 503, 200, 503, 200, 200, 200, 200, 200]
    logged = [(record.levelname, record.getMessage(), record.__dict__["dljob_fields"]) for record in caplog.records]
    assert logged == [
        ("INFO", "probe fails", {"path": "/readyz", "reason": details[0]}),
        ("INFO", "probe passes", {"path": "/readyz"}),
        ("WARNING", "probe fails", {"path": "/readyz", "reason": details[1]}),
        ("INFO", "probe passes", {"path": "/readyz"}),
    ]
    health.checks.append(lambda: "the thread worker 1 has ended")
    assert (status(health, "/healthz"), caplog.records[-1].levelname) == (503, "WARNING")


def test_a_stopped_endpoint_refuses_connections(health: Health) -> None:
    assert status(health, "/healthz") == 200
    port = health.port
    health.stop()
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10)
