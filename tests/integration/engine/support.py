"""Helpers of the engine's tests: a test kind, roles that record their variables, and a proxy that can cut connections."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support import polling

from dljob_operator.engine.controller import Controller
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.requests import targets
from dljob_operator.runner import RunnerClient, RunRequest, RunResult, Target
from dljob_operator.watches import GVK, Watch

ROOT = Path(__file__).resolve().parents[3]
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
"""pytest-xdist's worker. Several share one cluster: whatever is not in a namespace of a test's own has this in its name."""
GROUP = f"engine-test-{WORKER}.example.com"
ECHO = GVK(GROUP, "v1", "EchoJob")
PODS, SERVICES = (ApiResource(OWNED_KINDS[kind].prefix, OWNED_KINDS[kind].plural) for kind in ("Pod", "Service"))
ECHOJOBS = ApiResource(f"/apis/{GROUP}/v1", "echojobs")
_CRDS = ApiResource("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
TIMEOUT = 90.0

RECORD = Path(__file__).with_name("files") / "record.py"


def until(what: Callable[[], Any], why: str) -> Any:
    """Poll `what` and return its first true value. For conditions that another process fulfils.

    A server that asks to come back later (429) has not answered yet: it does so while its cache of a new kind fills.
    """

    def found() -> Any:
        try:
            return what()
        except ApiError as error:
            if error.status != 429:
                raise
            return None

    return polling.until(found, why, TIMEOUT, pause=0.1)  # several tests side by side: asking costs more than waiting


def crd(kind: str = "EchoJob", group: str = GROUP, version: str = "v1") -> dict[str, Any]:
    """A definition with any fields and the status as a subresource."""
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def remove_crd(kube: KubeApi, name: str, version: str = "v1") -> None:
    """Delete a definition, once its kind can be listed.

    Deleted earlier, it can stay for up to 1,000 s: the API server's finalizer fails until it can list the kind, writes
    each failure into the status, which makes it try again at once, and by that exhausts its exponential delay.
    """
    plural, group = name.split(".", 1)

    def answers(path: str) -> int:
        try:
            kube.list_objects(path)
        except ApiError as error:
            return error.status
        return 200

    def is_absent() -> bool:
        return answers(_CRDS.item("", name)) == 404

    kind = ApiResource(f"/apis/{group}/{version}", plural).collection()
    until(lambda: is_absent() or answers(kind) == 200, f"{name} can be listed")
    with contextlib.suppress(ApiError):
        kube.request("DELETE", _CRDS.item("", name))
    until(is_absent, f"{name} is deleted")


@dataclass
class Jobs:
    """EchoJobs and pods in one namespace."""

    kube: KubeApi
    namespace: str

    def create(self, name: str, **spec: Any) -> dict[str, Any]:
        body = {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": {"name": name}, "spec": spec}
        return self.kube.request("POST", ECHOJOBS.collection(self.namespace), body)

    def create_nested(self, name: str, levels: int) -> None:
        """Create a job with so many levels that Python may not be able to encode it."""
        head = json.dumps({"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": {"name": name}})
        body = head[:-1] + ',"spec":' + '{"a":' * levels + "1" + "}" * (levels + 1)
        url = self.kube.server + ECHOJOBS.collection(self.namespace)
        pool = self.kube.connection.pool
        answer = pool.request("POST", url, body=body, headers={"Content-Type": "application/json"})
        assert answer.status == 201, answer.data

    def get(self, name: str) -> dict[str, Any]:
        return self.kube.get(ECHOJOBS.item(self.namespace, name))

    def patch(self, name: str, **body: Any) -> dict[str, Any]:
        return self._merge(ECHOJOBS.item(self.namespace, name), body)

    def write_status(self, name: str, **status: Any) -> None:
        self._merge(ECHOJOBS.item(self.namespace, name) + "/status", {"status": status})

    def delete(self, name: str) -> None:
        self.kube.request("DELETE", ECHOJOBS.item(self.namespace, name))

    def exists(self, name: str) -> bool:
        try:
            self.get(name)
        except ApiError as error:
            assert error.status == 404
            return False
        return True

    def create_pod(self, name: str, owner: dict[str, Any] | None, *, ours: bool = True) -> None:
        metadata: dict[str, Any] = {"name": name}
        if ours:
            metadata["labels"] = {"app.kubernetes.io/managed-by": "dljob-operator"}
        if owner is not None:
            identity = {key: owner["metadata"][key] for key in ("name", "uid")}
            metadata["ownerReferences"] = [
                {"apiVersion": ECHO.api_version, "kind": ECHO.kind, **identity, "controller": True}
            ]
        # No node has this label: the pod is never started, and its status is what the test writes.
        spec = {
            "nodeSelector": {"engine-test": "nowhere"},
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

        def created() -> bool:
            try:
                self.kube.request("POST", PODS.collection(self.namespace), body)
            except ApiError as error:
                # A namespace that was just made may not have its service account yet.
                if error.status == 403 and "serviceaccount" in str(error):
                    return False
                raise
            return True

        until(created, f"the pod {name} is accepted")

    def pod_phase(self, name: str, phase: str) -> None:
        self._merge(PODS.item(self.namespace, name) + "/status", {"status": {"phase": phase}})

    def pod(self, name: str) -> dict[str, Any]:
        return self.kube.get(PODS.item(self.namespace, name))

    def annotate_pod(self, name: str, key: str, value: str) -> None:
        self._merge(PODS.item(self.namespace, name), {"metadata": {"annotations": {key: value}}})

    def delete_pod(self, name: str) -> None:
        self.kube.request("DELETE", PODS.item(self.namespace, name), query={"gracePeriodSeconds": 0})

    def events(self, name: str) -> list[dict[str, Any]]:
        listed = self.kube.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [event for event in listed if event["involvedObject"]["name"] == name]

    def _merge(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.kube.request("PATCH", path, body, content_type="application/merge-patch+json")


class Runners:
    """Runners that the tests of a session share, one for each set of targets: starting one costs seconds of CPU."""

    def __init__(self, roles: Path) -> None:
        self._environ = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(roles / "collections")}
        self._shared: dict[str, RunnerClient] = {}

    def start(self, targets: Sequence[Target]) -> RunnerClient:
        """Start a runner that is not shared; the caller closes it."""
        runner = RunnerClient(targets, environ=self._environ)
        runner.start()
        return runner

    def borrow(self, targets: Sequence[Target]) -> BorrowedRunner:
        key = json.dumps([target.to_json() for target in targets])
        if key not in self._shared:
            self._shared[key] = self.start(targets)
        return BorrowedRunner(self._shared[key], lambda: self._drop(key))

    def close(self) -> None:
        for key in list(self._shared):
            self._drop(key)

    def _drop(self, key: str) -> None:
        runner = self._shared.pop(key, None)
        if runner is not None:
            runner.close()


class BorrowedRunner:
    """A shared runner for one controller. Closing it while a run is in progress closes the shared runner too."""

    def __init__(self, runner: RunnerClient, drop: Callable[[], None]) -> None:
        self._runner = runner
        self._drop = drop
        self._lock = threading.Lock()
        self._pending = 0
        self.wait_ready = runner.wait_ready
        self.changes = runner.changes
        self.prepare = runner.prepare

    def run(self, request: RunRequest) -> RunResult:
        *_, last = self.results(request)
        return last

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        with self._lock:
            self._pending += 1
        try:
            yield from self._runner.results(request)
        finally:
            with self._lock:
                self._pending -= 1

    def close(self) -> None:
        if self._pending:
            self._drop()


@dataclass
class Engine:
    """A controller for one watch entry. It shares its runner with other tests unless `shared_runner` is false."""

    kube: KubeApi
    runners: Runners
    roles: Path
    record: Path
    namespace: str
    watch: Watch = field(init=False)
    own_runner: RunnerClient = field(init=False)
    controller: Controller = field(init=False)

    def start(self, settings: dict[str, Any] | None = None, *, shared_runner: bool = True, **watch: Any) -> Engine:
        variables = {"record_file": str(self.record), **watch.pop("vars", {})}
        defaults: dict[str, Any] = {
            "role": self.roles / "roles" / "echo",
            "manage_status": False,
            "mark_unsafe": True,
        }
        self.watch = Watch(ECHO, **{**defaults, **watch}, vars=variables)
        runner: RunnerClient | BorrowedRunner
        if shared_runner:
            runner = self.runners.borrow(targets([self.watch]))
        else:
            runner = self.own_runner = self.runners.start(targets([self.watch]))
        self.controller = Controller(
            [self.watch],
            self.kube,
            runner,
            ControllerSettings(namespaces=(self.namespace,), **(settings or {})),
        )
        self.controller.start()
        assert self.controller.wait_ready() == ([ECHO], [])
        runner.wait_ready(60)
        return self

    def stop(self) -> None:
        self.controller.stop(5)

    def runs(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return what the role has recorded, for one job or all, oldest first."""
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        found = [json.loads(line) for line in lines if line]
        return [run for run in found if name in (None, run["name"])]

    def wait_run(self, name: str, count: int) -> dict[str, Any]:
        """Wait for the run number `count` of a job, and return it."""
        until(lambda: len(self.runs(name)) >= count, f"run {count} of {name}: {self.runs(name)}")
        return self.runs(name)[count - 1]


class Line:
    """A TCP proxy to the API server whose connections a test can break."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.open()

    def open(self) -> None:
        """Accept connections, on the same port as before."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Break all connections, but accept new ones."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Break all connections and accept no new ones."""
        assert self._listener is not None
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            with self._lock:
                self._pairs.append((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dljob_operator", *arguments]


def environ_of(**more: str) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name != "WATCH_NAMESPACE"}
    return {**environ, "PYTHONPATH": str(ROOT / "src"), **more}


class Process:
    """A running `dljob-operator run`, its output in files."""

    def __init__(self, cwd: Path, *arguments: str, **environ: str) -> None:
        self._out, self._err = cwd / "stdout", cwd / "stderr"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                command("run", *arguments), cwd=cwd, env=environ_of(**environ), stdout=out, stderr=err
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def wait_ready(self) -> None:
        until(lambda: "ready: " in self.out or self.process.poll() is not None, "it is ready")
        assert self.process.poll() is None, self.err

    def end(self, signum: int = signal.SIGTERM) -> int:
        self.process.send_signal(signum)
        return self.process.wait(60)
