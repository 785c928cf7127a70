"""Supervise the fork server process and send it run requests from any thread.

This module starts processes with exec, never with fork alone, so it is safe in a process with many threads. The first
fork server may have been forked before there were any (`prefork`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from dljob_operator import logs
from dljob_operator.failed_check import FailedCheck
from dljob_operator.runner import process_tree
from dljob_operator.runner.messages import Frame, FrameReader, RunEnding, RunRequest, RunResult, Target, TaskFailure

if TYPE_CHECKING:
    from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter

    from dljob_operator.runner.prefork import Preforked

_LOG = logging.getLogger(__name__)
_CHUNK = 256 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0  # seconds before the next start of a fork server
_STUCK_AFTER = 30.0  # seconds after which a fork server that is late to start or end a run counts as stuck
_CHECK_INTERVAL = 5.0  # seconds between checks for this
_IDLE = 60.0  # seconds after which idle workers end
_UNSUPERVISED = "the thread that supervises the fork server has ended"


_WORKER_MESSAGES = {"worker_started": "worker started", "worker_ended": "worker ended"}


class RunnerError(RuntimeError):
    """The fork server cannot be started; the message is the cause."""


@dataclass
class _PendingRun:
    """A request without a final result. `sent` and `started` are times, 0 until then; `pid` is the child process."""

    request: RunRequest
    future: Future[RunResult]
    on_partial: Callable[[RunResult], None]
    sent: float = 0.0
    started: float = 0.0
    pid: int | None = None


def _new_counter() -> ChangeCounter:
    # only here: the fork server imports this package before Ansible's own loader of collections is in place
    from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter

    return ChangeCounter.create()


class RunnerClient:
    """Runs targets, at most `concurrency` at a time, in children of the fork server.

    `start` starts the fork server, and the client restarts it when it ends. Its runs in progress then end as CRASHED;
    requests not sent yet go to the next fork server. `environ` is its environment (default: that of this process).
    A long-lived worker that had no batch for `idle` seconds ends; without one, the next batch starts one. `preforked`
    becomes the first fork server.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        concurrency: int = 2,
        environ: Mapping[str, str] | None = None,
        idle: float = _IDLE,
        preforked: Preforked | None = None,
    ) -> None:
        self._targets = tuple(targets)
        self._concurrency = concurrency
        self._idle = idle
        self._environ = dict(os.environ if environ is None else environ)
        self.changes = _new_counter()
        """Users' changes of jobs, which the workers see at once. The queue of the jobs increments it."""
        self._lock = threading.Lock()  # guards the fields below; never held while anything is sent
        self._sending = threading.Lock()  # one frame at a time
        self._socket: socket.socket | None = None  # set while the fork server is ready for requests
        self._pending_runs: dict[int, _PendingRun] = {}
        self._to_prepare: list[str] = []
        self._next_number = 1
        self._problem = ""
        self._slot_free_since = 0.0  # when the last run ended
        self._preforked = preforked
        self._process: subprocess.Popen[bytes] | Preforked | None = None
        self._closing = threading.Event()
        self._first_start_done = threading.Event()  # the first start has succeeded or failed
        self._thread = threading.Thread(target=self._supervise, name="runner-client", daemon=True)

    @property
    def pid(self) -> int | None:
        """The process id of the fork server, or None if it is not running."""
        process = self._process
        return process.pid if process else None

    @property
    def running(self) -> int:
        """The number of runs in progress."""
        with self._lock:
            return sum(pending.pid is not None for pending in self._pending_runs.values())

    def start(self) -> None:
        """Start the fork server and return immediately; requests wait until it is ready."""
        self._thread.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the fork server is ready. Raises RunnerError if it fails or after `timeout` seconds."""
        if not self._first_start_done.wait(timeout):
            raise RunnerError(f"the Ansible fork server was not ready after {timeout} s")
        if self._problem:
            raise RunnerError(self._problem)

    def submit(
        self, request: RunRequest, on_partial: Callable[[RunResult], None] = lambda result: None
    ) -> Future[RunResult]:
        """Run `request`; the future always ends with a result, never with an exception.

        `on_partial` gets the partial results before that. The client calls it on the one thread that receives all
        results, so it must not block.
        """
        pending = _PendingRun(request, Future(), on_partial)
        pending.future.set_running_or_notify_cancel()
        with self._lock:
            number = self._next_number
            self._next_number += 1
            closing = self._closing.is_set()
            if not closing:
                self._pending_runs[number] = pending
        if closing:
            pending.future.set_result(_not_run(RunEnding.CANCELLED, "the operator is stopping"))
        else:
            self._transmit()
        return pending.future

    def prepare(self, target: str) -> None:
        """Let the fork server load `target` and start a long-lived worker for it, where there is none, ahead of a run.

        Where the fork server is not ready yet, it does so first.
        """
        with self._lock:
            self._to_prepare.append(target)
        self._transmit()

    def run(self, request: RunRequest) -> RunResult:
        """Run `request` and wait for its result."""
        return self.submit(request).result()

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        """Run `request` and yield its results: the partial ones, if any, and the final one."""
        received: SimpleQueue[RunResult | Future[RunResult]] = SimpleQueue()
        self.submit(request, received.put).add_done_callback(received.put)
        while isinstance(result := received.get(), RunResult):
            yield result
        yield result.result()

    def close(self) -> None:
        """End the fork server and all runs immediately; pending runs end as CANCELLED. It may be called twice."""
        self._closing.set()
        with self._lock:
            connected, process = self._socket, self._process
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        elif process is not None:
            process.kill()
        if self._thread.ident is not None:
            self._thread.join()

    def problem(self) -> str:
        """Why this client no longer works, "" if it does."""
        ended = self._thread.ident is not None and not self._thread.is_alive() and not self._closing.is_set()
        return FailedCheck("the fork server is not supervised", _UNSUPERVISED) if ended else ""

    def _transmit(self) -> None:
        """Send all requests that were not sent yet. The supervising thread handles a fork server that has ended."""
        with self._sending:
            with self._lock:
                connected = self._socket
                unsent = [(number, pending) for number, pending in self._pending_runs.items() if not pending.sent]
                if connected is None:
                    return
                to_prepare, self._to_prepare = self._to_prepare, []
                for _, pending in unsent:
                    pending.sent = time.monotonic()
            for target in to_prepare:
                with contextlib.suppress(OSError):
                    connected.sendall(Frame({"type": "prepare", "target": target}).encode())
            for number, pending in unsent:
                request = pending.request
                header = {"type": "run", "id": number, "timeout": request.timeout}
                if request.long_lived:
                    header["long_lived"] = request.target
                with contextlib.suppress(OSError):
                    connected.sendall(Frame(header, request.to_body()).encode())

    def _supervise(self) -> None:
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            try:
                with _scratch() as scratch:
                    was_ready, problem = self._run_process(scratch)
            except OSError as error:
                was_ready, problem = False, f"cannot start the Ansible fork server: {error}"
            except Exception as error:
                # without this thread no run would ever end
                _LOG.exception("the supervision of the fork server failed; restarting it")
                was_ready, problem = False, f"the supervision of the Ansible fork server failed: {error}"
            if not was_ready:
                self._problem = problem
            self._first_start_done.set()
            # If no fork server became ready, requests that wait fail too.
            self._end_pending_runs(problem, unsent=not was_ready)
            if not self._closing.is_set():
                pause = _FIRST_PAUSE if was_ready else min(pause * 2, _LONGEST_PAUSE)
                _LOG.error("fork server ended; restarting it", extra=logs.fields(error=problem, retry_seconds=pause))
                self._closing.wait(pause)
        self._end_pending_runs("the operator is stopping", unsent=True)

    def _run_process(self, scratch: Path) -> tuple[bool, str]:
        """Start one fork server and serve it until it ends; return whether it was ready, and why it ended."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = self._start_process(theirs.fileno())
            with self._lock:
                self._process = process
            if self._closing.is_set():  # `close` may have been called before the process existed
                process.kill()
            try:
                config = {
                    "targets": [target.to_json() for target in self._targets],
                    "concurrency": self._concurrency,
                    "idle": self._idle,
                    "scratch": str(scratch),
                    "changes": self.changes.fd,
                }
                with contextlib.suppress(OSError):
                    ours.sendall(Frame({"type": "configure"}, json.dumps(config).encode()).encode())
                was_ready, problem = self._read_until_end(ours, process)
            finally:
                with self._lock:
                    self._socket = None
                ours.shutdown(socket.SHUT_RDWR)
                self._kill_runs(scratch)
                code = _reap(process)
                with self._lock:
                    self._process = None
        return was_ready, problem or f"the Ansible fork server ended unexpectedly ({_describe(code)})"

    def _start_process(self, control: int) -> subprocess.Popen[bytes] | Preforked:
        environ, fds = self._child_environ(), (control, self.changes.fd)
        preforked, self._preforked = self._preforked, None
        if preforked is not None:
            with contextlib.suppress(OSError):  # it has ended
                preforked.become_fork_server(environ, fds)
                return preforked
        return subprocess.Popen(
            [sys.executable, "-m", "dljob_operator.runner.fork_server", str(control)],
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__ or subprocess.DEVNULL,
            env=environ,
            start_new_session=True,  # only the engine handles Ctrl-C from the terminal
        )

    def _child_environ(self) -> dict[str, str]:
        """Return the environment, with this package on PYTHONPATH because it may not be installed."""
        environ = dict(self._environ)
        package = str(Path(__file__).parents[2])
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package, environ.get("PYTHONPATH", ""))))
        environ["PYTHONSAFEPATH"] = "1"  # do not import from the working directory
        return environ

    def _read_until_end(self, ours: socket.socket, process: subprocess.Popen[bytes] | Preforked) -> tuple[bool, str]:
        was_ready, problem = False, ""
        reader = FrameReader()
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        check_at = time.monotonic() + _CHECK_INTERVAL
        while True:
            data = b""
            if poll.poll(_CHECK_INTERVAL * 1000):
                with contextlib.suppress(ConnectionError):
                    data = ours.recv(_CHUNK)
                if not data:
                    return was_ready, problem
            for frame in reader.feed(data):
                if frame.header["type"] == "fatal":
                    problem = f"Ansible could not be loaded: {frame.header['message']}"
                elif frame.header["type"] == "ready":
                    was_ready = True
                    self._become_ready(ours, frame)
                elif frame.header["type"] == "warning":
                    _warn(frame.header["message"])
                elif frame.header["type"] in _WORKER_MESSAGES:
                    header = dict(frame.header)
                    _LOG.info(_WORKER_MESSAGES[header.pop("type")], extra=logs.fields(**header))
                else:
                    self._handle_frame(frame)
            # after the frames, which may say that runs have ended; also while frames of other runs arrive
            if time.monotonic() >= check_at:
                check_at = time.monotonic() + _CHECK_INTERVAL
                if self._is_stuck():
                    problem = "the Ansible fork server no longer starts or ends runs and was killed"
                    process.kill()

    def _become_ready(self, ours: socket.socket, frame: Frame) -> None:
        for warning in frame.header["warnings"]:
            _warn(warning)
        _LOG.info("fork server ready", extra=logs.fields(seconds=frame.header["seconds"]))
        with self._lock:
            self._socket = ours
        self._problem = ""
        self._first_start_done.set()
        if self._closing.is_set():
            ours.shutdown(socket.SHUT_RDWR)
        self._transmit()

    def _handle_frame(self, frame: Frame) -> None:
        number = frame.header["id"]
        with self._lock:
            pending = self._pending_runs.get(number)
            if pending is None:
                return
            if frame.header["type"] == "started":
                pending.pid, pending.started = frame.header["pid"], time.monotonic()
                return
            if frame.header["type"] != "partial":
                del self._pending_runs[number]
                self._slot_free_since = time.monotonic()
        if frame.header["type"] == "partial":
            pending.on_partial(replace(RunResult.from_body(frame.body, frame.header["seconds"], ""), is_partial=True))
            return
        pending.future.set_result(_result(frame, pending.request))

    def _is_stuck(self) -> bool:
        now = time.monotonic()
        with self._lock:
            running = [pending for pending in self._pending_runs.values() if pending.started]
            queued = [pending for pending in self._pending_runs.values() if pending.sent and not pending.started]
        late = any(now - pending.started > pending.request.timeout + _STUCK_AFTER for pending in running)
        # a run that had to wait for a slot starts a little after the end of the one that had it
        idle = len(running) < self._concurrency and any(
            now - max(pending.sent, self._slot_free_since) > _STUCK_AFTER for pending in queued
        )
        return late or idle

    def _kill_runs(self, scratch: Path) -> None:
        """Kill the runs of a dead fork server, so that two runs never reconcile one job at a time."""
        with self._lock:
            pids = [pending.pid for pending in self._pending_runs.values() if pending.pid is not None]
        for pid in pids:
            process_tree.kill(process_tree.tree(pid))
        # The kernel may have killed the runs with the fork server before this; their own children can still be running.
        process_tree.kill(process_tree.started_below(scratch))

    def _end_pending_runs(self, problem: str, *, unsent: bool) -> None:
        """End the runs that were sent to the last fork server, and with `unsent` those that were not sent."""
        ending = RunEnding.CANCELLED if self._closing.is_set() else RunEnding.CRASHED
        with self._lock:
            numbers = [number for number, pending in self._pending_runs.items() if pending.sent or unsent]
            ended = [self._pending_runs.pop(number) for number in numbers]
        for pending in ended:
            pending.future.set_result(_not_run(ending, problem))


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a new directory for one fork server and its runs. Raises OSError, as when the disk is full."""
    path = Path(tempfile.mkdtemp(prefix="dljob-operator-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _warn(problem: str) -> None:
    _LOG.warning("cannot preload a role or playbook", extra=logs.fields(error=problem))


def _result(frame: Frame, request: RunRequest) -> RunResult:
    ending, seconds, output = (frame.header[key] for key in ("ending", "seconds", "output"))
    if ending == RunEnding.COMPLETED:
        try:
            return RunResult.from_body(frame.body, seconds, output)
        except (ValueError, KeyError, TypeError):
            message = "the run's process was ended while it wrote its result"
            return RunResult(RunEnding.CRASHED, (TaskFailure("", message),), seconds=seconds, output=output)
    if ending == RunEnding.TIMED_OUT:
        message = f"the run took longer than {request.timeout:g} s and was killed"
    else:
        message = f"the run's process ended without a result ({_describe(frame.header['exit'])})"
    return RunResult(RunEnding(ending), (TaskFailure("", message),), seconds=seconds, output=output)


def _not_run(ending: RunEnding, problem: str) -> RunResult:
    return RunResult(ending, (TaskFailure("", problem),))


def _describe(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _reap(process: subprocess.Popen[bytes] | Preforked) -> int:
    """Wait for a fork server whose socket was closed; it kills its children first."""
    try:
        return process.wait(timeout=_CHECK_INTERVAL)
    except (subprocess.TimeoutExpired, TimeoutError):
        process.kill()
        return process.wait()
