"""What Kubernetes would not write: for good, or for now."""

from __future__ import annotations

import dataclasses

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import mark_failed, mark_retry, planned
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import Conclusion
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MXNET, NOW, MXJob, mxjob
from support.fake_cluster import FakeCluster

REFUSED = ['Pod/digits-worker-0: spec.containers[0].volumeMounts[0].name: Not found: "nowhere"']
QUOTA = ["Pod/digits-worker-0: exceeded quota"]


def job(flavor: str = "v1") -> MXJob:
    return mxjob("digits").flavor(flavor).workers(1)


def refused(fake_cluster: FakeCluster) -> Conclusion:
    return mark_failed(parse_job(fake_cluster.resource, MXNET), REFUSED, fake_cluster.now)


def as_plan(concluded: Conclusion) -> Plan:
    """A plan that writes what the conclusion reports, and nothing else."""
    return Plan(status=concluded.status, events=concluded.events, requeue_after=concluded.requeue_after)


def test_refused_for_good_the_job_fails_in_kubernetes_words() -> None:
    fake_cluster = FakeCluster(job())
    done = refused(fake_cluster)
    assert done.status
    assert done.status["state"] == done.status["phase"] == "Failed"
    assert done.status["failure"] == {"reason": "RefusedByKubernetes", "message": REFUSED[0]}
    assert done.status["reason"] == f"RefusedByKubernetes: {REFUSED[0]}"
    assert [c["type"] for c in done.status["conditions"]] == ["Created", "Failed"]
    assert [(e.type, e.reason) for e in done.events] == [("Warning", "MXJobFailed")]
    assert done.requeue_after == 0, "what was created before the refusal is to be cleaned up"


def test_a_job_of_kueue_has_to_be_created_again() -> None:
    for is_queued in (True, False):
        made = dataclasses.replace(job().job(), is_queued=is_queued)
        status = mark_failed(made, ["Pod/a: no"], NOW).status
        assert status
        assert ("delete it and create it again" in status["reason"]) == is_queued


def test_only_the_first_of_many_refusals_are_reported() -> None:
    fake_cluster = FakeCluster(job())
    done = mark_failed(parse_job(fake_cluster.resource, MXNET), [f"pod {n}" for n in range(100)], fake_cluster.now)
    assert done.status
    assert done.status["failure"]["message"] == "pod 0; pod 1; pod 2"


def test_it_is_not_tried_again() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.carry_out(as_plan(refused(fake_cluster)))
    fake_cluster.settle()
    assert fake_cluster.created == []


def test_what_was_created_before_is_cleaned_up() -> None:
    fake_cluster = FakeCluster(job("v1alpha1"))
    done = refused(fake_cluster)
    fake_cluster.step(status_gets_lost=True)  # its pods were written
    fake_cluster.carry_out(as_plan(done))
    fake_cluster.settle()
    assert (fake_cluster.pods, fake_cluster.services) == ({}, {})
    assert fake_cluster.outcome == ("Failed", "Failed")


def test_an_edit_gives_it_another_chance() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.carry_out(as_plan(refused(fake_cluster)))
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"]["template"]["spec"].update(nodeName="n1"))
    fake_cluster.start()
    assert fake_cluster.outcome == ("Running", "Running")
    assert "failure" not in fake_cluster.status


# --- for now


def test_a_retried_job_is_reported_once() -> None:
    fake_cluster = FakeCluster(job())
    first = mark_retry(planned(fake_cluster.planned()), parse_job(fake_cluster.resource, MXNET), QUOTA)
    assert first.status
    assert first.status["reason"] == QUOTA[0]
    assert first.status["phase"] == "Creating"
    assert first.events == (EventNote("Warning", "FailedCreatePod", QUOTA[0]),), "and not that they were created"
    fake_cluster.resource["status"] = dict(first.status)

    again = mark_retry(planned(fake_cluster.planned()), parse_job(fake_cluster.resource, MXNET), QUOTA)
    assert (again.status, again.events) == (None, ())
    assert len(fake_cluster.planned().pods) == 2, "they are tried again"


def test_once_it_is_written_the_reason_goes() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.resource["status"] = dict(
        mark_retry(planned(fake_cluster.planned()), parse_job(fake_cluster.resource, MXNET), QUOTA).status or {}
    )
    fake_cluster.start()
    assert fake_cluster.status["reason"] == ""
    assert fake_cluster.outcome == ("Running", "Running")


def test_a_failed_job_keeps_its_reason() -> None:
    """A deletion of its cleanup got no answer; nothing would restore the reason."""
    fake_cluster = FakeCluster(job())
    fake_cluster.carry_out(as_plan(refused(fake_cluster)))
    lost = ["Service/digits-worker-0: Read timed out."]
    done = mark_retry(planned(fake_cluster.planned()), parse_job(fake_cluster.resource, MXNET), lost)
    assert done == planned(fake_cluster.planned())


def test_other_news_are_not_held_back() -> None:
    fake_cluster = FakeCluster(job().restart("OnFailure"))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    done = mark_retry(planned(fake_cluster.planned()), parse_job(fake_cluster.resource, MXNET), QUOTA)
    assert done.status
    assert done.status["state"] == "Succeeded"
    assert "MXJobSucceeded" in [e.reason for e in done.events]
