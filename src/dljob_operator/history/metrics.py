"""The metrics of the history; see docs/history.md.

dljob_history_rows_total                              {table}    rows written: jobs, job_days
dljob_history_pruned_rows_total                                  rows deleted since they were too old
dljob_history_failures_total                                     writes that the database did not take
dljob_history_lost_jobs_total                                    jobs whose record had no room, or was refused
dljob_history_queue_jobs                                         records that wait
dljob_history_last_success_timestamp_seconds                     when the database last took a write; 0: never
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class HistoryMetrics:
    """Counts what happens to the records."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Counter("dljob_history_rows", "Rows written to the history", ("table",), registry=registry)
        self.pruned = Counter("dljob_history_pruned_rows", "Rows deleted, too old", registry=registry)
        self.failures = Counter("dljob_history_failures", "Writes that the database did not take", registry=registry)
        self.lost = Counter("dljob_history_lost_jobs", "Jobs that the history lacks", registry=registry)
        self.queue = Gauge("dljob_history_queue_jobs", "Records that wait for the database", registry=registry)
        self.last_success = Gauge(
            "dljob_history_last_success_timestamp_seconds", "When the database last took a write", registry=registry
        )
        for table in ("jobs", "job_days"):
            self._rows.labels(table)

    def wrote(self, table: str, rows: int, at: float) -> None:
        """Count `rows` of a table, written `at` a time in seconds since 1970."""
        self._rows.labels(table).inc(rows)
        self.last_success.set(at)
