"""A job that a user deletes or edits while it waits in its batch: the worker does not begin to write for it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.batch import PARALLEL_JOBS, reconcile_all
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter, ChangesSince
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, NOW, mxjob
from support.recording_api import Api

UIDS = [f"uid-{number}" for number in range(2 * PARALLEL_JOBS + 1)]
LAST = UIDS[-1]


class Users(Api):
    """Somebody changes the last job as soon as the worker creates the first object of its batch."""

    def __init__(self, found: dict[str, Any] | None, changed: str = LAST) -> None:
        super().__init__(present={"metadata": found})
        self.counter = ChangeCounter.create()
        self.reads: list[str] = []
        self._changed = changed

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "GET":
            self.reads.append(path.rpartition("/")[2])
            if self._present["metadata"] is None:
                raise ApiError(404, "NotFound", "the job is gone")
        if method == "POST" and self._changed:
            self._changed, key = "", self._changed
            self.counter.increment(key)
        return super().request(method, path, body, query, content_type)

    def written_for(self, uid: str) -> list[str]:
        made = (one["metadata"] for one in self.made if one["kind"] == "Pod")
        return [one["name"] for one in made if one["ownerReferences"][0]["uid"] == uid]


def reconciled(api: Users) -> dict[str, Outcome]:
    jobs = []
    for uid in UIDS:
        job = mxjob(f"job-of-{uid}").v1().workers(1).resource()
        job["metadata"]["uid"] = uid
        jobs.append(job)
    reader = Reader(api, {uid: {"Pod": [], "Service": []} for uid in UIDS})
    taken = ChangesSince(api.counter, api.counter.counts(UIDS))
    context = Context(api, reader, clock=lambda: NOW, since_taken=taken)
    ((outcomes, _),) = reconcile_all(context, jobs, MXNET)
    return {outcome.resource["metadata"]["uid"]: outcome for outcome in outcomes}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(None, id="deleted"),
        pytest.param({"uid": LAST, "generation": 2}, id="edited or suspended"),
        pytest.param({"uid": "another", "generation": 1}, id="created again"),
    ],
)
def test_nothing_is_written_for_it_and_it_is_reconciled_again(found: dict[str, Any] | None) -> None:
    api = Users(found)
    last = reconciled(api)[LAST]
    assert api.written_for(LAST) == []
    assert (last.ok, last.changed, last.status, last.requeue_after) == (True, False, None, CACHE_REQUEUE)
    assert all(len(api.written_for(uid)) == 2 for uid in UIDS[:-1]), "the others of its batch are created"


def test_a_label_or_another_job_with_the_same_count_keeps_it_from_nothing() -> None:
    api = Users({"uid": LAST, "generation": 1})
    reconciled(api)
    assert len(api.written_for(LAST)) == 2
    assert api.reads == [f"job-of-{LAST}"]


def test_without_a_change_of_the_job_it_costs_no_request() -> None:
    api = Users(None, changed="another job")
    reconciled(api)
    assert [len(api.written_for(uid)) for uid in UIDS] == [2] * len(UIDS)
    assert api.reads == []
