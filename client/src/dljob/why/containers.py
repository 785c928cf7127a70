"""Containers that do not start, crash, or are not ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dljob.times import time_of
from dljob.why import ends
from dljob.why.facts import FAILED, Container, Facts, Pod, condition, first_time, last_time, mapping, message_of
from dljob.why.finding import Finding, Rule, first_match, found, rule
from dljob.why.model import Evidence, Severity

INIT_SLOW = 60.0
"""Seconds of an init container from which the job is said to wait for it."""
READY_SLOW = 60.0
"""Seconds of a failing startup or readiness probe; sooner where the container was just killed."""
RECENT = 600.0
"""Seconds after a restart in which a container that runs again still has a problem."""
MANY = 3
"""Restarts of a running container from which they are a problem."""

CONFIGURATION = (
    rule("run-as-non-root", r"runAsNonRoot|non-numeric user", "container {container} of {who} may not run as root, and its image does",
         "Set runAsUser in the template, or USER in the image to a number."),
    rule("key-missing", r"couldn't find key (?P<key>\S+) in (?P<where>\S+ \S+)|references non-existent (?:secret|config) key: (?P<other>\S+)",
         "the key {key}{other} in {where} does not exist, for {who}", "Add the key, or correct its name in the template."),
    rule("secret-missing", r"secret \"(?P<name>[^\"]+)\" not found", "the Secret {name} does not exist, for {who}",
         "Create the Secret {name} in the namespace of the job, or correct its name."),
    rule("configmap-missing", r"configmap \"(?P<name>[^\"]+)\" not found", "the ConfigMap {name} does not exist, for {who}",
         "Create the ConfigMap {name} in the namespace of the job, or correct its name."),
    rule("container-create", "", "container {container} of {who} cannot be created", "Read the quoted error."),
)  # fmt: skip
_CONFIGURING = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError",
                "PreStartHookError", "PostStartHookError")  # fmt: skip
_BY_ITSELF = ("Error", "OOMKilled", "StartError", "ContainerCannotRun")
"""Reasons of a failure that a container has, not its node."""
INIT_CRASH = rule("init-crash", "", "init container {container} of {who} fails, so the pod does not start",
                  "Read its log: kubectl logs {pod} -c {container}.")  # fmt: skip
INIT_WAITS = rule("init-waits", "", "init container {container} of {who} has not ended yet",
                  "See what it waits for: kubectl logs {pod} -c {container}.", Severity.INFO)  # fmt: skip
CRASH_LOOP = rule("crash-loop", "", "container {container} of {who} crashes again and again",
                  "Read its log: kubectl logs {pod} -c {container} --previous.")  # fmt: skip
RESTARTS = rule("restarts", "", "container {container} of {who} has restarted {restarts} times",
                "Read its log: kubectl logs {pod} -c {container} --previous.", Severity.WARNING)  # fmt: skip
PROBES = (
    rule("probe-startup", r"Startup probe (?:failed|errored)", "the startup probe of {who} fails",
         "Correct the probe, or give the program more time (failureThreshold).", Severity.WARNING),
    rule("probe-liveness", r"Liveness probe (?:failed|errored)|failed liveness probe", "the liveness probe of {who} fails, and the kubelet restarts it",
         "Correct the probe; training rarely needs one.", Severity.WARNING),
    rule("probe-readiness", r"Readiness probe (?:failed|errored)", "the readiness probe of {who} fails, so the replica is not ready",
         "Correct the probe, or see why the program does not answer.", Severity.WARNING),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    said_by_pod = False
    for pod in facts.pods:
        for container in pod.containers:
            for one in _of_container(facts, pod, container):
                said_by_pod = said_by_pod or one.who != ""
                yield one
        if pod in facts.live:
            yield from _probes(facts, pod)
    failure = mapping(facts.status.get("failure"))
    if facts.outcome == FAILED and not said_by_pod and failure.get("reason") in _BY_ITSELF:
        yield _ended(str(failure.get("pod") or ""), str(failure.get("container") or ""), failure, None, "")


def _of_container(facts: Facts, pod: Pod, container: Container) -> Iterator[Finding]:
    reason = container.waiting.get("reason")
    quoted = Evidence(f"Pod/{pod.name}", f"{reason}: {' '.join(str(container.waiting.get('message') or '').split())}")
    fields = {"container": container.name, "pod": pod.name, "restarts": container.restarts}
    if reason in _CONFIGURING:
        if match := first_match((*CONFIGURATION[:-1], *_START, CONFIGURATION[-1]), quoted.words):
            limit = {"limit": "", "code": "", "key": "", "other": "", "where": "its source"}
            yield found(match[0], {**limit, **fields, **match[1]}, quoted, pod.created, pod.name)
    elif reason == "CrashLoopBackOff" or _starts_again(pod, container):
        end = container.last
        since = time_of(end.get("finishedAt"))
        words = Evidence(quoted.object, f"{ends.words_of(end)}" if end else quoted.words)
        yield found(INIT_CRASH if container.is_init else CRASH_LOOP, fields, words, since, pod.name)
        if end and ends.classify(end)[0].id not in ends.GENERIC:
            yield _ended(pod.name, container.name, end, container, pod.name)
    elif container.terminated.get("exitCode") not in (None, 0):
        end = container.terminated
        if pod.is_terminating and not pod.has_ended:
            return  # it was told to stop
        if mapping(pod.object.get("status")).get("reason") or _is_disrupted(pod):
            return  # the node's policies say why
        if container.is_init:
            words = Evidence(quoted.object, ends.words_of(end))
            yield found(INIT_CRASH, fields, words, time_of(end.get("finishedAt")), pod.name)
        if not container.is_init or ends.classify(end)[0].id not in ends.GENERIC:
            yield _ended(pod.name, container.name, end, container, pod.name)
    elif container.running:
        began = time_of(container.running.get("startedAt"))
        is_sidecar = container.spec.get("restartPolicy") == "Always"
        if container.is_init and not is_sidecar and facts.age(began) >= INIT_SLOW:
            words = Evidence(
                quoted.object, f"init container {container.name} runs since {container.running.get('startedAt')}"
            )
            yield found(INIT_WAITS, fields, words, began, pod.name)
        end = container.last
        if end.get("exitCode") not in (None, 0) and facts.age(began) < RECENT and container.restarts >= MANY:
            yield found(
                RESTARTS, fields, Evidence(quoted.object, ends.words_of(end)), time_of(end.get("finishedAt")), pod.name
            )


def _starts_again(pod: Pod, container: Container) -> bool:
    """Whether a container has ended with an error, and not for the first time, in a pod whose kubelet starts it again."""
    failed = container.terminated.get("exitCode") not in (None, 0)
    return failed and container.restarts > 0 and not (pod.has_ended or pod.is_terminating)


def _is_disrupted(pod: Pod) -> bool:
    return condition(pod.object, "DisruptionTarget").get("status") == "True"


_START = tuple(
    one for one in ends.TABLE if one.id in ("exec-format", "not-executable", "working-directory", "program-missing")
)


def _ended(pod: str, name: str, end: Any, container: Container | None, who: str) -> Finding:
    one, groups = ends.classify(end)
    limits = mapping(mapping(container.spec.get("resources")).get("limits")) if container else {}
    limit = f" of {limits['memory']}" if "memory" in limits else ""
    fields = {"container": name, "pod": pod, "code": end.get("exitCode"), "limit": limit, **groups}
    since = time_of(end.get("finishedAt"))
    return found(one, fields, Evidence(f"Pod/{pod}", ends.words_of(end)), since, who or pod)


def _probes(facts: Facts, pod: Pod) -> Iterator[Finding]:
    """The newest failure of each probe, of a pod that is not ready for long or was killed for it."""
    if pod.is_ready or not pod.node:
        return
    newest: dict[str, tuple[Rule, Any]] = {}
    for event in facts.events_of_pod(pod):
        if event.get("reason") in ("Unhealthy", "Killing"):
            match = first_match(PROBES, message_of(event))
            if match and facts.age(last_time(event)) < RECENT:
                newest[match[0].id] = (match[0], event)
    since_not_ready = time_of(condition(pod.object, "Ready").get("lastTransitionTime"))
    for one, event in newest.values():
        was_killed = any(container.restarts for container in pod.containers)
        if was_killed or facts.age(since_not_ready) >= READY_SLOW:
            yield found(one, {}, Evidence(f"Pod/{pod.name}", message_of(event)), first_time(event), pod.name)
