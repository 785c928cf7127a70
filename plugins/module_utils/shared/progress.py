"""What the engine and the reconcile agree on for the progress that programs report.

A pod that reports gets three variables, by the names of Kubeflow Trainer v2, whose protocol its programs speak: the URL
to which they POST ``{"trainerStatus": {...}}``, a file with the pod's own token for :data:`AUDIENCE`, and one with the
certificate of the authority that has signed the endpoint's. The engine keeps the last report and hands it to the
reconcile under the kind :data:`REPORTED`, which is of no API, as one object with the fields of the status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VARIABLE = "DLJOB_PROGRESS_ENDPOINT"
"""The environment variable by which an engine tells its runs of the endpoint."""
AUDIENCE = "dljob.operator/progress"
PATH = "/progress"

REPORTED = "ReportedProgress"
TRAINER_STATUS, RANKS = "trainerStatus", "rankStatus"
UPDATED = "lastUpdatedTime"
HEARD = "heard"
"""When the programs have reported: ``{"listening": seconds for which no report can have been lost, "age": seconds since
the last one or null, "replicas": how many have reported, "oldest": [[replica, age, text], ...]}``. It is of no
status."""
PERIOD = 60
"""Seconds between two status writes for progress alone."""

OFF, OPT_IN, ON = "off", "opt-in", "on"
NO_RANK, RANK_0, ALL_RANKS = "None", "Rank0", "AllRanks"
ANNOTATION_REPORTS = "dljob.operator/reports-progress"
"""On a pod: whether what its program reports is the job's progress, or that of one rank."""
OF_JOB, OF_RANK = "job", "rank"
ANNOTATION_AUTHORITY = "progress.dljob.operator/authority"
"""On such a pod: the certificate by which its program knows the endpoint. The engine's cache does not keep it."""

RANK_CHOICES = (NO_RANK, RANK_0, ALL_RANKS)
"""The values of ``runPolicy.progress``."""


@dataclass(frozen=True)
class Endpoint:
    """Where the pods report. ``authority`` is a certificate in PEM; ``ranks`` those of a job that does not say."""

    url: str
    authority: str
    ranks: str = NO_RANK

    def text(self) -> str:
        """For :data:`VARIABLE`."""
        return json.dumps(asdict(self))


def endpoint_of(environ: Mapping[str, str]) -> Endpoint | None:
    """The endpoint of which an engine has told this process, ``None`` where nothing serves one."""
    text = environ.get(VARIABLE)
    return Endpoint(**json.loads(text)) if text else None
