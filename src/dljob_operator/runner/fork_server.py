"""The fork server: it has loaded Ansible and is single-threaded, so that no fork copies a locked lock.

    python -m dljob_operator.runner.fork_server <number of an inherited stream socket>

The first frame from the engine is the configuration. Then it sends requests, and the fork server sends results in the
order in which runs end. When the engine closes the socket, the fork server kills all children and exits. `client` is
the other side.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import math
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dljob_operator.allocator import drop_unused_code, limit_arenas
from dljob_operator.runner import hangup, process_tree
from dljob_operator.runner.batch_worker import PipeWorkSource
from dljob_operator.runner.messages import Frame, FrameReader, RunEnding, RunRequest, RunResult, Target, TaskFailure

if TYPE_CHECKING:
    from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter

    from dljob_operator.runner.playbook_runner import PlaybookRunner

_GRACE = 1.0  # seconds between SIGTERM and SIGKILL of a run that timed out
_OUTPUT_KEPT = 16 * 1024
_CHUNK = 256 * 1024
# A worker is replaced after so many batches or seconds, to free what it has accumulated and to read renewed
# credentials.
_MAX_BATCHES, _MAX_AGE = 2000, 900.0
_SETTINGS = {
    "ANSIBLE_RETRY_FILES_ENABLED": "false",
    "ANSIBLE_LOCALHOST_WARNING": "false",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    "ANSIBLE_NOCOLOR": "true",
}
# The modules that a reconcile imports at their first use. The fork server imports them for all children.
_PRELOADED = (
    "kubernetes.client",
    "kubernetes.config",
    "kubernetes.dynamic",
    "yaml",
    "jinja2.ext",
    "jmespath",
)


@dataclass(frozen=True)
class WorkerLimits:
    """At most `concurrency` runs at a time; after `idle` seconds without a batch a worker ends."""

    concurrency: int
    idle: float


@dataclass
class _Child:
    """A running child and the fork server's ends of its pipes.

    A worker has a `pool`, the name of an equal workers' group, and a pipe for its batches. `number` is the id of the
    current request, None while it waits for one, since `idle_since`. `unsent` is the part of the request that did not
    fit into the pipe. `known` are the targets whose declarations it has.
    """

    number: int | None
    pid: int
    result_fd: int
    output_fd: int
    scratch: Path
    started: float
    deadline: float
    result: bytearray = field(default_factory=bytearray)
    output: bytearray = field(default_factory=bytearray)
    to_kill: tuple[process_tree.Process, ...] = ()
    timed_out: bool = False
    status: int | None = None
    pool: str = ""
    work_fd: int = -1
    unsent: memoryview = field(default_factory=lambda: memoryview(b""))
    idle_since: float = field(default_factory=time.monotonic)
    answers: FrameReader = field(default_factory=FrameReader)
    known: set[str] = field(default_factory=set)
    served: int = 0
    born: float = field(default_factory=time.monotonic)


class ForkServer:
    """Serves requests from the socket `control` until the engine closes it."""

    def __init__(
        self,
        control: socket.socket,
        playbooks: PlaybookRunner,
        scratch: Path,
        limits: WorkerLimits,
        changes: ChangeCounter,
    ) -> None:
        self._control = control
        self._playbooks = playbooks
        self._changes = changes
        self._scratch = scratch
        self._concurrency = limits.concurrency
        self._idle = limits.idle
        self._lines: dict[bool, deque[tuple[int, float, str, bytes]]] = {True: deque(), False: deque()}
        """The requests that wait for a slot, by whether they are for long-lived workers."""
        self._to_prepare: list[str] = []
        self._next_line = True
        self._forks = 0
        self._children: dict[int, _Child] = {}
        self._reader = FrameReader()
        self._selector = selectors.DefaultSelector()
        self._wakeup_read, self._wakeup_write = os.pipe()

    def serve(self) -> None:
        """Serve requests; return when the engine has closed the socket and all children were killed."""
        for fd in (self._wakeup_read, self._wakeup_write):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._wakeup_read, selectors.EVENT_READ)
        try:
            with contextlib.suppress(ConnectionError):
                while self._poll_once():
                    pass
        finally:
            for child in self._children.values():
                process_tree.kill(process_tree.tree(child.pid))
                process_tree.kill_group(child.pid, signal.SIGKILL)

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame. This may block, because a thread of the engine does nothing but read."""
        self._control.sendall(Frame(header, body).encode())

    def _poll_once(self) -> bool:
        """Wait for events and handle them; return False if the engine has closed the socket."""
        for key, events in self._selector.select(self._select_timeout()):
            if key.fileobj is self._control:
                if not self._receive():
                    return False
            elif key.fd == self._wakeup_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wakeup_read, _CHUNK)
                self._reap()
            elif key.data.status is not None:
                continue  # `_reap` has closed its pipes since `select`
            elif events & selectors.EVENT_WRITE:
                self._write_request(key.data)
            else:
                self._drain(key.data, key.fd)
        self._end_timed_out()
        self._end_idle()
        for target in self._to_prepare:
            self._load(target)
            if not self._workers(self._playbooks.pool_of(target)):
                self._fork(None, math.inf, b"", target)
        self._to_prepare.clear()
        if self._has_time_to_load():
            self._load(next(iter(self._playbooks.unloaded)))
        while any(self._lines.values()) and self._running() < self._concurrency:
            number, timeout, long_lived, body = self._take()
            if long_lived:
                self._dispatch(number, timeout, long_lived, body)
            else:
                self._fork(number, timeout, body)
        return True

    def _take(self) -> tuple[int, float, str, bytes]:
        """Take a request from the two lines in turn: slow runs of one role must not hold up the batches of others."""
        line = self._next_line if self._lines[self._next_line] else not self._next_line
        self._next_line = not line
        return self._lines[line].popleft()

    def _running(self) -> int:
        return sum(child.number is not None for child in self._children.values())

    def _has_time_to_load(self) -> bool:
        return bool(self._playbooks.unloaded) and not (any(self._lines.values()) or self._running())

    def _load(self, target: str) -> None:
        """Load a target, before its first batch or while there is nothing else to do.

        Loading takes 0.1 s: all targets would take more than the rest of a start, and most clusters use few of them.
        """
        if target not in self._playbooks.unloaded:
            return
        # serve() notices the end of the engine by itself
        with hangup.ends_this_process(self._control, lambda: _clean_up(self._scratch)):
            for failure in self._playbooks.load(target):
                self.send({"type": "warning", "message": str(failure)})
        _check_threads()
        if not self._playbooks.unloaded:
            gc.collect()
            gc.freeze()

    def _dispatch(self, number: int, timeout: float, target: str, body: bytes) -> None:
        """Send a request to an idle worker that serves `target`, or to a new one."""
        self._load(target)
        pool = self._playbooks.pool_of(target)
        child = next((c for c in self._workers(pool) if c.number is None), None)
        child = child or self._fork(None, math.inf, b"", target)
        child.number, child.started = number, time.monotonic()
        child.deadline = child.started + timeout
        self.send({"type": "started", "id": number, "pid": child.pid})
        header = {}
        if target not in child.known and (declaration := self._playbooks.declarations.get(target)) is not None:
            child.known.add(target)
            header["declaration"] = dataclasses.asdict(declaration)
        child.unsent = memoryview(Frame(header, body).encode())
        self._write_request(child)
        # Start the workers for the next requests while this one runs.
        for _ in range(self._concurrency - len(self._workers(pool))):
            self._fork(None, math.inf, b"", target)

    def _write_request(self, child: _Child) -> None:
        """Write as much as the worker's pipe takes, and the rest when the worker has read it.

        The request of a large job has megabytes: a worker that reads it slowly, or is stopped, must not delay others.
        """
        try:
            while child.unsent:
                child.unsent = child.unsent[os.write(child.work_fd, child.unsent) :]
        except BlockingIOError:
            if child.work_fd not in self._selector.get_map():
                self._selector.register(child.work_fd, selectors.EVENT_WRITE, child)
            return
        except BrokenPipeError:
            pass  # `_reap` handles a child that has ended, and its request
        self._end_request(child)

    def _end_request(self, child: _Child) -> None:
        child.unsent = memoryview(b"")
        if child.work_fd >= 0 and child.work_fd in self._selector.get_map():
            self._selector.unregister(child.work_fd)

    def _workers(self, pool: str) -> list[_Child]:
        """The workers of `pool` that take further batches, the one that began first before the others."""
        return [child for child in self._children.values() if child.pool == pool and child.work_fd >= 0]

    def _end_idle(self) -> None:
        """End the workers that had no batch for a while: each has 30 to 60 MiB, and a new one starts in 0.2 s."""
        now = time.monotonic()
        for child in self._idle_workers():
            if now - child.idle_since >= self._idle:
                self._close_work_pipe(child)

    def _idle_workers(self) -> list[_Child]:
        return [child for child in self._children.values() if child.work_fd >= 0 and child.number is None]

    def _forward_results(self, child: _Child) -> None:
        """Forward the results of a worker to the engine, and end the worker after its last batch."""
        for frame in child.answers.feed(bytes(child.result)):
            if frame.header.get("is_partial"):
                seconds = time.monotonic() - child.started
                self.send({"type": "partial", "id": child.number, "seconds": seconds}, frame.body)
                continue
            child.result[:] = frame.body
            self._send_result(child)
            child.number, child.deadline, child.idle_since = None, math.inf, time.monotonic()
            child.output.clear()
            child.served += 1
        child.result.clear()
        if child.number is None and (child.served >= _MAX_BATCHES or time.monotonic() - child.born > _MAX_AGE):
            self._close_work_pipe(child)

    def _close_work_pipe(self, child: _Child) -> None:
        if child.work_fd >= 0:
            self._end_request(child)
            os.close(child.work_fd)
            child.work_fd = -1

    def _select_timeout(self) -> float | None:
        """Return the seconds until the next deadline or the end of an idle worker, None if there is none, 0 if there
        is something to load meanwhile."""
        if self._has_time_to_load():
            return 0.0
        deadlines = [child.deadline for child in self._children.values()]
        deadlines += [child.idle_since + self._idle for child in self._idle_workers()]
        soonest = min(deadlines, default=math.inf)
        return None if soonest == math.inf else max(0.0, soonest - time.monotonic())

    def _receive(self) -> bool:
        data = self._control.recv(_CHUNK)
        for frame in self._reader.feed(data):
            header = frame.header
            if header.get("type") == "prepare":
                self._to_prepare.append(header["target"])
                continue
            long_lived = header.get("long_lived", "")
            self._lines[bool(long_lived)].append((header["id"], header["timeout"], long_lived, frame.body))
        return bool(data)

    def _fork(self, number: int | None, timeout: float, body: bytes, target: str = "") -> _Child:
        """Fork a child for a request, or a worker that runs the role of `target`, which gets its requests later."""
        result_read, result_write = os.pipe()
        output_read, output_write = os.pipe()
        go_read, go_write = os.pipe()
        self._forks += 1
        scratch = self._scratch / f"run-{self._forks}"
        sys.stdout.flush()
        sys.stderr.flush()
        fork_server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_child(fork_server, (result_read, output_read, go_write), output_write)
            pipes = _ChildPipes(go_read, result_write)
            if target:
                exit_after(lambda: _serve_batches(self._playbooks, scratch, pipes, target, self._changes))
            exit_after(lambda: _serve_one(self._playbooks, scratch, pipes, body, timeout))
        for fd in (result_write, output_write, go_read):
            os.close(fd)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        for fd in (result_read, output_read):
            os.set_blocking(fd, False)
        now = time.monotonic()
        child = _Child(number, pid, result_read, output_read, scratch, now, now + timeout)
        self._children[pid] = child
        self._selector.register(result_read, selectors.EVENT_READ, child)
        self._selector.register(output_read, selectors.EVENT_READ, child)
        if target:
            child.pool, child.work_fd = self._playbooks.pool_of(target), go_write
            child.known.update(self._playbooks.declarations)
            os.set_blocking(go_write, False)
            self.send({"type": "worker_started", "pool": child.pool, "pid": pid})
            return child
        # The engine must know the child before it does anything: if this process is killed, the engine
        # kills the run, and a child that was not reported yet reads the end of the pipe and exits.
        self.send({"type": "started", "id": number, "pid": pid})
        with contextlib.suppress(BrokenPipeError):
            os.write(go_write, b"!")
        os.close(go_write)
        return child

    def _become_child(self, fork_server: int, close: tuple[int, ...], output: int) -> None:
        """Close and reset what the child inherited: the sockets, the signal handlers, the pipes of other children.

        The kernel kills the child when the fork server ends, and Ansible's task processes, which leave its process
        group, when the child ends.
        """
        os.setpgid(0, 0)
        process_tree.die_with(fork_server)
        process_tree.children_die_with_this_process()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for sibling in self._children.values():
            for fd in (sibling.result_fd, sibling.output_fd, sibling.work_fd):
                if fd >= 0:
                    os.close(fd)
        self._selector.close()
        self._control.close()
        for fd in (*close, self._wakeup_read, self._wakeup_write):
            os.close(fd)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)

    def _drain(self, child: _Child, fd: int) -> bool:
        """Read a chunk from `fd` and close it at its end; return whether there may be more.

        One chunk for each poll: a run that prints without end must not block the fork server.
        """
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._close_pipe(child, fd)
            return False
        if fd == child.result_fd:
            child.result += data
            if child.pool:
                self._forward_results(child)
        else:
            child.output += data
            del child.output[:-_OUTPUT_KEPT]
        return True

    def _close_pipe(self, child: _Child, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
        if fd == child.result_fd:
            child.result_fd = -1
        else:
            child.output_fd = -1

    def _reap(self) -> None:
        for pid, child in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            # The result is complete. Do not wait for descendants that still have the output open.
            while child.result_fd >= 0 and self._drain(child, child.result_fd):
                pass
            if child.output_fd >= 0:
                self._drain(child, child.output_fd)
            for fd in (child.result_fd, child.output_fd):
                if fd >= 0:
                    self._close_pipe(child, fd)
            child.status = status
            del self._children[pid]
            process_tree.kill(child.to_kill)
            if os.WIFSIGNALED(status):
                process_tree.kill_group(pid, signal.SIGKILL)
                process_tree.kill(process_tree.started_below(child.scratch))
            shutil.rmtree(child.scratch, ignore_errors=True)
            self._close_work_pipe(child)
            if child.number is not None:
                self._send_result(child)
            if child.pool:
                self._send_worker_ended(child, status)

    def _send_worker_ended(self, child: _Child, status: int) -> None:
        self.send(
            {
                "type": "worker_ended",
                "pool": child.pool,
                "pid": child.pid,
                "exit_code": os.waitstatus_to_exitcode(status),
                "batches": child.served,
                "seconds": time.monotonic() - child.born,
            }
        )

    def _send_result(self, child: _Child) -> None:
        ending = RunEnding.TIMED_OUT if child.timed_out else RunEnding.COMPLETED if child.result else RunEnding.CRASHED
        self.send(
            {
                "type": "done",
                "id": child.number,
                "ending": ending,
                "exit": 0 if child.status is None else os.waitstatus_to_exitcode(child.status),
                "seconds": time.monotonic() - child.started,
                "output": child.output.decode(errors="replace"),
            },
            bytes(child.result) if ending is RunEnding.COMPLETED else b"",
        )

    def _end_timed_out(self) -> None:
        """Send SIGTERM to a run that timed out, and a second later SIGKILL to it and all its descendants."""
        now = time.monotonic()
        for child in self._children.values():
            if now < child.deadline:
                continue
            child.deadline = now + _GRACE
            if not child.timed_out:
                child.timed_out = True
                # Ansible's task processes leave the group. Collect them while their parent still runs.
                child.to_kill = process_tree.tree(child.pid)
                process_tree.kill_group(child.pid, signal.SIGTERM)
            else:
                process_tree.kill({*child.to_kill, *process_tree.tree(child.pid)})
                process_tree.kill_group(child.pid, signal.SIGKILL)


def exit_after(work: Callable[[], bool]) -> NoReturn:
    """Do the work of a child and exit, with code 0 for success. Never return to the loop of the fork server."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = 0 if work() else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@dataclass(frozen=True)
class _ChildPipes:
    """A child's ends of its pipes. `go` brings one byte when the child may begin, and a worker its batches."""

    go: int
    result: int


def _serve_one(playbooks: PlaybookRunner, scratch: Path, pipes: _ChildPipes, body: bytes, timeout: float) -> bool:
    """Run one request after the fork server has reported this child; return False if it did not."""
    if not os.read(pipes.go, 1):
        return False
    os.close(pipes.go)
    result = _run(playbooks, scratch, RunRequest.from_body(body, timeout))
    with os.fdopen(pipes.result, "wb") as pipe:
        pipe.write(result.to_body())
    return True


def _serve_batches(
    playbooks: PlaybookRunner, scratch: Path, pipes: _ChildPipes, target: str, changes: ChangeCounter
) -> bool:
    """Run a worker until there are no more batches; return whether it succeeded."""
    from ansible_collections.dljob.operator.plugins.module_utils.shared import worker_protocol

    from dljob_operator.runner.playbook_runner import use_scratch

    use_scratch(scratch)
    worker_protocol.publish(PipeWorkSource(pipes.go, pipes.result, playbooks.declarations, changes))
    result = playbooks.serve_batches(target)
    for failure in result.failures:
        print(failure)
    return result.ok


def _run(playbooks: PlaybookRunner, scratch: Path, request: RunRequest) -> RunResult:
    from dljob_operator.runner.playbook_runner import use_scratch

    use_scratch(scratch)
    _publish(request.snapshot, request.cluster_info)
    return playbooks.run(request)


def _publish(snapshot: Any, cluster_info: Any) -> None:
    """Publish the cached objects to our collection, if it is installed. Other roles do not use them."""
    if snapshot is None:
        return
    try:
        from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
    except ImportError:
        return
    cache_snapshot.publish(snapshot, cluster_info)


def main(argv: list[str]) -> int:
    """Read the configuration, load Ansible and serve. Report to the engine when ready, or the error."""
    limit_arenas()  # also of the children: a worker has 32 threads for its requests
    control = socket.socket(fileno=int(argv[0]))
    frame = _first_frame(control)
    if frame is None:
        return 0
    config = json.loads(frame.body)
    scratch = Path(config["scratch"])
    try:
        return _serve(control, config, scratch)
    finally:
        # The engine does this too, unless it was killed.
        shutil.rmtree(scratch, ignore_errors=True)


def _serve(control: socket.socket, config: dict[str, Any], scratch: Path) -> int:
    started = time.monotonic()
    try:
        with hangup.ends_this_process(control, lambda: _clean_up(scratch)):
            playbooks, failures = _warm(config, scratch)
    except Exception as error:
        traceback.print_exc()
        control.sendall(Frame({"type": "fatal", "message": f"{type(error).__name__}: {error}"}).encode())
        return 1
    # The warm-up left Ansible's signal handlers; restore the defaults.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings = [str(failure) for failure in failures]
    ready = Frame({"type": "ready", "seconds": time.monotonic() - started, "warnings": warnings})
    try:
        control.sendall(ready.encode())
    except ConnectionError:
        return 0  # the engine has ended meanwhile
    from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter

    limits = WorkerLimits(config["concurrency"], config["idle"])
    ForkServer(control, playbooks, scratch, limits, ChangeCounter(config["changes"])).serve()
    return 0


def _clean_up(scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    process_tree.kill(process_tree.tree(os.getpid())[1:])


def _warm(config: dict[str, Any], scratch: Path) -> tuple[PlaybookRunner, list[TaskFailure]]:
    # Runs have their own directories. The files that Ansible creates on import belong to this process and
    # are deleted with its directory.
    tempfile.tempdir = str(scratch)
    gc.disable()  # `warm` enables it
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    os.environ["ANSIBLE_LOCAL_TEMP"] = str(scratch / "ansible")
    os.environ["ANSIBLE_STDOUT_CALLBACK"] = "dljob_collect"
    own = str(Path(__file__).with_name("callbacks"))
    os.environ["ANSIBLE_CALLBACK_PLUGINS"] = ":".join(filter(None, (own, os.getenv("ANSIBLE_CALLBACK_PLUGINS"))))
    from dljob_operator.runner.playbook_runner import PlaybookRunner

    for module in _PRELOADED:
        with contextlib.suppress(ImportError):
            __import__(module)
    playbooks = PlaybookRunner(
        [Target.from_json(data) for data in config["targets"]], scratch, os.getenv("ANSIBLE_INVENTORY")
    )
    failures = playbooks.warm()
    _check_threads()
    gc.collect()
    gc.freeze()
    drop_unused_code()
    return playbooks, failures


def _check_threads() -> None:
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate())
        raise RuntimeError(f"an import has started threads, so forking is not safe: {names}")


def _first_frame(control: socket.socket) -> Frame | None:
    reader = FrameReader()
    while data := control.recv(_CHUNK):
        for frame in reader.feed(data):
            return frame
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
