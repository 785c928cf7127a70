"""The probes' endpoint."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from dljob_operator.engine.health import Health


@pytest.fixture
def health() -> Iterator[Health]:
    made = Health("127.0.0.1:0")
    made.start()
    yield made
    made.stop()


def status(health: Health, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{health.port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_healthy_immediately_and_ready_once_every_check_says_so(health: Health) -> None:
    waits = ["the first list of pods is not complete"]
    assert (status(health, "/healthz"), status(health, "/readyz")) == (200, 503)
    health.ready_checks += [lambda: "", lambda: waits[0]]
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(f"http://127.0.0.1:{health.port}/readyz", timeout=10)
    assert failed.value.read() == b"the first list of pods is not complete\n"
    waits[0] = ""
    assert status(health, "/readyz?verbose") == 200
    assert status(health, "/") == 404


@pytest.mark.parametrize("address", ["", "6789x", "localhost:"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write :6789"):
        Health(address)


def test_a_thread_that_has_ended_is_reported_and_makes_kubernetes_restart_the_pod(health: Health) -> None:
    problems = ["", "the thread worker 1 has ended"]
    health.checks += [lambda: "", lambda: problems.pop(0)]
    assert status(health, "/healthz") == 200
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(f"http://127.0.0.1:{health.port}/healthz", timeout=10)
    assert (failed.value.code, failed.value.read()) == (503, b"the thread worker 1 has ended\n")


def test_a_stopped_endpoint_refuses_connections(health: Health) -> None:
    assert status(health, "/healthz") == 200
    port = health.port
    health.stop()
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10)
