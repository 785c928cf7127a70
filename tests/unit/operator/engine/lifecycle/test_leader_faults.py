"""A leader stops before another may begin, whatever its requests, its process or its clocks do."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared import boottime as clock
from ansible_collections.dljob.operator.plugins.module_utils.shared import connection
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import VARIABLE, WriteDeadline
from kubernetes import client
from support import service_account
from support.lease_server import LeaseServer, held_by, lease_server
from support.polling import until
from support.scripted_server import Exchange

from dljob_operator import cli, run, wiring
from dljob_operator.engine.kube import KubeApi, NotLeading
from dljob_operator.engine.lifecycle import leader
from dljob_operator.engine.lifecycle.fence import FencedRunner
from dljob_operator.engine.lifecycle.leader import LeaderElector, LeaseName, LeaseTimings
from dljob_operator.runner import RunEnding, RunRequest, RunResult

SHORT = LeaseTimings(duration=8.0, deadline=2.0, period=0.1)
STEADY = LeaseTimings(duration=4.5, deadline=3.0, period=0.1)
"""For leaders that must not lose the Lease on a machine that is busy."""
PATIENT = LeaseTimings(duration=60, deadline=40, period=0.1)
Fault = Callable[[Exchange], None]


class Candidate:
    """An elector, its loss, and the API with which its operator writes."""

    def __init__(self, server: LeaseServer, name: str = "me", timings: LeaseTimings = SHORT, api: Any = None) -> None:
        self.server = server
        self.lost = threading.Event()
        self.api: KubeApi = api or server.connect()
        self.elector = LeaderElector(self.api, LeaseName("ns"), name, self.lost.set, timings)
        self.operator = self.api.writing_while(self.elector.seconds_left)

    @property
    def elected(self) -> threading.Event:
        return self.elector.elected


@contextlib.contextmanager
def started(candidate: Candidate) -> Iterator[Candidate]:
    candidate.elector.start()
    try:
        yield candidate
    finally:
        candidate.server.fault = None
        candidate.elector.stop()


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    with lease_server() as made:
        yield made


@pytest.fixture
def leading(server: LeaseServer) -> Iterator[Candidate]:
    with started(Candidate(server)) as made:
        assert made.elected.wait(10)
        yield made


class Jump:
    """A clock that a test sets forward or back."""

    def __init__(self, real: Callable[[], float]) -> None:
        self._real = real
        self.by = 0.0

    def __call__(self) -> float:
        return self._real() + self.by


@pytest.fixture
def suspended(monkeypatch: pytest.MonkeyPatch) -> Jump:
    """`by` is how long the machine was suspended: only `boottime` counts that."""
    jump = Jump(clock.boottime)
    monkeypatch.setattr(leader, "boottime", jump)
    return jump


def answers(content: Any, status: int = 200) -> Fault:
    return lambda exchange: exchange.answer(content, status)


def trickles(exchange: Exchange) -> None:
    """Each byte arrives before any timeout."""
    exchange.begin_stream()
    while not exchange.closing.wait(0.05):
        exchange.send(b" ")


MALFORMED = {
    "no JSON": b"<html>a proxy</html>",
    "not UTF-8": b"\xff\xfe",
    "no object": [],
    "nothing": {},
    "no metadata": {"spec": {"holderIdentity": "me"}},
    "metadata is null": {"metadata": None, "spec": {"holderIdentity": "other"}},
    "no version": {"metadata": {}, "spec": {"holderIdentity": "other"}},
    "spec is text": {"metadata": {"resourceVersion": "1"}, "spec": "text"},
    "duration is text": {
        "metadata": {"resourceVersion": "1"},
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": "six"},
    },
    "transitions is text": {
        "metadata": {"resourceVersion": "1"},
        "spec": {"holderIdentity": "", "leaseTransitions": "many"},
    },
}
FAULTS: dict[str, Fault] = {
    "hangs": lambda exchange: exchange.hang(),
    "trickles": trickles,
    "unauthorized": answers({"reason": "Unauthorized"}, 401),
    "forbidden": answers({"reason": "Forbidden"}, 403),
    "unavailable": answers({"message": "etcd has no leader"}, 503),
    **{name: answers(content) for name, content in MALFORMED.items()},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_leader_that_cannot_renew_stops_writing_before_another_may_begin(
    server: LeaseServer, leading: Candidate, fault: Fault
) -> None:
    leading.operator.request("POST", "/writes", {})
    server.fault = fault
    began = time.monotonic()
    assert leading.lost.wait(10)
    assert time.monotonic() - began < SHORT.duration
    with pytest.raises(NotLeading, match="POST /writes was not sent: this operator is no longer the leader"):
        leading.operator.request("POST", "/writes", {})
    assert len(server.written("/writes")) == 1
    assert leading.operator.get("/reads") == {}  # only writes do harm


def test_a_leader_survives_a_renewal_that_hangs(server: LeaseServer) -> None:
    """A request that got the whole deadline cost the leadership by itself."""
    with started(Candidate(server, timings=STEADY)) as candidate:
        assert candidate.elected.wait(10)
        hung, renewed = threading.Event(), threading.Semaphore(0)

        def once(exchange: Exchange) -> None:
            if not hung.is_set():
                hung.set()
                return exchange.hang()
            exchange.answer(*server.result(exchange))
            return None if exchange.method == "GET" else renewed.release()

        server.fault = once
        for _ in range(2):
            assert renewed.acquire(timeout=10)
        assert candidate.elector.leads()
        assert not candidate.lost.is_set()


def test_the_election_shares_no_connection_with_the_operator(server: LeaseServer) -> None:
    """Another attempt could get the next one that a load balancer has forgotten."""
    candidate = Candidate(server)
    for _ in range(2):
        assert candidate.elector.attempt() is None
        candidate.operator.get("/reads")
    election = {one.connection for one in server.requests if one.path.endswith("/leases/dljob-operator")}
    assert election.isdisjoint(one.connection for one in server.requests if one.path == "/reads")


@pytest.mark.parametrize("answer", [{}, held_by("other"), {"spec": "text"}], ids=["nothing", "another", "nonsense"])
def test_a_write_that_the_server_did_not_confirm_renews_nothing(server: LeaseServer, answer: Any) -> None:
    """A standby that sees no change takes the Lease, whatever a broken proxy told the leader."""
    candidate = Candidate(server)
    server.write(held_by(""))
    server.fault = lambda exchange: exchange.answer(server.lease if exchange.method == "GET" else answer)
    assert candidate.elector.attempt() is not None
    assert not candidate.elected.is_set()


def test_a_leader_that_was_replaced_stops_at_once(server: LeaseServer) -> None:
    with started(Candidate(server, timings=PATIENT)) as candidate:
        assert candidate.elected.wait(10)
        server.write(held_by("other"))
        assert candidate.lost.wait(10)
        with pytest.raises(NotLeading):
            candidate.operator.request("POST", "/writes", {})
        assert server.holder == "other"


def test_an_expired_leader_does_not_renew_although_nobody_took_over(
    server: LeaseServer, leading: Candidate, suspended: Jump
) -> None:
    """Nobody knows who led meanwhile: a Lease that was released again looks like one that nobody took."""
    server.fault = lambda exchange: exchange.hang()
    assert leading.lost.wait(10)
    server.fault = None
    version = server.lease and server.lease["metadata"]["resourceVersion"]
    assert leading.elector.attempt() == ("leader election ended", {})
    assert server.lease
    assert server.lease["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_standby_survives_nonsense_and_takes_over_later(server: LeaseServer, content: Any) -> None:
    asked = threading.Semaphore(0)

    def nonsense(exchange: Exchange) -> None:
        exchange.answer(content)
        asked.release()

    server.fault = nonsense
    with started(Candidate(server)) as candidate:
        for _ in range(3):
            assert asked.acquire(timeout=10)
        assert (candidate.elected.is_set(), candidate.elector.problem()) == (False, "")
        server.fault = None
        assert candidate.elected.wait(10)


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_leader_ends_although_its_lease_is_nonsense(server: LeaseServer, content: Any) -> None:
    with started(Candidate(server)) as candidate:
        assert candidate.elected.wait(10)
        server.fault = answers(content)
        candidate.elector.stop()
        assert server.lease and server.lease["spec"]["holderIdentity"] == "me"


# Tokens


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The token file of the pod."""
    monkeypatch.setattr(connection, "CREDENTIALS_TTL", 0.05)
    return service_account.mount(monkeypatch, tmp_path, "old", ("127.0.0.1", 443))


@pytest.fixture
def in_pod(server: LeaseServer, token: Path, monkeypatch: pytest.MonkeyPatch) -> KubeApi:
    """Connected as in a pod. The server speaks no TLS."""
    plain = client.ApiClient

    def without_tls(configuration: client.Configuration) -> client.ApiClient:
        configuration.host, configuration.ssl_ca_cert = server.url, None
        return plain(configuration)

    monkeypatch.setattr(client, "ApiClient", without_tls)
    return KubeApi.connect(None)


def test_a_leader_whose_token_is_rejected_reads_the_new_one(server: LeaseServer, in_pod: KubeApi, token: Path) -> None:
    rejected = threading.Event()

    def only_new(exchange: Exchange) -> None:
        if exchange.token == "Bearer new":
            return exchange.answer(*server.result(exchange))
        exchange.answer({"message": "Unauthorized"}, 401)
        return rejected.set()

    with started(Candidate(server, api=in_pod, timings=LeaseTimings(8, 4, 0.1))) as candidate:
        assert candidate.elected.wait(10)
        assert server.requests[-1].token == "Bearer old"
        server.fault = only_new
        assert rejected.wait(10)
        version = server.lease and server.lease["metadata"]["resourceVersion"]
        token.write_text("new\n")
        assert not candidate.lost.wait(4.5)
        assert server.lease
        assert server.lease["metadata"]["resourceVersion"] != version
        assert candidate.elector.leads()


def test_a_token_file_that_is_missing_for_a_moment_keeps_the_old_token(
    server: LeaseServer,
    in_pod: KubeApi,
    token: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "CREDENTIALS_TTL", 0.0)
    token.unlink()
    in_pod.get("/reads")
    assert "cannot read the token" in caplog.text
    token.write_text("")
    in_pod.get("/reads")
    assert [one.token.lower() for one in server.requests] == ["bearer old", "bearer old"]


# Stopped processes and clocks


STOPPED = """
import os, signal, sys, threading
from kubernetes import client
from dljob_operator.engine.kube import KubeApi, NotLeading
from dljob_operator.engine.lifecycle.leader import LeaderElector, LeaseName, LeaseTimings
api = KubeApi(client.ApiClient(client.Configuration(host=sys.argv[1])))
lost = threading.Event()
elector = LeaderElector(api, LeaseName("ns"), "me", lost.set, LeaseTimings(4.5, 3.0, 0.1))
operator = api.writing_while(elector.seconds_left)
elector.start()
assert elector.elected.wait(20)
operator.request("POST", "/writes", {"at": "first"})
os.kill(os.getpid(), signal.SIGSTOP)
try:  # the first thing that it does when it continues
    operator.request("POST", "/writes", {"at": "late"})
except NotLeading:
    print("refused", flush=True)
assert lost.wait(10)
print("lost", flush=True)
"""


def test_a_process_that_was_stopped_writes_nothing_when_it_continues(server: LeaseServer) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, server.url], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        with started(Candidate(server, "standby", STEADY)) as standby:
            assert standby.elected.wait(20)
            process.send_signal(signal.SIGCONT)
            output, _ = process.communicate(timeout=30)
            assert output.split() == ["refused", "lost"]
            assert [one.body for one in server.written("/writes")] == [{"at": "first"}]
            assert (server.holder, standby.elector.leads()) == ("standby", True)
    finally:
        process.kill()
        process.wait()


LEADER = """
import os, signal, sys
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.leader import LeaderElector, LeaseName, LeaseTimings
api = KubeApi(client.ApiClient(client.Configuration(host=sys.argv[1])))
elector = LeaderElector(api, LeaseName("ns"), "me", lambda: None, LeaseTimings(4.5, 3.0, 0.1))
elector.on_renewed = WriteDeadline.of_environment(os.environ).extend
elector.start()
signal.pause()
"""
WORKER = """
import os, sys, threading
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client
deadline = WriteDeadline.of_environment(os.environ)
api = RestClient(client.ApiClient(client.Configuration(host=sys.argv[1])), sys.argv[2], deadline)
while True:
    try:
        api.request("POST", "/worker", {})
    except ApiError as error:
        print(error.reason, api.request("GET", "/reads"))
        break
    threading.Event().wait(0.02)
"""


@contextlib.contextmanager
def process_of(script: str, *arguments: str, environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_worker_of_a_leader_that_was_stopped_writes_nothing_after_the_deadline(
    server: LeaseServer, tmp_path: Path
) -> None:
    """The leader cannot end it: the worker itself must stop before another operator may begin."""
    path = tmp_path / "deadline"
    deadline = WriteDeadline(path, create=True)
    environ = {**os.environ, VARIABLE: str(path)}
    with process_of(LEADER, server.url, environ=environ) as leading:
        until(lambda: deadline.seconds_left > 0)
        with process_of(WORKER, server.url, str(tmp_path), environ=environ) as worker:
            until(lambda: bool(server.written("/worker")))
            leading.send_signal(signal.SIGSTOP)
            with started(Candidate(server, "standby", STEADY)) as standby:
                output, _ = worker.communicate(timeout=60)
                assert output.split() == ["NotLeading", "{}"]
                assert standby.elected.wait(60)
    writes = [one for one in server.requests if one.method != "GET"]
    taken = next(n for n, one in enumerate(writes) if (one.body.get("spec") or {}).get("holderIdentity") == "standby")
    assert not any(one.path == "/worker" for one in writes[taken:])


def test_a_leader_of_a_machine_that_was_suspended_gives_up(server: LeaseServer, suspended: Jump) -> None:
    """The monotonic clock of Linux stands still meanwhile."""
    with started(Candidate(server, timings=PATIENT)) as candidate:
        assert candidate.elected.wait(10)
        assert candidate.elector.leads()
        suspended.by = PATIENT.deadline
        assert not candidate.elector.leads()
        assert candidate.lost.wait(10)


def test_the_clock_counts_the_time_for_which_the_machine_is_suspended() -> None:
    assert abs(clock.boottime() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 5


@pytest.mark.parametrize("by", [3600.0, -3600.0], ids=["forward", "back"])
def test_setting_the_time_of_day_changes_nothing(
    server: LeaseServer, monkeypatch: pytest.MonkeyPatch, by: float
) -> None:
    jump = Jump(time.time)
    monkeypatch.setattr(time, "time", jump)
    monkeypatch.setattr(leader, "datetime", _Datetime(jump))
    with started(Candidate(server, timings=STEADY)) as leading:
        assert leading.elected.wait(10)
        with started(Candidate(server, "standby", STEADY)) as standby:
            jump.by = by
            assert not leading.lost.wait(1.5)
            assert not standby.elected.is_set()
            server.fault = _hangs_for("me", server)
            assert leading.lost.wait(10)
            assert standby.elected.wait(10)
            assert not leading.elector.leads()


class _Datetime:
    """`datetime` with the time of day of a test."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self, zone: Any) -> Any:
        return datetime.datetime.fromtimestamp(self._now(), zone)


def _hangs_for(holder: str, server: LeaseServer) -> Fault:
    def fault(exchange: Exchange) -> None:
        if exchange.method == "PUT" and exchange.body["spec"]["holderIdentity"] == holder:
            exchange.hang()
        else:
            exchange.answer(*server.result(exchange))

    return fault


def test_a_standby_counts_from_the_response_and_not_from_its_request(server: LeaseServer, suspended: Jump) -> None:
    """The holder may have renewed the Lease until the server read it for a slow request."""
    candidate = Candidate(server, "standby", LeaseTimings(duration=10, deadline=8, period=0.1))
    server.write(held_by("other", leaseDurationSeconds=10))

    def slow(exchange: Exchange) -> None:
        suspended.by += 7
        exchange.answer(*server.result(exchange))

    server.fault = slow
    candidate.elector.attempt()
    server.fault = None
    suspended.by += 5  # 12 s after the first request, and 5 s after its response
    candidate.elector.attempt()
    assert server.holder == "other"
    suspended.by += 6
    candidate.elector.attempt()
    assert server.holder == "standby"


# Readiness


def test_a_standby_is_ready_once_it_has_read_the_lease(
    server: LeaseServer, suspended: Jump, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.write(held_by("other", leaseDurationSeconds=1000))
    candidate = Candidate(server, "standby")
    assert candidate.elector.not_ready() == "the Lease ns/dljob-operator was not read yet"
    candidate.elector.attempt()
    assert candidate.elector.not_ready() == ""
    server.fault = answers({"message": "forbidden"}, 403)
    suspended.by = 61
    candidate.elector.attempt()
    assert "the Lease ns/dljob-operator could not be read for 61 s" in candidate.elector.not_ready()


def test_a_standby_that_may_not_read_the_lease_is_never_ready(server: LeaseServer) -> None:
    """A rolling update then keeps the old leader."""
    server.fault = answers({"message": "leases is forbidden"}, 403)
    with started(Candidate(server)) as candidate:
        deadline = time.monotonic() + 10
        while "forbidden" not in candidate.elector.not_ready() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert candidate.elector.not_ready() == "the Lease ns/dljob-operator was not read yet: leases is forbidden"


# The operator's end


class Runner:
    def __init__(self) -> None:
        self.changes = ChangeCounter.create()
        self.runs = 0
        self.closed = threading.Event()
        self.prepared: list[str] = []
        self.prepare = self.prepared.append

    def run(self, request: RunRequest) -> RunResult:
        self.runs += 1
        return RunResult(RunEnding.COMPLETED)

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        yield self.run(request)

    def start(self) -> None: ...

    def wait_ready(self, timeout: float | None = None) -> None: ...

    def problem(self) -> str:
        return ""

    def close(self) -> None:
        self.closed.set()


def test_a_former_leader_starts_no_runs() -> None:
    leads, runner = [True], Runner()
    fenced = FencedRunner(runner, lambda: leads[0])
    assert fenced.changes is runner.changes
    fenced.prepare("echo")
    assert runner.prepared == ["echo"]
    request = RunRequest("v1 Job", {}, [], None, 1.0)
    assert [fenced.run(request).ending, *(one.ending for one in fenced.results(request))] == [RunEnding.COMPLETED] * 2
    leads[0] = False
    ended = [fenced.run(request), *fenced.results(request)]
    assert [(one.ending, one.message) for one in ended] == [
        (RunEnding.CANCELLED, "this operator is no longer the leader")
    ] * 2
    assert runner.runs == 2
    fenced.close()
    assert runner.closed.is_set(), "the runs that it has started end"


def test_the_loss_kills_the_runs_and_ends_the_operator_with_an_error(
    server: LeaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, deadline = Runner(), tmp_path / "deadline"
    graces: list[float] = []
    left: list[float] = []

    class Controller:
        """Another process takes the Lease as soon as the runs may begin."""

        def __init__(self, *given: Any, **more: Any) -> None: ...

        def start(self) -> None:
            assert server.lease is not None
            left.append(WriteDeadline(deadline).seconds_left)
            assert server.lease["spec"]["leaseDurationSeconds"] == 6
            server.write(held_by("other", leaseDurationSeconds=1000))

        def stop(self, grace: float) -> None:
            graces.append(grace)

        def wait_ready(self) -> tuple[list[Any], list[Any]]:
            return [], []

        def problem(self) -> str:
            return ""

        not_ready = problem

    api = server.connect()
    monkeypatch.setattr(KubeApi, "connect", lambda kubeconfig: api)
    monkeypatch.setattr(wiring, "RunnerClient", lambda *given, **more: runner)
    monkeypatch.setattr(run, "Controller", Controller)
    arguments = ["--leader-elect", "--leader-election-namespace", "ns", "--leader-elect-renew-deadline", "3s"]
    engine = run.EmbeddedEngine(cli.parse(["run", *arguments]), run.Stopping(), deadline)
    with pytest.raises(run.LeadershipLost, match="another operator is the leader now"):
        engine.run()
    assert runner.closed.wait(10)
    assert 0 < left[0] <= 3
    assert WriteDeadline(deadline).seconds_left <= 0
    assert graces == [0]
