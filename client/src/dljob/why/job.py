"""What the job itself says: suspended, failed and by which limit, deleted, out of step with its pods, or hanging."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from dljob.kinds import FIRST_CONTAINER, UnknownKind, kind_of
from dljob.times import time_of
from dljob.view import QUEUE_LABEL
from dljob.why.facts import FAILED, SUCCEEDED, SUSPENDED, Facts, condition, is_true, mapping, maps
from dljob.why.finding import Finding, first_match, found, rule
from dljob.why.model import Evidence, Severity

PATIENCE = 60.0
"""Seconds in which an operator creates what is missing."""
HANG = 1800.0
"""Seconds without a sign of progress from which a job may hang."""
COLLECTIVE = ("PyTorchJob", "JAXJob", "PaddleJob", "XGBoostJob")
"""Kinds whose workers end together."""
SIZES = (
    "WORLD_SIZE",
    "NUM_PROCESSES",
    "JAX_NUM_PROCESSES",
    "PADDLE_TRAINERS_NUM",
    "DMLC_NUM_WORKER",
    "DMLC_NUM_SERVER",
)
"""Variables with the number of processes, which all replicas must have alike."""

OUTCOMES = (
    rule("backoff-limit", r"BackoffLimitExceeded|reached the specified backoff limit|backoffLimit",
         "the job failed after as many restarts as runPolicy.backoffLimit allows", "Repair what ended it, then raise backoffLimit or create it again."),
    rule("replica-backoff-limit", r"MaxRestartsPerReplicaExceeded", "a replica restarted more often than runPolicy.maxRestartsPerReplica allows",
         "Repair what ended it, or raise the limit."),
    rule("restarts-within", r"RestartsWithinExceeded", "the job restarted more often in a time than runPolicy.restartsWithin allows",
         "Repair what ended its replicas, then create it again, or raise the limit."),
    rule("stalled", r"no program has reported progress (?:for|within)", "the programs of the job report no progress any more: one may hang, or have lost a peer",
         "Read the logs of all replicas with kubectl dljob logs; runPolicy.stallPolicy can restart them."),
    rule("deadline", r"^\S*(?:Failed: )?DeadlineExceeded|active longer than specified deadline|active for longer than",
         "the job ran longer than runPolicy.activeDeadlineSeconds", "Raise the deadline, or see what the job waited for."),
    rule("pending-timeout", r"PendingTimeoutExceeded", "a pod was pending for longer than runPolicy.pendingTimeoutSeconds",
         "Repair what the message quotes, or raise the time."),
    rule("failure-policy", r"PodFailurePolicy", "a rule of runPolicy.podFailurePolicy failed the job", "Repair what ended the pod, or change the rule."),
    rule("container-name", r"(?:requires|no) a? ?(?:default )?container named '?\"?(?P<name>[\w-]+)|There is no container named (?P<other>[\w-]+)",
         "the template lacks a container named {name}{other}, which runs the training", "Rename the container of the program."),
    rule("replicas-of-groups", r"the groups have \d+ replicas", "the groups have more replicas than their type", "Raise replicas, or lower a group's."),
    rule("too-many-replicas", r"the operator allows \d+|would have \d+ bytes", "the job has too many replicas for the operator", "Use fewer, or ask the administrator."),
    rule("job-invalid", r"FailedValidation|InvalidSpec|is not valid|FailedValidate", "the spec of the job is invalid", "Correct the quoted field with kubectl apply."),
)  # fmt: skip
JOB_FAILED = rule("job-failed", "", "the job has failed", "Read the quoted message.")
SUSPENDED_BY = rule("suspended", "", "the job is suspended{by}", "Resume it: set spec.runPolicy.suspend to false.", Severity.INFO)  # fmt: skip
DELETED = rule("job-finalizer", "", "the job is deleted, and waits for the finalizers {finalizers}", "Only their controller may remove them; see why it does not.")  # fmt: skip
DELETING = rule("job-deleting", "", "the job is deleted, and its pods end", "Wait for their grace period.", Severity.INFO)  # fmt: skip
START_ORDER = rule("start-order", "", "replicas wait for their turn: {why}", "Wait; startupPolicy sets the order.", Severity.INFO)  # fmt: skip
MISSING = rule("replicas-missing", "", "the job has {pods} of {wanted} pods", "Read the operator's log.", Severity.WARNING)  # fmt: skip
DISAGREE = rule("replicas-disagree", "", "replicas started with different {variable}: {values}", "Restart the job, so that all have the same environment.")  # fmt: skip
ALONE = rule("hang-member-ended", "", "{ended} has ended {minutes} minutes ago, and other workers still run: they may wait for it", "See their logs; an early return of one rank leaves the others in a collective call.", Severity.WARNING)  # fmt: skip
STALLED = rule("hang-no-progress", "", "the job has reported no progress for {minutes} minutes, and all its pods run", "See the logs of all replicas; set activeDeadlineSeconds.", Severity.WARNING)  # fmt: skip
_NAME = next(one for one in OUTCOMES if one.id == "container-name")
_STALLED = next(one for one in OUTCOMES if one.id == "stalled")
_TURN = "starts once all replicas of"


def find(facts: Facts) -> Iterator[Finding]:
    about = f"{facts.kind}/{facts.name}"
    if facts.is_deleted:
        yield from _deleted(facts, about)
        return
    if facts.outcome == FAILED:
        yield _failed(facts, about)
    if facts.outcome:
        return
    if facts.is_suspended_by_spec or (is_true(facts.job, SUSPENDED) and not facts.live and not facts.reason):
        by = _who_suspends(facts)
        since = time_of(condition(facts.job, SUSPENDED).get("lastTransitionTime"))
        yield found(SUSPENDED_BY, {"by": by}, Evidence(about, f"runPolicy.suspend: true{by}"), since, "")
        return
    if _TURN in facts.reason:
        yield found(START_ORDER, {"why": facts.reason}, Evidence(about, facts.reason), None, "")
    if is_true(facts.job, "Stalled"):
        stalled = condition(facts.job, "Stalled")
        since = time_of(stalled.get("lastTransitionTime"))
        yield found(_STALLED, {}, Evidence(about, str(stalled.get("message"))), since, "")
    yield from _container_names(facts, about)
    yield from _missing(facts, about)
    yield from _disagreement(facts)
    yield from _hang(facts, about)


def _deleted(facts: Facts, about: str) -> Iterator[Finding]:
    since = time_of(facts.metadata.get("deletionTimestamp"))
    finalizers = [str(one) for one in facts.metadata.get("finalizers") or ()]
    others = [one for one in finalizers if one not in ("foregroundDeletion", "orphan")]
    words = (
        f"deletionTimestamp: {facts.metadata.get('deletionTimestamp')}, finalizers: {', '.join(finalizers) or 'none'}"
    )
    one = DELETED if others else DELETING
    yield found(one, {"finalizers": ", ".join(others)}, Evidence(about, words), since, "")


def _failed(facts: Facts, about: str) -> Finding:
    failed = condition(facts.job, FAILED)
    words = facts.reason or f"{failed.get('reason')}: {failed.get('message')}"
    match = first_match(OUTCOMES, words) or (JOB_FAILED, {})
    fields = {"name": "", "other": "", **match[1]}
    return found(match[0], fields, Evidence(about, words), time_of(failed.get("lastTransitionTime")), "")


def _who_suspends(facts: Facts) -> str:
    """`` by <field manager>``, who has written the field last."""
    for entry in maps(facts.metadata.get("managedFields")):
        spec = mapping(mapping(entry.get("fieldsV1")).get("f:spec"))
        if "f:suspend" in mapping(spec.get("f:runPolicy")) or "f:suspend" in spec:
            return f" by {entry.get('manager')}"
    return ""


def _container_names(facts: Facts, about: str) -> Iterator[Finding]:
    """Of a job without pods: an operator has refused it without failing it, or does not look at it at all."""
    if facts.pods:
        return
    with suppress(UnknownKind):
        wanted = kind_of(facts.job).container_of(facts.job)
        for replicas in facts.replicas:
            names = [str(each.get("name")) for each in maps(mapping(replicas.template.get("spec")).get("containers"))]
            if wanted != FIRST_CONTAINER and names and wanted not in names:
                quoted = Evidence(about, f"containers of {replicas.type}: {', '.join(names)}")
                yield found(_NAME, {"name": wanted, "other": ""}, quoted, facts.created, "")
                return
    for type_ in ("Failed", "Created", "Running"):
        one = condition(facts.job, type_)
        words = f"{one.get('reason')}: {one.get('message')}"
        match = first_match(OUTCOMES, words)
        if match and match[0].id in ("container-name", "job-invalid"):
            fields = {"name": "", "other": "", **match[1]}
            yield found(match[0], fields, Evidence(about, words), time_of(one.get("lastTransitionTime")), "")
            return


def _missing(facts: Facts, about: str) -> Iterator[Finding]:
    """Fewer pods than replicas, without a reason."""
    running = condition(facts.job, "Running")
    since = time_of(running.get("lastTransitionTime")) or facts.created
    varies = "elasticPolicy" in facts.spec or facts.spec.get("enableDynamicWorker") or facts.kind == "MPIJob"
    ended = sum(
        int(one.get("succeeded") or 0)
        for one in mapping(facts.status.get("replicaStatuses")).values()
        if isinstance(one, dict)
    )
    missing = facts.wanted - max(len(facts.pods), len(facts.live) + ended)
    is_told = bool(facts.reason) or not facts.status or QUEUE_LABEL in facts.labels
    if (
        missing > 0
        and not (varies or is_told)
        and facts.age(since) >= PATIENCE
        and facts.age(facts.created) >= PATIENCE
    ):
        fields = {"pods": len(facts.pods), "wanted": facts.wanted}
        yield found(MISSING, fields, Evidence(about, f"replicas: {facts.wanted}, pods: {len(facts.pods)}"), since, "")


def _disagreement(facts: Facts) -> Iterator[Finding]:
    if "elasticPolicy" in facts.spec or facts.spec.get("enableDynamicWorker"):
        return
    for variable in SIZES:
        seen: dict[str, str] = {}
        for pod in facts.live:
            for container in maps(pod.spec.get("containers")):
                for one in maps(container.get("env")):
                    if one.get("name") == variable and "value" in one:
                        seen.setdefault(str(one["value"]), pod.name)
        if len(seen) > 1:
            values = ", ".join(f"{value} in {name}" for value, name in sorted(seen.items()))
            first = min(seen.values())
            yield found(
                DISAGREE,
                {"variable": variable, "values": values},
                Evidence(f"Pod/{first}", f"{variable}: {values}"),
                None,
                "",
            )


def _hang(facts: Facts, about: str) -> Iterator[Finding]:
    """Careful: silence is no proof, so only signs count that a healthy job does not give."""
    running = [pod for pod in facts.live if pod.phase == "Running"]
    if not running or len(running) != len(facts.live):
        return
    reported = time_of(mapping(facts.status.get("trainerStatus")).get("lastUpdatedTime"))
    if reported and facts.age(reported) >= HANG:
        words = f"trainerStatus.lastUpdatedTime: {mapping(facts.status['trainerStatus'])['lastUpdatedTime']}"
        yield found(STALLED, {"minutes": int(facts.age(reported) // 60)}, Evidence(about, words), reported, "")
    if facts.kind not in COLLECTIVE:
        return
    for pod in facts.pods:
        ends = [
            time_of(one.terminated.get("finishedAt")) for one in pod.containers if not one.is_init and one.terminated
        ]
        end = max((one for one in ends if one), default=None)
        others = [one for one in running if one.type == pod.type]
        if pod.phase == SUCCEEDED and end and others and facts.age(end) >= HANG:
            fields = {"ended": pod.name, "minutes": int(facts.age(end) // 60)}
            yield found(
                ALONE, fields, Evidence(f"Pod/{pod.name}", f"phase Succeeded, finished at {end.isoformat()}"), end, ""
            )
