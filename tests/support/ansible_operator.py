"""A fake ansible-operator v1.42.3, written after its source: its runner input, event receiver and event handling.

It implements only the contract: input directory, command line, event socket, the result of a run, and when it starts a
run. Building the real binary for every test would take too long.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import yaml

from dljob_operator.signals import SignalThread

CREATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")


class EventReceiver:
    """The server at /tmp/ansibleoperator-<ident>: accepts and rejects the same events as the real one."""

    def __init__(self, ident: str) -> None:
        self.path = f"/tmp/ansibleoperator-{ident}"
        self.events: list[dict[str, Any]] = []
        self.refused: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout: ClassVar[int] = 30

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.take(self.path, self.headers.get("content-type", ""), body)
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Length", "0")
                self.end_headers()

            def address_string(self) -> str:
                return "unix"

            def log_message(self, *_: object) -> None:
                pass

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        self._server = Server(self.path, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def take(self, url: str, content_type: str, body: bytes) -> int:
        """Accept or reject one event; returns the HTTP status."""
        status = 204
        event: Any = {}
        if url != "/events/":
            status = 404
        elif content_type.split(";")[0] != "application/json":
            status = 415
        else:
            try:
                event = json.loads(body)
            except ValueError:
                status = 400
            else:
                if "created" in event and not CREATED.fullmatch(event["created"]):
                    status = 400
        if status != 204:
            self.refused.append(f"{status}: {body[:200]!r}")
        elif event.get("uuid"):  # ansible-runner's own status events have no uuid and are dropped
            self.events.append(event)
        return status

    def __enter__(self) -> EventReceiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        Path(self.path).unlink(missing_ok=True)


@dataclass
class RunResult:
    """ansible-operator's result of a run."""

    ok: bool
    messages: list[str] = field(default_factory=list)
    requeue_after: str | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)


def run_result(events: Sequence[Mapping[str, Any]]) -> RunResult:
    """The event loop of internal/ansible/controller/reconcile.go."""
    stats: Mapping[str, Any] | None = None
    messages = []
    for event in events:
        data = event.get("event_data") or {}
        if event["event"] == "playbook_on_stats":
            stats = data
        action = data.get("task_action")
        if action == "operator_sdk.util.requeue_after" or (
            action == "requeue_after" and event["event"] != "runner_on_failed"
        ):
            period = (data.get("res") or {}).get("period")
            if period is not None:
                return RunResult(True, requeue_after=period)
        if event["event"] == "runner_on_failed":
            ignored = data.get("ignore_errors") is True
            rescued = any(int(v) == 1 for v in (data.get("rescued") or {}).values())
            if not ignored and not rescued:
                messages.append((data.get("res") or {}).get("msg") or "unknown playbook failure")
    if stats is None:
        return RunResult(False, ["did not receive playbook_on_stats event"])
    return RunResult(not messages, messages, stats=stats)


@dataclass
class Run:
    """One finished Ansible run."""

    code: int
    output: str
    events: list[dict[str, Any]]
    refused: list[str]
    folder: Path
    ident: str
    result: RunResult


class Runs:
    """Starts Ansible runs as internal/ansible/runner does; `root` replaces /tmp/ansible-operator/runner."""

    def __init__(self, root: Path, environ: Mapping[str, str], cwd: Path, kubeconfig: Path | None = None) -> None:
        self._root = root
        self._environ = dict(environ)
        self._cwd = cwd
        self._kubeconfig = kubeconfig

    def run(
        self,
        job: Mapping[str, Any],
        *,
        role: Path | None = None,
        playbook: Path | None = None,
        rotate: int = 20,
        verbosity: int = 2,
        gathering: str = "explicit",
        mark_unsafe: bool = True,
        extra: Mapping[str, Any] | None = None,
        ansible_args: str = "",
    ) -> Run:
        """Run a role or a playbook for `job`, as with snakeCaseParameters: false in watches.yaml."""
        ident = str(int.from_bytes(os.urandom(8)) >> 1)
        group, _, version = job["apiVersion"].rpartition("/")
        metadata = job["metadata"]
        folder = self._root / group / version / job["kind"] / metadata["namespace"] / metadata["name"]
        with EventReceiver(ident) as receiver, tempfile.NamedTemporaryFile("w", prefix="kubeconfig") as kubeconfig:
            if self._kubeconfig is not None:
                shutil.copyfile(self._kubeconfig, kubeconfig.name)
            kube = {"K8S_AUTH_KUBECONFIG": kubeconfig.name, "KUBECONFIG": kubeconfig.name}
            settings = {"runner_http_url": receiver.path, "runner_http_path": "/events/"}
            parameters = {**_parameters(job, mark_unsafe), **(extra or {})}
            for name, content in (("envvars", kube), ("settings", settings), ("extravars", parameters)):
                _write(folder / "env" / name, json.dumps(content))
            _write(
                folder / "inventory" / "hosts",
                "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}\n",
            )
            if ansible_args:
                _write(folder / "env" / "cmdline", ansible_args)
            argv = ["run", str(folder), "--rotate-artifacts", str(rotate)]
            if playbook is not None:
                argv += ["-p", str(playbook), "-i", ident]
            else:
                assert role is not None
                argv += ["--role", role.name, "--roles-path", f"{role.parent}/", "--hosts", "localhost", "-i", ident]
            argv += [f"-{'v' * verbosity}"] if verbosity else []
            argv += ["--role-skip-facts"] if role is not None and gathering == "explicit" else []
            done = subprocess.run(
                ["ansible-runner", *argv],
                env={**self._environ, **kube},
                cwd=self._cwd,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=120,
                check=False,
            )
        latest = folder / "artifacts" / "latest"
        latest.unlink(missing_ok=True)
        if latest.parent.is_dir():
            latest.symlink_to(folder / "artifacts" / ident)
        return Run(
            done.returncode,
            done.stdout,
            receiver.events,
            receiver.refused,
            folder,
            ident,
            run_result(receiver.events),
        )


def _parameters(job: Mapping[str, Any], mark_unsafe: bool) -> dict[str, Any]:
    """`makeParameters` of internal/ansible/runner/runner.go."""
    group = job["apiVersion"].rpartition("/")[0]
    key = re.sub("[.-]", "_", f"_{group}_{job['kind'].lower()}")
    spec = job.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    guard = _unsafe if mark_unsafe else lambda value: value
    metadata = job["metadata"]
    return {
        **{name: guard(value) for name, value in spec.items()},
        "ansible_operator_meta": {"name": metadata["name"], "namespace": metadata["namespace"]},
        key: guard(dict(job)),
        f"{key}_spec": guard(spec),
    }


def _unsafe(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unsafe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unsafe(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Operator:
    """`ansible-operator run` in WATCH_NAMESPACE, with its predicates and its queue.

    It starts a run for a job that is new, or whose generation or annotations have changed; it does not watch owned
    objects (`watchDependentResources: false`). It has one run per job at a time, and retries failures with backoff.
    """

    def __init__(self, watches: Sequence[Mapping[str, Any]], kubeconfig: str, root: Path, environ: Mapping[str, str]):
        from kubernetes import client, config

        self._watches = watches
        self._api = client.CustomObjectsApi(config.new_client_from_config(kubeconfig))
        self._runs = Runs(root, environ, Path.cwd(), Path(kubeconfig))
        self._lock = threading.Lock()
        self._jobs: dict[str, dict[str, Any]] = {}
        self._busy: set[str] = set()
        self._dirty: set[str] = set()
        self._pool = ThreadPoolExecutor(4)
        self.stopping = threading.Event()

    def start(self) -> None:
        for entry in self._watches:
            threading.Thread(target=self._watch, args=[entry], daemon=True).start()

    def stop(self) -> None:
        """Start no more runs and wait for those in progress."""
        self.stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _watch(self, entry: Mapping[str, Any]) -> None:
        from kubernetes import watch

        plural, namespace = entry["kind"].lower() + "s", os.environ.get("WATCH_NAMESPACE", "")
        where = (entry["group"], entry["version"], *filter(None, (namespace,)), plural)
        listed = self._api.list_namespaced_custom_object if namespace else self._api.list_cluster_custom_object
        stream = watch.Watch().stream(listed, *where, timeout_seconds=600)
        for event in stream:
            self._seen(entry, event["type"], event["object"])

    def _seen(self, entry: Mapping[str, Any], kind: str, job: dict[str, Any]) -> None:
        uid = job["metadata"]["uid"]
        with self._lock:
            before = self._jobs.get(uid)
            if kind == "DELETED":
                self._jobs.pop(uid, None)
                return
            self._jobs[uid] = job
        if before is None or _intent(before) != _intent(job):
            self._enqueue(entry, uid)

    def _enqueue(self, entry: Mapping[str, Any], uid: str) -> None:
        with self._lock:
            if uid in self._busy:
                self._dirty.add(uid)
                return
            self._busy.add(uid)
        if not self.stopping.is_set():
            self._pool.submit(self._reconcile, entry, uid, 0)

    def _reconcile(self, entry: Mapping[str, Any], uid: str, failures: int) -> None:
        job = self._jobs.get(uid)
        ok = True
        if job is not None and not job["metadata"].get("deletionTimestamp"):
            run = self._runs.run(job, role=Path(entry["role"]), extra=entry.get("vars"))
            ok = run.result.ok
            if run.refused or "cold" in run.output:
                print(run.refused, run.output, file=sys.stderr, flush=True)
        with self._lock:
            again = uid in self._dirty
            self._dirty.discard(uid)
            if ok and not again:
                self._busy.discard(uid)
                return
        if not self.stopping.is_set():
            if not ok:
                self.stopping.wait(min(1000, 0.005 * 2**failures))
            self._pool.submit(self._reconcile, entry, uid, 0 if ok else failures + 1)


def _intent(job: Mapping[str, Any]) -> tuple[Any, Any]:
    return job["metadata"].get("generation"), job["metadata"].get("annotations")


def main() -> int:
    """`python ansible_operator.py run --watches-file FILE`, with roles as absolute paths, until SIGTERM."""
    watches = yaml.safe_load(Path(sys.argv[sys.argv.index("--watches-file") + 1]).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="ansible-operator-") as root:
        operator = Operator(watches, os.environ["KUBECONFIG"], Path(root), os.environ)
        with SignalThread() as signals:
            signals.start(lambda _: operator.stopping.set())
            operator.start()
            print("operator: started", flush=True)
            operator.stopping.wait()
            operator.stop()
    print("operator: stopped", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
