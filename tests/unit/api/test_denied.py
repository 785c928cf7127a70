"""Pods that a quota or an admission rule denies: few requests, one reason, and tries that become rarer."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, mxjob, stamp
from support.recording_api import Api, context_of

QUOTA = ApiError(403, "Forbidden", "exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10")
JOB = mxjob("digits").v1().workers(300).resource()


class Counting(Api):
    """Counts the requests for pods."""

    tries = 0

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "POST" and body["kind"] == "Pod":
            self.tries += 1
        return super().request(method, path, body, query, content_type)


def seen(api: Api, status: dict[str, Any] | None = None) -> Outcome:
    return reconcile(context_of(api), {**JOB, "status": status or {}}, MXNET)


def test_few_requests_and_one_stable_reason() -> None:
    """300 replicas under a quota of 10 pods made 3,502 requests a minute."""
    first = Counting({"Pod": QUOTA})
    outcome = seen(first)
    assert first.tries < 10, "what was in progress, not one for each pod"
    assert first.status is not None
    assert "exceeded quota" in first.status["reason"]
    (event,) = first.events()
    assert event.startswith("FailedCreatePod")
    assert outcome.requeue_after == 5.0
    again = Counting({"Pod": QUOTA})
    seen(again, first.status)
    assert (again.status, again.events()) == (None, []), "the same refusal writes nothing"


@pytest.mark.parametrize(("started", "requeue"), [(0, 5.0), (-40, 5.0), (-100, 10.0), (-300, 30.0), (-100_000, 60.0)])
def test_the_tries_become_rarer(started: float, requeue: float) -> None:
    api = Counting({"Pod": QUOTA})
    assert seen(api, {"startTime": stamp(started), "phase": "Creating"}).requeue_after == requeue


def test_an_error_that_passes_delays_no_other_pod() -> None:
    api = Counting({"Pod": ApiError(500, "InternalError", "etcd is away")})
    assert seen(api).requeue_after == 5.0
    assert api.tries == 301


def test_a_denied_service_delays_no_pod_and_no_retry() -> None:
    """Only the creation of pods stops at the first denial: their number is what a quota limits."""
    api = Counting({"Service": QUOTA})
    status = {"startTime": stamp(-100_000), "phase": "Creating"}
    assert seen(api, status).requeue_after == 5.0
    assert api.tries == 301
