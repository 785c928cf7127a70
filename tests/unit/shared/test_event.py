"""The Event object that the engine and a reconcile create."""

from __future__ import annotations

import datetime

from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote, event_of

NOW = datetime.datetime(2026, 5, 4, 3, 2, 1, 999, tzinfo=datetime.UTC)
NOTE = EventNote("Warning", "ReconcileFailed", "no such role")
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "a", "namespace": "team", "uid": "1-2", "resourceVersion": "7", "labels": {"x": "y"}},
}


def test_the_whole_event() -> None:
    assert event_of(JOB, NOTE, NOW) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "a.", "namespace": "team"},
        "involvedObject": {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "name": "a",
            "namespace": "team",
            "uid": "1-2",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "ReconcileFailed",
        "message": "no such role",
        "source": {"component": "dljob-operator"},
        "reportingComponent": "dljob-operator",
        "firstTimestamp": "2026-05-04T03:02:01Z",
        "lastTimestamp": "2026-05-04T03:02:01Z",
        "count": 1,
    }


def test_a_name_of_our_own_fits_even_for_a_long_job() -> None:
    job = {**JOB, "metadata": {"name": "j" * 253}}
    event = event_of(job, NOTE, NOW, "0123456789abcdef")
    assert event["metadata"] == {"name": f"{'j' * 200}.0123456789abcdef", "namespace": "default"}
    assert event["involvedObject"] == {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "j" * 253}
