"""Pods and Services that the API server does not create: quotas, LimitRanges, Pod Security, webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from dljob.times import time_of
from dljob.why.facts import FAILED, Facts, condition, last_time, mapping, message_of
from dljob.why.finding import Finding, first_match, found, rule
from dljob.why.model import Evidence, Object, Severity

CURRENT = 300.0
"""Seconds for which the Event of another operator about a refusal counts. They try again in that time."""

TABLE = (
    rule("quota", r"exceeded quota: (?P<quota>[^,]+), requested: (?P<asked>.*?), used: (?P<used>.*?), limited: (?P<limit>[^;)]*)",
         "the quota {quota} has no room: a pod asks for {asked}, {used} is used, and {limit} is the limit",
         "Wait for other work to end, ask for less, or have the quota raised.", Severity.WARNING),
    rule("quota-unspecified", r"failed quota: (?P<quota>[^:]+): must specify (?P<what>.*)",
         "the quota {quota} wants each container to specify {what}", "Add these requests and limits to the template."),
    rule("limit-range", r"(?P<what>(?:maximum|minimum) \S+ usage per (?:Container|Pod|PersistentVolumeClaim) is [^\]]*|"
         r"\S+ max limit to request ratio per [^\]]*)", "a LimitRange of the namespace forbids the pod: {what}",
         "Change requests and limits of the template: kubectl describe limitrange."),
    rule("pod-security", r"violates PodSecurity \"(?P<level>[^\"]+)\"", "the namespace enforces Pod Security {level}, and the pod violates it",
         "Add the quoted fields to the template's securityContext."),
    rule("account-missing", r"serviceaccount \"(?P<name>[^\"]+)\" not found", "the ServiceAccount {name} does not exist",
         "Create the ServiceAccount {name}, or correct serviceAccountName."),
    rule("webhook-silent", r"failed calling webhook \"(?P<hook>[^\"]+)\"", "the admission webhook {hook} does not answer",
         "Repair its server, or exempt the namespace.", Severity.WARNING),
    rule("webhook-denied", r"admission webhook \"(?P<hook>[^\"]+)\" denied", "the admission webhook {hook} refuses an object of the job",
         "Change what the webhook names."),
    rule("policy-denied", r"ValidatingAdmissionPolicy '(?P<policy>[^']+)'", "the ValidatingAdmissionPolicy {policy} refuses an object of the job",
         "Change what the policy names."),
    rule("priority-class-missing", r"no PriorityClass with name (?P<name>\S+) was found", "the PriorityClass {name} does not exist",
         "Correct priorityClassName: kubectl get priorityclass."),
    rule("runtime-class-missing", r"RuntimeClass \"(?P<name>[^\"]+)\" not found", "the RuntimeClass {name} does not exist",
         "Correct runtimeClassName: kubectl get runtimeclass."),
    rule("namespace-terminating", r"because it is being terminated", "the namespace is being deleted", "Use another namespace."),
    rule("operator-permission", r"User \"(?P<user>[^\"]+)\" cannot (?P<verb>\S+) resource \"(?P<resource>[^\"]+)\"",
         "the operator may not {verb} {resource}", "Give {user} the right: the manifests of deploy/ have all rules."),
    rule("name-taken", "an object of that name exists and does not belong to this job", "an object of another owner has a name that the job needs",
         "Delete that object, or rename the job."),
    rule("name-terminates", r"waiting until (?P<object>\S+?),? .*terminate", "the job waits until the old {object} has terminated",
         "Wait for its grace period; a finalizer may keep it.", Severity.WARNING),
    rule("pod-invalid", r"is invalid: (?P<field>[^:]+): ", "the API server refuses the template: {field} is wrong", "Correct the field with kubectl apply."),
    rule("admission-denied", r"is forbidden: |FailedCreate|a webhook has changed", "the API server refuses an object of the job", "Read the quoted message."),
)  # fmt: skip
_REFUSALS = ("FailedCreatePod", "FailedCreateService", "FailedCreate", "FailedPodCreate")
_KINDS = (
    "Pod/",
    "Job/",
    "Service/",
    "waiting until ",
    "PodGroup/",
    "ConfigMap/",
    "Secret/",
    "ServiceAccount/",
    "RefusedByKubernetes",
)


def find(facts: Facts) -> Iterator[Finding]:
    for words, evidence, since in _refusals(facts):
        if match := first_match(TABLE, words):
            yield found(match[0], match[1], evidence, since, "")
            return


def _refusals(facts: Facts) -> Iterator[tuple[str, Evidence, datetime | None]]:
    """What the operator says of a refusal now; of other operators, what their newest Event says."""
    about = f"{facts.kind}/{facts.name}"
    events = [one for one in facts.events_of_job() if one.get("reason") in _REFUSALS]
    since = last_time(events[0]) if events else None
    if facts.reason.startswith(_KINDS):
        if facts.outcome == FAILED:
            since = time_of(condition(facts.job, FAILED).get("lastTransitionTime"))
        yield facts.reason, Evidence(about, facts.reason), since
    if facts.outcome or len(facts.pods) >= max(facts.wanted, 1):
        return
    jobs = [one for one in facts.snapshot.events if one.get("reason") == "FailedCreate" and _is_of_launcher(facts, one)]
    for event in [*reversed(jobs), *reversed(events)]:
        if facts.age(last_time(event)) < CURRENT:
            kind = mapping(event.get("involvedObject"))
            text = f"{event.get('reason')}: {message_of(event)}"
            yield text, Evidence(f"{kind.get('kind')}/{kind.get('name')}", text), last_time(event)


def _is_of_launcher(facts: Facts, event: Object) -> bool:
    about = mapping(event.get("involvedObject"))
    return about.get("kind") == "Job" and str(about.get("name")).startswith(f"{facts.name}-launcher")
