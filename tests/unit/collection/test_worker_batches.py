"""A long-lived worker: what each reconcile of a batch knows of other jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.action import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter, ChangesSince
from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import Batch
from support.recording_api import Api


class OneBatch:
    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.reported: list[Mapping[str, Any]] = []

    def work(self) -> Iterator[Batch]:
        yield self._batch

    def report_partial(self, result: Mapping[str, Any]) -> None:
        raise AssertionError(f"not the last: {result}")

    def report_final(self, result: Mapping[str, Any]) -> None:
        self.reported.append(result)


def test_a_reconcile_knows_whether_users_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts: list[Context] = []

    def record(context: Context, jobs: Sequence[Any], *_: Any) -> Iterator[tuple[list[Any], bool]]:
        contexts.append(context)
        yield [], True

    changes = ChangesSince(ChangeCounter.create(), {})
    monkeypatch.setattr(reconcile, "reconcile_all", record)
    monkeypatch.setattr(reconcile, "_frameworks", lambda arguments, read: {})
    taken = ChangesSince(ChangeCounter.create(), {})
    source = OneBatch(Batch("t", [{}], None, None, is_contended=True, changes=changes, since_taken=taken))
    own = {"cloud": "", "config_map": "c", "cluster_domain": "d"}
    action = reconcile.ActionModule.__new__(reconcile.ActionModule)
    api = Api()
    assert action._serve(source, Context(api, Reader(api)), own) == {"changed": False}  # noqa: SLF001 - without the socket of a worker
    assert [(one.is_contended, one.changes, one.since_taken) for one in contexts] == [(True, changes, taken)]
    assert len(source.reported) == 1
