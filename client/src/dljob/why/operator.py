"""Jobs that no operator takes, and the cluster's own services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dljob.times import time_of
from dljob.why.facts import Facts, condition, mapping, maps, name_of
from dljob.why.finding import Finding, found, rule
from dljob.why.model import Evidence, Object, Severity

SILENCE = 20.0
"""Seconds in which an operator gives a new job its first status."""
STALE = 60.0
"""Seconds since the renewal of a Lease from which its holder is gone."""
OURS = (None, "", "dljob.operator/dljob-operator", "kubeflow.org/training-operator", "kubeflow.org/mpi-operator")
"""Values of runPolicy.managedBy of operators that run such jobs here."""
DNS = "coredns"

ELSEWHERE = rule("managed-elsewhere", "", "the job is left to {manager} by runPolicy.managedBy", "Remove managedBy in a new job, or ask that controller.", Severity.INFO)  # fmt: skip
DOWN = rule("operator-not-running", "", "the operator {name} does not run: {why}", "Start it: kubectl -n {namespace} get pods; read its log.")  # fmt: skip
OTHER_NAMESPACE = rule("operator-other-namespace", "", "the operator {name} watches other namespaces: {watched}", "Add this namespace to its --namespace or WATCH_NAMESPACE.")  # fmt: skip
SILENT = rule("operator-silent", "", "no operator has taken the job", "Start the operator; check its --namespace, --selector, and permissions in its log.")  # fmt: skip
BEHIND = rule("operator-behind", "", "the operator has not seen the newest spec of the job", "Read the operator's log.", Severity.WARNING)  # fmt: skip
NO_DNS = rule("dns-not-ready", "", "the cluster's DNS does not run: {why}", "Repair the Deployment coredns in kube-system.")  # fmt: skip
NO_SERVICE = rule("service-missing", "", "the Service {service}, by which replicas find each other, does not exist", "See the operator's log; quotas on Services are a cause.")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    if facts.outcome or facts.is_deleted:
        return
    manager = facts.run_policy.get("managedBy")
    if manager not in OURS:
        quoted = Evidence(f"{facts.kind}/{facts.name}", f"managedBy: {manager}")
        yield found(ELSEWHERE, {"manager": manager}, quoted, facts.created, "")
        return
    is_new = not any(facts.status.get(one) for one in ("conditions", "state", "phase", "observedGeneration"))
    down = list(_down(facts, is_new))
    yield from down
    if not down and is_new and facts.age(facts.created) >= SILENCE:
        others = list(_other_namespaces(facts))
        yield from others
        if not others:
            quoted = Evidence(f"{facts.kind}/{facts.name}", "no status, no Events")
            yield found(SILENT, {}, quoted, facts.created, "")
    yield from () if is_new else _behind(facts)
    yield from _network(facts)


def _behind(facts: Facts) -> Iterator[Finding]:
    """Of an operator that records the generation: the change is as old as the newest write of the object itself."""
    seen, generation = facts.status.get("observedGeneration"), facts.metadata.get("generation")
    written = [
        time_of(one.get("time")) for one in maps(facts.metadata.get("managedFields")) if not one.get("subresource")
    ]
    since = max((one for one in written if one), default=None)
    if isinstance(seen, int) and isinstance(generation, int) and seen < generation and facts.age(since) >= STALE:
        quoted = Evidence(f"{facts.kind}/{facts.name}", f"generation: {generation}, observedGeneration: {seen}")
        yield found(BEHIND, {}, quoted, since, "")


def _operators(facts: Facts) -> Iterator[Object]:
    for one in facts.snapshot.deployments:
        if name_of(one) != DNS:
            yield one


def _namespace(one: Object) -> str:
    return str(mapping(one.get("metadata")).get("namespace") or "")


def _down(facts: Facts, is_new: bool) -> Iterator[Finding]:
    deployments = list(_operators(facts))
    alive = [one for one in deployments if mapping(one.get("status")).get("readyReplicas")]
    if deployments and not alive:
        one = deployments[0]
        available = condition(one, "Available")
        wanted = mapping(one.get("spec")).get("replicas")
        why = "it has 0 replicas" if wanted == 0 else f"none of its {wanted or 1} replicas is ready"
        quoted = Evidence(
            f"Deployment/{name_of(one)}", f"Available is {available.get('status')}: {available.get('message') or why}"
        )
        fields = {"name": name_of(one), "why": why, "namespace": _namespace(one)}
        yield found(DOWN, fields, quoted, time_of(available.get("lastTransitionTime")), "")
        return
    for lease in facts.snapshot.leases if is_new and not alive else ():
        spec = mapping(lease.get("spec"))
        renewed = time_of(spec.get("renewTime"))
        if renewed and facts.age(renewed) >= STALE and facts.age(facts.created) >= SILENCE:
            quoted = Evidence(
                f"Lease/{name_of(lease)}", f"holder {spec.get('holderIdentity')}, renewed at {spec.get('renewTime')}"
            )
            why = "its Lease has not been renewed"
            yield found(DOWN, {"name": name_of(lease), "why": why, "namespace": _namespace(lease)}, quoted, renewed, "")


def _other_namespaces(facts: Facts) -> Iterator[Finding]:
    here = facts.metadata.get("namespace")
    for one in _operators(facts):
        watched = _watched(one)
        if watched and here not in watched and mapping(one.get("status")).get("readyReplicas"):
            names = ", ".join(watched)
            quoted = Evidence(f"Deployment/{name_of(one)}", f"it watches {names}")
            yield found(OTHER_NAMESPACE, {"name": name_of(one), "watched": names}, quoted, facts.created, "")


def _watched(deployment: Object) -> list[str]:
    """The namespaces to which its command or its variables restrict it; none for all."""
    template = mapping(mapping(mapping(deployment.get("spec")).get("template")).get("spec"))
    found_names: list[str] = []
    for container in maps(template.get("containers")):
        words = [str(one) for one in [*(container.get("command") or ()), *(container.get("args") or ())]]
        for index, word in enumerate(words):
            key, _, value = word.partition("=")
            if key in ("--namespace", "-namespace"):
                found_names += _split(value or (words[index + 1] if index + 1 < len(words) else ""))
        for variable in maps(container.get("env")):
            if variable.get("name") in ("WATCH_NAMESPACE", "KUBEFLOW_NAMESPACE"):
                found_names += _split(variable.get("value"))
    return found_names


def _split(value: Any) -> list[str]:
    return [one.strip() for one in str(value or "").split(",") if one.strip()]


def _network(facts: Facts) -> Iterator[Finding]:
    for one in facts.snapshot.deployments:
        status = mapping(one.get("status"))
        if name_of(one) == DNS and _namespace(one) == "kube-system" and not status.get("readyReplicas"):
            available = condition(one, "Available")
            why = f"none of {mapping(one.get('spec')).get('replicas')} replicas is ready"
            quoted = Evidence(
                f"Deployment/{DNS}", f"Available is {available.get('status')}: {available.get('message') or why}"
            )
            yield found(NO_DNS, {"why": why}, quoted, time_of(available.get("lastTransitionTime")), "")
    names = {name_of(one) for one in facts.snapshot.services}
    domains = {str(pod.spec.get("subdomain")): pod for pod in facts.live if pod.spec.get("subdomain")}
    for name, pod in domains.items():
        is_own = str(name).startswith(facts.name) and facts.age(pod.created) >= SILENCE
        if is_own and name not in names and facts.snapshot.could_read("services"):
            quoted = Evidence(f"Pod/{pod.name}", f"subdomain: {name}")
            yield found(NO_SERVICE, {"service": name}, quoted, pod.created, "")
