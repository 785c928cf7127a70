"""The engine's side of the warm runner: a supervised fork_server process, and requests to it from any thread.

This module starts processes by exec only, never by fork, so it may be used beside any number of threads.
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

from dljob_operator.runner import process_tree
from dljob_operator.runner.messages import Failure, Frame, FrameReader, RunOutcome, RunRequest, RunResult, Target

_LOG = logging.getLogger(__name__)
_CHUNK = 256 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0  # seconds before a fork_server that ended is started again
_OVERDUE = 30.0  # seconds after which a fork_server that has not begun or ended a run in time is taken for stuck
_LOOK = 5.0  # seconds between looks for such a run


class RunnerError(RuntimeError):
    """The warm process cannot be started; the message says why."""


@dataclass
class _PendingRun:
    """A request on its way. `sent` and `started` are times, 0 until then; `pid` is its child's."""

    request: RunRequest
    future: Future[RunResult]
    tell: Callable[[RunResult], None]
    sent: float = 0.0
    started: float = 0.0
    pid: int | None = None


class RunnerClient:
    """Runs targets, at most `concurrency` at a time, each in a child forked from a warm process.

    The process is started by `start` and again whenever it ends; the runs in pending then end as CRASHED,
    and those not yet sent go to the next process. `environ` is its environment (default: this process's).
    """

    def __init__(
        self, targets: Sequence[Target], concurrency: int = 2, environ: Mapping[str, str] | None = None
    ) -> None:
        self._targets = tuple(targets)
        self._concurrency = concurrency
        self._environ = dict(os.environ if environ is None else environ)
        self._lock = threading.Lock()  # guards the fields below; never held while anything is sent
        self._sending = threading.Lock()  # one frame at a time
        self._socket: socket.socket | None = None  # set while the process is ready for requests
        self._pending_runs: dict[int, _PendingRun] = {}
        self._next_number = 1
        self._problem = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._settled = threading.Event()  # the first start has come to an end, good or bad
        self._thread = threading.Thread(target=self._supervise, name="warm-runner", daemon=True)

    @property
    def pid(self) -> int | None:
        """The warm process's number, or None where there is none."""
        process = self._process
        return process.pid if process else None

    @property
    def running(self) -> int:
        """How many runs have begun and not ended."""
        with self._lock:
            return sum(pending.pid is not None for pending in self._pending_runs.values())

    def start(self) -> None:
        """Start the warm process and return at once; requests wait until it is ready."""
        self._thread.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Return when the process is warm. Raises RunnerError if it fails or takes `timeout` seconds."""
        if not self._settled.wait(timeout):
            raise RunnerError(f"the warm Ansible process was not ready after {timeout} s")
        if self._problem:
            raise RunnerError(self._problem)

    def submit(self, request: RunRequest, tell: Callable[[RunResult], None] = lambda result: None) -> Future[RunResult]:
        """Run `request`; the future always ends with a result, never with an exception.

        `tell` gets the results before that one, of a run that goes on; it is called on the thread that all runs'
        results come in on, and must not wait.
        """
        pending = _PendingRun(request, Future(), tell)
        pending.future.set_running_or_notify_cancel()
        with self._lock:
            number = self._next_number
            self._next_number += 1
            closing = self._closing.is_set()
            if not closing:
                self._pending_runs[number] = pending
        if closing:
            pending.future.set_result(_not_run(RunOutcome.CANCELLED, "the operator is stopping"))
        else:
            self._transmit()
        return pending.future

    def run(self, request: RunRequest) -> RunResult:
        """Run `request` and wait for its result."""
        return self.submit(request).result()

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        """Run `request` and wait for its results: those of a run that goes on, if it tells any, and the last one."""
        came: SimpleQueue[RunResult | Future[RunResult]] = SimpleQueue()
        self.submit(request, came.put).add_done_callback(came.put)
        while isinstance(result := came.get(), RunResult):
            yield result
        yield result.result()

    def close(self) -> None:
        """End the process and every run at once; what was in pending ends as CANCELLED. Safe to call twice."""
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

    def _transmit(self) -> None:
        """Send what was not sent yet. A process that has just ended is left to its supervisor."""
        with self._sending:
            with self._lock:
                connected = self._socket
                unsent = [(number, pending) for number, pending in self._pending_runs.items() if not pending.sent]
                if connected is None:
                    return
                for _, pending in unsent:
                    pending.sent = time.monotonic()
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
            scratch = Path(tempfile.mkdtemp(prefix="dljob-operator-"))
            try:
                was_ready, problem = self._one_process(scratch)
            except OSError as error:
                was_ready, problem = False, f"the warm Ansible process could not be started: {error}"
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            if not was_ready:
                self._problem = problem
            self._settled.set()
            # Where no process gets ready, nobody will take what waits.
            self._end_flights(problem, unsent=not was_ready)
            if not self._closing.is_set():
                pause = _FIRST_PAUSE if was_ready else min(pause * 2, _LONGEST_PAUSE)
                _LOG.error("%s; starting another in %.1f s", problem, pause)
                self._closing.wait(pause)
        self._end_flights("the operator is stopping", unsent=True)

    def _one_process(self, scratch: Path) -> tuple[bool, str]:
        """Serve one process until it ends; return whether it ever was ready, and what it ended of."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", "dljob_operator.runner.fork_server", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=sys.__stderr__ or subprocess.DEVNULL,
                    env=self._child_environ(),
                    start_new_session=True,  # a Ctrl-C at the terminal is the engine's to deal with
                )
            with self._lock:
                self._process = process
            if self._closing.is_set():  # `close` may have looked before there was a process
                process.kill()
            try:
                config = {
                    "targets": [target.to_json() for target in self._targets],
                    "concurrency": self._concurrency,
                    "scratch": str(scratch),
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
        return was_ready, problem or f"the warm Ansible process ended unexpectedly ({_describe(code)})"

    def _child_environ(self) -> dict[str, str]:
        """The process finds this package also where it is not installed, as in a test of the source tree."""
        environ = dict(self._environ)
        package = str(Path(__file__).parents[2])
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package, environ.get("PYTHONPATH", ""))))
        environ["PYTHONSAFEPATH"] = "1"  # the working directory is not ours to import from
        return environ

    def _read_until_end(self, ours: socket.socket, process: subprocess.Popen[bytes]) -> tuple[bool, str]:
        was_ready, problem = False, ""
        reader = FrameReader()
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        while True:
            if not poll.poll(_LOOK * 1000):
                if self._is_stuck():
                    problem = "the warm Ansible process no longer begins or ends its runs, and was killed"
                    process.kill()
                continue
            try:
                data = ours.recv(_CHUNK)
            except ConnectionError:
                data = b""
            if not data:
                return was_ready, problem
            for frame in reader.feed(data):
                if frame.header["type"] == "fatal":
                    problem = f"Ansible could not be loaded: {frame.header['message']}"
                elif frame.header["type"] == "ready":
                    was_ready = True
                    self._become_ready(ours, frame)
                else:
                    self._take(frame)

    def _become_ready(self, ours: socket.socket, frame: Frame) -> None:
        for warning in frame.header["warnings"]:
            _LOG.warning("%s", warning)
        _LOG.info("Ansible is warm, after %.1f s", frame.header["seconds"])
        with self._lock:
            self._socket = ours
        self._problem = ""
        self._settled.set()
        if self._closing.is_set():
            ours.shutdown(socket.SHUT_RDWR)
        self._transmit()

    def _take(self, frame: Frame) -> None:
        number = frame.header["id"]
        with self._lock:
            pending = self._pending_runs.get(number)
            if pending is None:
                return
            if frame.header["type"] == "started":
                pending.pid, pending.started = frame.header["pid"], time.monotonic()
                return
            if frame.header["type"] != "told":
                del self._pending_runs[number]
        if frame.header["type"] == "told":
            pending.tell(replace(RunResult.from_body(frame.body, frame.header["seconds"], ""), is_partial=True))
            return
        pending.future.set_result(_result(frame, pending.request))

    def _is_stuck(self) -> bool:
        now = time.monotonic()
        with self._lock:
            running = [pending for pending in self._pending_runs.values() if pending.started]
            queued = [pending for pending in self._pending_runs.values() if pending.sent and not pending.started]
        late = any(now - pending.started > pending.request.timeout + _OVERDUE for pending in running)
        idle = len(running) < self._concurrency and any(now - pending.sent > _OVERDUE for pending in queued)
        return late or idle

    def _kill_runs(self, scratch: Path) -> None:
        """End what a dead fork_server has left running, so that no job is ever reconciled twice at a time."""
        with self._lock:
            pids = [pending.pid for pending in self._pending_runs.values() if pending.pid is not None]
        for pid in pids:
            process_tree.kill(process_tree.tree(pid))
        # the kernel has ended the runs with the fork_server, perhaps before the look above: what they started is left
        process_tree.kill(process_tree.started_below(scratch))

    def _end_flights(self, problem: str, *, unsent: bool) -> None:
        """End what the last process had been sent, and with `unsent` what waits for the next one."""
        ending = RunOutcome.CANCELLED if self._closing.is_set() else RunOutcome.CRASHED
        with self._lock:
            numbers = [number for number, pending in self._pending_runs.items() if pending.sent or unsent]
            ended = [self._pending_runs.pop(number) for number in numbers]
        for pending in ended:
            pending.future.set_result(_not_run(ending, problem))


def _result(frame: Frame, request: RunRequest) -> RunResult:
    ending, seconds, output = (frame.header[key] for key in ("ending", "seconds", "output"))
    if ending == RunOutcome.COMPLETED:
        return RunResult.from_body(frame.body, seconds, output)
    if ending == RunOutcome.TIMED_OUT:
        message = f"the run took longer than {request.timeout:g} s and was killed"
    else:
        message = f"the run's process ended without a result ({_describe(frame.header['exit'])})"
    return RunResult(RunOutcome(ending), (Failure("", message),), seconds=seconds, output=output)


def _not_run(ending: RunOutcome, problem: str) -> RunResult:
    return RunResult(ending, (Failure("", problem),))


def _describe(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _reap(process: subprocess.Popen[bytes]) -> int:
    """Wait for a fork_server whose stream has ended; it ends its children first, which must not take long."""
    try:
        return process.wait(timeout=_LOOK)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
