"""The engine's Prometheus metrics: outcomes of jobs, and the work for reconciling them.

    dljob_jobs_created_total, dljob_jobs_deleted_total, dljob_jobs_succeeded_total, dljob_jobs_failed_total,
    dljob_job_restarts_total, dljob_job_stalls_total
                                {namespace, kind}           since this process started, without older jobs
    dljob_jobs                  {namespace, kind, state}    existing jobs by status.state ("" without one)
    dljob_jobs_waiting          {namespace, kind, cause}    those that wait: Queue, Quota, Node, Image ... (see `waits`)
    dljob_reconciles_total      {kind, result}              jobs reconciled, result "ok" or "failed"
    dljob_runs_total            {kind}                      runs of a role; one may reconcile many jobs
    dljob_run_seconds           {kind}                      a histogram of their durations
    dljob_queue_jobs                                        jobs that currently wait for a run
    dljob_job_first_pod_seconds {kind}                      a histogram, from the creation of a job to its first pod
    dljob_job_running_seconds   {kind}                      the same to the time at which all its replicas ran
    dljob_job_duration_seconds  {kind, result}              from its start to its end, "succeeded" or "failed"

the last three with each job once, and without what happened before this process started;

with --usage on also, of the accounts in the statuses of jobs

    dljob_job_resource_seconds_total       {namespace, kind, resource}   core, GiB and device seconds of their pods
    dljob_job_phase_seconds_total          {namespace, kind, phase}      queued, starting, running ...
    dljob_job_interruptions_total          {namespace, kind, cause}      Startup, Disruption, Failure, Stall ...
    dljob_job_interruption_seconds_total   {namespace, kind, cause}
    dljob_job_interruption_resource_seconds_total
                                           {namespace, kind, cause, resource}   what the job held meanwhile
    dljob_job_held_resources               {namespace, kind, resource}   what the pods of existing jobs hold now

whose counters grow when a status is written: a job that runs undisturbed for days adds them at its next change. `kind`,
`phase` and `cause` have few values, and `resource` names what nodes have, since only pods with a node count;

and the process metrics of prometheus_client (process_cpu_seconds_total, process_resident_memory_bytes ...). An example
of `kind` is "kubeflow.org/v1 MXJob". On request the counters of jobs have training-operator's names too, for dashboards
and alerts that were written for it:

    training_operator_jobs_created_total, training_operator_jobs_deleted_total,
    training_operator_jobs_successful_total, training_operator_jobs_failed_total,
    training_operator_jobs_restarted_total    {job_namespace, framework}

`framework` is the role's name: tensorflow, pytorch, mxnet, xgboost, paddle, jax ... Source: training-operator 1.9.
"""

from __future__ import annotations

import datetime
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import STATE_FAILED, STATE_SUCCEEDED
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dljob_operator.engine.cache.predicates import Change, uid_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.serving.job_times import JobTimes
from dljob_operator.engine.serving.usage_metrics import UsageMetrics
from dljob_operator.engine.serving.waits import cause_of
from dljob_operator.engine.statuses import end_of, is_stalled, status_of

CREATED, DELETED, SUCCEEDED, FAILED, RESTARTED, STALLED = (
    "created",
    "deleted",
    "succeeded",
    "failed",
    "restarted",
    "stalled",
)
_ENDS = {STATE_SUCCEEDED: SUCCEEDED, STATE_FAILED: FAILED}

_ABOUT = {
    CREATED: "Jobs that were created",
    DELETED: "Jobs that were deleted",
    SUCCEEDED: "Jobs that have succeeded",
    FAILED: "Jobs that have failed",
    RESTARTED: "Replicas, and whole jobs, that were started again",
    STALLED: "Stalls of jobs, by their stallPolicy",
}
_OWN = {
    **{event: f"dljob_jobs_{event}" for event in (CREATED, DELETED, SUCCEEDED, FAILED)},
    RESTARTED: "dljob_job_restarts",
    STALLED: "dljob_job_stalls",
}
_TRAINING_OPERATOR = {
    **{event: f"training_operator_jobs_{event}" for event in (CREATED, DELETED, FAILED, RESTARTED)},
    SUCCEEDED: "training_operator_jobs_successful",
}
"""The names of the counters of jobs, by event."""

_Labels = tuple[str, str, str, str]
"""Of a job: namespace, kind, state, and what it waits for."""
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds. A run that changes nothing is below the first bucket, one with a thousand replicas near the tenth."""


class Metrics:
    """Counts events. It is safe to use from several threads.

    ``frameworks`` maps each kind to its framework, to count jobs under training-operator's names too; None: no.
    """

    def __init__(
        self,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        frameworks: Mapping[str, str] | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self._now = now
        self._began = self._seconds_now()
        self._jobs_there: dict[tuple[str, str], _Labels] = {}
        self._labels: dict[_Labels, _Labels] = {}

        def counter(name: str, text: str, labels: Iterable[str]) -> Counter:
            return Counter(name, text, labels, registry=self.registry)

        def of_jobs(names: Mapping[str, str], labels: Iterable[str]) -> dict[str, Counter]:
            return {event: counter(name, _ABOUT[event], labels) for event, name in names.items()}

        self._jobs = of_jobs(_OWN, ("namespace", "kind"))
        self._frameworks = frameworks
        self._jobs_as_elsewhere = (
            {} if frameworks is None else of_jobs(_TRAINING_OPERATOR, ("job_namespace", "framework"))
        )
        self._usage = UsageMetrics(self.registry)
        self._times = JobTimes(self.registry)
        self._reconciles = counter("dljob_reconciles", "Jobs that were reconciled", ("kind", "result"))
        self._runs = counter("dljob_runs", "Runs of a role, each for one job or many", ("kind",))
        self._seconds = Histogram(
            "dljob_run_seconds", "Duration of a run", ("kind",), buckets=_BUCKETS, registry=self.registry
        )
        ProcessCollector(registry=self.registry)

    def _seconds_now(self) -> datetime.datetime:
        """Creation timestamps have whole seconds."""
        return self._now().replace(microsecond=0)

    def job_changed(self, kind: str, change: Change) -> None:
        """Count a change of a watched job. A list reports old jobs as new; creationTimestamp distinguishes them."""
        namespace, key = change.obj["metadata"].get("namespace", ""), (kind, uid_of(change.obj))
        if change.new is None:
            self._jobs_there.pop(key, None)
        else:
            status = status_of(change.new)
            labels = namespace, kind, str(status.get("state") or ""), cause_of(status)
            self._jobs_there[key] = self._labels.setdefault(labels, labels)
        self._usage.job_changed(namespace, key, change)
        is_new = self._is_new(change)
        self._times.job_changed(key, change, self._now(), is_new=is_new)
        for event, amount in _events(change, is_new=is_new):
            self._jobs[event].labels(namespace, kind).inc(amount)
            if event in self._jobs_as_elsewhere and self._frameworks is not None:
                self._jobs_as_elsewhere[event].labels(namespace, self._frameworks.get(kind, kind)).inc(amount)

    def _is_new(self, change: Change) -> bool:
        """Whether this process sees the job from its creation on."""
        return change.old is None and change.new is not None and _created(change.new) >= self._began

    def ran(self, kind: str, seconds: float) -> None:
        self._runs.labels(kind).inc()
        self._seconds.labels(kind).observe(seconds)

    def reconciled(self, kind: str, *, ok: bool) -> None:
        self._reconciles.labels(kind, "ok" if ok else "failed").inc()

    def watch(self, waiting: Callable[[], int]) -> None:
        """Show the jobs that there are, and call `waiting` for the length of the queue, at each scrape.

        Jobs that are created from now on count as new: a standby that takes over does not count those of its leader.
        """
        self._began = self._seconds_now()
        self.registry.register(_CurrentJobs(lambda: Tally(list(self._jobs_there.values())), waiting))


def _events(change: Change, *, is_new: bool) -> Iterator[tuple[str, int]]:
    """What has happened to a job, and how often."""
    if change.new is None:
        yield DELETED, 1
        return
    if is_new:
        yield CREATED, 1
    if change.old is None and not is_new:
        return
    before, after = status_of(change.old), status_of(change.new)
    end = end_of(after)
    if end and end != end_of(before):
        yield _ENDS[end], 1
    if is_stalled(after) and not is_stalled(before):
        yield STALLED, 1
    again = _retries(after) - _retries(before)
    if again > 0:
        yield RESTARTED, again


class _CurrentJobs(Collector):
    """The gauges that are computed at each scrape."""

    def __init__(self, tally: Callable[[], Tally[_Labels]], waiting: Callable[[], int]) -> None:
        self._tally = tally
        self._waiting = waiting

    def describe(self) -> Iterator[Metric]:
        """Return nothing, because otherwise registering would call `collect`."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        there = GaugeMetricFamily("dljob_jobs", "Jobs that there are", labels=("namespace", "kind", "state"))
        waits = GaugeMetricFamily("dljob_jobs_waiting", "Jobs that wait", labels=("namespace", "kind", "cause"))
        states, causes = Tally[tuple[str, str, str]](), Tally[tuple[str, str, str]]()
        for (namespace, kind, state, cause), count in self._tally().items():
            states[namespace, kind, state] += count
            if cause:
                causes[namespace, kind, cause] += count
        for family, tally in ((there, states), (waits, causes)):
            for labels, count in sorted(tally.items()):
                family.add_metric(labels, count)
            yield family
        yield GaugeMetricFamily("dljob_queue_jobs", "Jobs that wait for a run", value=self._waiting())


def _retries(status: Mapping[str, Any]) -> int:
    retries = status.get("retries")
    return sum(n for n in retries.values() if isinstance(n, int)) if isinstance(retries, Mapping) else 0


def _created(job: Object) -> datetime.datetime:
    text = job["metadata"].get("creationTimestamp") or "1970-01-01T00:00:00Z"
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
