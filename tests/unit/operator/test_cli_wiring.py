"""What `dljob-operator run` connects with what: the probes, the fences of a leader, the options of the metrics.

The parts that would need a cluster or a fork server are fakes; the HTTP servers and the fences are real.
"""

from __future__ import annotations

import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import endpoint_of
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import VARIABLE as WRITE_DEADLINE
from kubernetes import client
from support.certificates import write_certificate
from support.history import ended
from support.polling import until

from dljob_operator import cli, run, wiring
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, NotLeading
from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import PodIdentity, Reporter
from dljob_operator.engine.serving.health import Health
from dljob_operator.engine.serving.progress.identity import Identities
from dljob_operator.engine.serving.progress.service import ProgressService
from dljob_operator.failed_check import FailedCheck
from dljob_operator.history.queries import History
from dljob_operator.runner import RunEnding, RunRequest, RunResult
from dljob_operator.runner.client import RunnerError


class Part:
    """A part of the operator whose `problem` a test sets. `made` has the parts of the test."""

    made: ClassVar[dict[type[Part], Part]] = {}

    def __init__(self, *given: Any, **more: Any) -> None:
        self.given, self.more = given, more
        self.trouble = self.unready = ""
        self.started = threading.Event()
        self.made[type(self)] = self

    def start(self) -> None:
        self.started.set()

    def stop(self, *grace: float) -> None: ...

    def close(self) -> None: ...

    def problem(self) -> str:
        return self.trouble

    def not_ready(self) -> str:
        return self.unready


class Runner(Part):
    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.changes = ChangeCounter.create()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Raise only for the probe, which waits 0 seconds: the operator itself waits without a limit and would end."""
        if self.trouble and timeout is not None:
            raise RunnerError(self.trouble)

    def run(self, request: RunRequest) -> RunResult:
        return RunResult(RunEnding.COMPLETED)

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        yield self.run(request)


class Informers:
    """Knows one pod, and keeps what it reports."""

    progress = None

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def reporter_of(self, pod: PodIdentity) -> Reporter | None:
        return Reporter("j", "team", "TFJob", "digits", pod.uid, "worker-0", "n", is_first=True)

    def report(self, given: Reporter, report: Report) -> None:
        self.reports.append(report)

    def report_lost(self, address: str) -> None:
        """Nothing is lost here."""


class Controller(Part):
    informers = Informers()

    def wait_ready(self) -> tuple[list[Any], list[Any]]:
        return [], []


class Elector(Part):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.elected = threading.Event()
        self.leading = True

    def leads(self) -> bool:
        return self.leading

    def seconds_left(self) -> float:
        return 3.0 if self.leads() else 0.0


class Operator:
    """`dljob-operator run` with `arguments`, on a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._stopping = run.Stopping()
        self._thread: threading.Thread | None = None
        self._folder = folder
        self.healths: list[Health] = []
        self.servers: list[Any] = []
        configuration = client.Configuration()
        configuration.host = "http://127.0.0.1:1"  # where nothing answers
        api = KubeApi(client.ApiClient(configuration))
        monkeypatch.setattr(KubeApi, "connect", lambda kubeconfig: api)
        monkeypatch.setattr(Part, "made", {})
        monkeypatch.setattr(wiring, "RunnerClient", Runner)
        monkeypatch.setattr(run, "Controller", Controller)
        monkeypatch.setattr(run, "LeaderElector", Elector)
        self._record(monkeypatch, "Health", self.healths)
        self._record(monkeypatch, "serve_metrics", self.servers)

    def _record(self, monkeypatch: pytest.MonkeyPatch, name: str, made: list[Any]) -> None:
        real = getattr(run, name)

        def making(*given: Any) -> Any:
            made.append(real(*given))
            return made[-1]

        monkeypatch.setattr(run, name, making)

    def run(self, *arguments: str) -> None:
        options = cli.parse(["run", "--health-probe-bind-address", "127.0.0.1:0", *arguments])
        deadline = self._folder / "write-deadline" if options.leader_elect else None
        engine = run.EmbeddedEngine(options, self._stopping, deadline)
        self._thread = threading.Thread(target=engine.run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)
            assert not self._thread.is_alive()
        for server in self.servers:
            if server is not None:
                server.stop()

    def part(self, kind: type[Part]) -> Any:
        """The part, once it was started."""
        until(lambda: kind in Part.made)
        assert Part.made[kind].started.wait(10)
        return Part.made[kind]

    def healthz(self) -> tuple[int, str]:
        return self.probe("healthz")

    def probe(self, path: str) -> tuple[int, str]:
        until(lambda: bool(self.healths))
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.healths[0].port}/{path}", timeout=10) as answer:
                return answer.status, answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode().strip()


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Operator]:
    made = Operator(monkeypatch, tmp_path)
    yield made
    made.end()


def reports(operator: Operator, kinds: Sequence[type[Part]]) -> None:
    """Assert that /healthz fails exactly while one of the parts has a problem."""
    until(lambda: operator.healthz() == (200, "ok"))
    for kind in kinds:
        part, text = operator.part(kind), f"the {kind.__name__} is stuck"
        part.trouble = FailedCheck(text, "details")
        said = f"{text}; the operator's log says more"
        until(lambda said=said: operator.healthz() == (503, said))  # the last checks are added after the start
        part.trouble = ""
        assert operator.healthz() == (200, "ok")


def test_the_liveness_of_a_standby_has_its_elector_and_its_runner(operator: Operator) -> None:
    operator.run("--leader-elect")
    operator.part(Elector)
    reports(operator, [Elector, Runner])
    assert Controller not in Part.made


@pytest.mark.parametrize(("arguments", "lease"), [([], "dljob-operator"), (["--leader-election-id", "b"], "b")])
def test_the_lease_of_a_shard(operator: Operator, arguments: list[str], lease: str) -> None:
    operator.run("--leader-elect", "--leader-election-namespace", "ops", *arguments)
    assert str(operator.part(Elector).given[1]) == f"ops/{lease}"


def test_the_liveness_of_a_leader_has_all_its_parts(operator: Operator) -> None:
    operator.run("--leader-elect")
    operator.part(Elector).elected.set()
    operator.part(Controller)
    reports(operator, [Elector, Runner, Controller])


def test_the_liveness_of_the_only_operator_has_all_its_parts(operator: Operator) -> None:
    operator.run()
    reports(operator, [Runner, Controller])
    assert Elector not in Part.made


def test_it_is_not_ready_while_ansible_is_not_loaded(operator: Operator) -> None:
    operator.run()
    until(lambda: operator.probe("readyz") == (200, "ok"))
    operator.part(Runner).trouble = "no module named ansible in /opt/venv"
    assert operator.probe("readyz") == (503, "Ansible is not loaded; the operator's log says more")


def test_of_a_candidate_the_probe_says_first_that_ansible_is_not_loaded(operator: Operator) -> None:
    operator.run("--leader-elect")
    until(lambda: Elector in Part.made and operator.part(Elector).started.is_set())
    operator.part(Elector).unready = FailedCheck("the Lease was not read yet", "timed out")
    assert operator.probe("readyz") == (503, "the Lease was not read yet; the operator's log says more")
    operator.part(Runner).trouble = "no module named ansible in /opt/venv"
    assert operator.probe("readyz") == (503, "Ansible is not loaded; the operator's log says more")


def test_a_deposed_leader_neither_writes_nor_starts_runs(operator: Operator) -> None:
    operator.run("--leader-elect")
    elector = operator.part(Elector)
    elector.elected.set()
    _, api, runner, _ = operator.part(Controller).given
    request = RunRequest("echo", {})

    def attempts() -> list[object]:
        with pytest.raises(ApiConnectionError) as refused:
            api.request("POST", "/api/v1/namespaces/team/pods", {})
        endings = [runner.run(request).ending, *(one.ending for one in runner.results(request))]
        return [type(refused.value), *endings]

    assert attempts() == [ApiConnectionError, RunEnding.COMPLETED, RunEnding.COMPLETED], "the write was sent"
    elector.leading = False
    assert attempts() == [NotLeading, RunEnding.CANCELLED, RunEnding.CANCELLED]


def test_the_workers_of_a_leader_know_its_deadline(operator: Operator, tmp_path: Path) -> None:
    operator.run("--leader-elect")
    elector = operator.part(Elector)
    _, _, environ = operator.part(Runner).given
    assert environ[WRITE_DEADLINE] == str(tmp_path / "write-deadline")
    before = (tmp_path / "write-deadline").read_bytes()
    elector.on_renewed(4711.0)
    assert (tmp_path / "write-deadline").read_bytes() != before


def test_without_an_election_nothing_is_fenced(operator: Operator) -> None:
    operator.run()
    assert WRITE_DEADLINE not in operator.part(Runner).given[2]
    _, api, runner, _ = operator.part(Controller).given
    assert runner is operator.part(Runner)
    with pytest.raises(ApiConnectionError) as failed:
        api.request("POST", "/api/v1/namespaces/team/pods", {})
    assert type(failed.value) is ApiConnectionError


def test_the_workers_know_where_programs_report_and_the_leader_listens_there(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: list[ProgressService] = []

    class Recorded(ProgressService):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            services.append(self)

    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    monkeypatch.setattr(run, "ProgressService", Recorded)
    monkeypatch.setattr(Identities, "of", lambda self, authorization: PodIdentity("team", "p"))
    address = ["--progress-bind-address", "127.0.0.1:0", "--progress-url", "https://127.0.0.1:1"]
    operator.run("--leader-elect", "--progress", "on", *address)
    elector = operator.part(Elector)
    told = endpoint_of(operator.part(Runner).given[2])
    assert told is not None
    assert (told.url, told.ranks) == ("https://127.0.0.1:1/progress", "Rank0")
    (service,) = services
    assert not service.serves, "a standby knows no jobs"
    elector.elected.set()
    settings = operator.part(Controller).given[3]
    assert settings.progress
    until(lambda: service.serves)
    trusting = ssl.create_default_context(cadata=told.authority)
    body = b'{"trainerStatus": {"progressPercentage": 45}}'
    asked = urllib.request.Request(f"https://127.0.0.1:{service.port}/progress", body)
    with urllib.request.urlopen(asked, timeout=10, context=trusting) as answer:
        assert answer.status == 200
    assert [one.percent for one in Controller.informers.reports] == [45]
    operator.end()
    assert not service.serves


def test_a_port_that_is_in_use_costs_the_reports_and_not_the_jobs(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        operator.run("--progress", "on", "--progress-bind-address", address, "--progress-url", f"https://{address}")
        until(lambda: "cannot take reports of progress" in caplog.text)
        until(lambda: operator.probe("readyz") == (200, "ok"))


def test_only_the_leader_keeps_a_history(operator: Operator, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    operator.run(
        "--leader-elect", "--history-database", url, "--history-cluster", "lab", "--history-log-link", "https://l/{uid}"
    )
    elector = operator.part(Elector)
    assert not (tmp_path / "history.db").exists()
    elector.elected.set()
    controller: Any = operator.part(Controller)
    until(lambda: hasattr(controller, "on_job"))
    controller.on_job(Change(None, ended("digits", at=datetime.now(UTC))))
    operator.end()
    history = History(url)
    assert [(one["name"], one["cluster"], one["log_link"]) for one in history.newest()] == [
        ("digits", "lab", "https://l/uid-digits")
    ]
    history.close()


@pytest.mark.parametrize(("state", "ranks"), [("opt-in", "None"), ("on", "Rank0")])
def test_which_ranks_report_by_default(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, state: str, ranks: str
) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    operator.run("--progress", state, "--progress-bind-address", "127.0.0.1:0", "--progress-url", "https://[::1]:1")
    told = endpoint_of(operator.part(Runner).given[2])
    assert told is not None
    assert told.ranks == ranks


def test_outside_a_cluster_reports_need_an_address(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    options = cli.parse(["run", "--progress", "on"])
    with pytest.raises(ValueError, match="--progress needs --progress-url outside a cluster: write https://HOST:8444"):
        run.EmbeddedEngine(options, run.Stopping()).run()


def test_by_default_nothing_takes_reports(operator: Operator) -> None:
    operator.run()
    assert endpoint_of(operator.part(Runner).given[2]) is None
    assert not operator.part(Controller).given[3].progress


@pytest.mark.parametrize("with_token", [False, True])
def test_the_options_of_the_metrics_reach_their_server(operator: Operator, tmp_path: Path, with_token: bool) -> None:
    certificate, key = write_certificate(tmp_path)
    files = ["--metrics-tls-cert-file", str(certificate), "--metrics-tls-key-file", str(key)]
    operator.run("--metrics-bind-address", "127.0.0.1:0", "--metrics-authentication", *files)
    operator.part(Controller)
    (server,) = operator.servers
    asked = urllib.request.Request(f"https://localhost:{server.port}/metrics")
    if with_token:
        asked.add_header("Authorization", "Bearer token")
    trusting = ssl.create_default_context(cafile=str(certificate))
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked, timeout=10, context=trusting)
    assert refused.value.code == (503 if with_token else 401), "who has a token is asked for at the API server"


def test_without_these_options_everyone_reads_the_metrics(operator: Operator) -> None:
    operator.run("--metrics-bind-address", "127.0.0.1:0")
    operator.part(Controller)
    (server,) = operator.servers
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as answer:
        assert answer.status == 200
