"""The worker process's end of its two pipes: it reads batches from one and writes results to the other, as frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dljob_operator.runner.messages import Frame, FrameReader, RunEnding, RunRequest, RunResult, TaskFailure

if TYPE_CHECKING:
    from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import (
        ChangeCounter,
        ChangesSince,
    )
    from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import Batch, Declaration

_CHUNK = 256 * 1024


class PipeWorkSource:
    """Reads requests from `work_fd` and writes results to `result_fd`. Used by one thread of one process."""

    def __init__(
        self,
        work_fd: int,
        result_fd: int,
        declarations: Mapping[str, Declaration] | None = None,
        changes: ChangeCounter | None = None,
    ) -> None:
        """`declarations` are those of the targets that share the worker, as far as they are loaded; the first batch of
        another brings its own. `changes` are the engine's counts."""
        self._work_fd = work_fd
        self._result_fd = result_fd
        self._declarations = dict(declarations or {})
        self._changes = changes

    def work(self) -> Iterator[Batch]:
        reader = FrameReader()
        while data := os.read(self._work_fd, _CHUNK):
            # nothing keeps a frame while its batch is reconciled
            yield from map(self._batch, reader.feed(data))

    def _batch(self, frame: Frame) -> Batch:
        # only here: the fork server imports this module before Ansible's own loader of collections is in place
        from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import (
            BATCH_VAR,
            Batch,
            Declaration,
        )

        request = RunRequest.from_body(frame.body, 0.0)
        if (declaration := frame.header.get("declaration")) is not None:
            self._declarations[request.target] = Declaration(**declaration)
        return Batch(
            request.target,
            request.values[BATCH_VAR],
            request.snapshot,
            request.cluster_info,
            self._declarations.get(request.target),
            request.is_contended,
            self._changes_since(request.changes),
            self._changes_since(request.taken),
        )

    def _changes_since(self, before: Mapping[str, int] | None) -> ChangesSince | None:
        from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangesSince

        return None if self._changes is None or before is None else ChangesSince(self._changes, before)

    def report_partial(self, result: Mapping[str, Any]) -> None:
        self._send({"is_partial": True}, result)

    def report_final(self, result: Mapping[str, Any]) -> None:
        self._send({}, result)

    def _send(self, header: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        frame = memoryview(Frame(header, run_result(result).to_body()).encode())
        while frame:
            frame = frame[os.write(self._result_fd, frame) :]


def run_result(result: Mapping[str, Any]) -> RunResult:
    """Convert the result of our task to the result of a run with this one task."""
    failed = bool(result.get("failed"))
    failures = (TaskFailure("Reconcile", str(result.get("msg") or "")),) if failed else ()
    changed = bool(result.get("changed"))
    stats = {"ok": 0, "failures": 1} if failed else {"ok": 1, "changed": int(changed)}
    return RunResult(RunEnding.COMPLETED, failures, stats, (result["dljob"],))
