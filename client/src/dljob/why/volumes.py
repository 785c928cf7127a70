"""Volumes and sandboxes that a pod waits for on its node, and claims without a volume."""

from __future__ import annotations

from collections.abc import Iterator

from dljob.times import time_of
from dljob.why.facts import Facts, first_time, last_time, mapping, maps, message_of, name_of
from dljob.why.finding import Finding, first_match, found, rule
from dljob.why.model import Evidence, Object, Severity

PATIENCE = 60.0
"""Seconds in which a mount with an unknown error may succeed by itself."""

ON_NODE = (
    rule("key-missing", r"references non-existent (?P<kind>secret|config) key: (?P<key>[^ ,]+)",
         "the key {key} of a {kind} does not exist, for {who}", "Add the key, or correct its name in the template."),
    rule("secret-missing", r"secret \"(?P<name>[^\"]+)\" not found", "the Secret {name} does not exist, for {who}",
         "Create the Secret {name} in the namespace of the job, or correct its name."),
    rule("configmap-missing", r"configmap \"(?P<name>[^\"]+)\" not found", "the ConfigMap {name} does not exist, for {who}",
         "Create the ConfigMap {name} in the namespace of the job, or correct its name."),
    rule("volume-driver", r"driver name (?P<driver>\S+) not found in the list of registered CSI drivers",
         "the node of {who} has no CSI driver {driver}", "Install the driver on the node, or select nodes that have it."),
    rule("volume-attached", "Multi-Attach error", "the volume of {who} is attached to another node",
         "Wait until the other pod is gone, or use a ReadWriteMany volume.", Severity.WARNING),
    rule("volume-attach", "FailedAttachVolume", "the volume of {who} cannot be attached", "Read the quoted error of the storage."),
    rule("host-path", "hostPath type check failed", "a hostPath of {who} is not on its node",
         "Create the path on the node, or correct hostPath."),
    rule("runtime-handler", r"RuntimeHandler|no runtime for", "the node of {who} lacks the container runtime of its RuntimeClass",
         "Correct runtimeClassName, or select nodes with that runtime."),
    rule("pod-network", r"FailedCreatePodSandBox|NetworkNotReady", "the node cannot create the sandbox or the network of {who}",
         "Check the CNI plugin and the container runtime of the node.", Severity.WARNING),
)  # fmt: skip
OTHER = rule("volume-mount", "FailedMount|FailedMapVolume", "a volume of {who} cannot be mounted", "Read the quoted error.")  # fmt: skip
_TRANSIENT = ("failed to sync", "object not registered", "timed out waiting for the condition", "context canceled")
_BEGUN = ("Pulling", "Pulled", "Created", "Started")

PENDING = (
    rule("claim-class-missing", r"storageclass.storage.k8s.io \"(?P<class>[^\"]+)\" not found",
         "the claim {claim} of {who} asks for the StorageClass {class}, which does not exist",
         "Correct storageClassName: kubectl get storageclass."),
    rule("claim-no-volume", "no persistent volumes available|no storage class is set",
         "no PersistentVolume fits the claim {claim} of {who}", "Create a volume, or name a StorageClass in the claim."),
    rule("claim-provisioning", "ProvisioningFailed", "the storage cannot create a volume for the claim {claim} of {who}",
         "Read the quoted error of the provisioner."),
    rule("claim-provisioner", r"ExternalProvisioning|aiting for a volume to be created",
         "the claim {claim} of {who} waits for the provisioner of its StorageClass",
         "Check that the provisioner runs.", Severity.WARNING),
)  # fmt: skip
CLAIM = rule("claim-pending", "", "the claim {claim} of {who} has no volume", "See its Events: kubectl describe pvc {claim}.")  # fmt: skip
LOST = rule("claim-lost", "", "the claim {claim} of {who} has lost its PersistentVolume", "Create the claim again, and restore its data.")  # fmt: skip
DELETED = rule("claim-deleted", "", "the claim {claim} of {who} is being deleted", "Use another claim, or create it again.")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    yield from _claims(facts)
    for pod in facts.live:
        if pod.node and pod.phase == "Pending":
            events = facts.events_of_pod(pod)
            begun = [moment for one in events if one.get("reason") in _BEGUN and (moment := last_time(one))]
            newest: dict[str, Finding] = {}
            for event in events:
                since = last_time(event)
                if event.get("type") != "Warning" or (begun and since and since <= max(begun)):
                    continue
                words = f"{event.get('reason')}: {message_of(event)}"
                match = first_match(ON_NODE, words)
                is_old = facts.age(pod.created) >= PATIENCE and not any(one in words for one in _TRANSIENT)
                match = match or (first_match((OTHER,), words) if is_old else None)
                if match:
                    newest[match[0].id] = found(
                        match[0], match[1], Evidence(f"Pod/{pod.name}", words), first_time(event), pod.name
                    )
            yield from newest.values()


def _claims(facts: Facts) -> Iterator[Finding]:
    waiting = [pod for pod in facts.live if pod.phase == "Pending"]
    for claim in facts.snapshot.claims:
        name = name_of(claim)
        users = [pod.name for pod in waiting for one in maps(pod.spec.get("volumes"))
                 if mapping(one.get("persistentVolumeClaim")).get("claimName") == name]  # fmt: skip
        for user in users:
            yield from _claim(facts, claim, name, user)


def _claim(facts: Facts, claim: Object, name: str, user: str) -> Iterator[Finding]:
    metadata, phase = mapping(claim.get("metadata")), mapping(claim.get("status")).get("phase")
    events = facts.events_of("PersistentVolumeClaim", name, str(metadata.get("uid") or ""))
    warned = [
        one
        for one in events
        if one.get("reason") not in ("WaitForFirstConsumer", "ProvisioningSucceeded", "Provisioning")
    ]
    words = f"{warned[-1].get('reason')}: {message_of(warned[-1])}" if warned else f"phase {phase}"
    since = first_time(warned[-1]) if warned else time_of(metadata.get("creationTimestamp"))
    quoted = Evidence(f"PersistentVolumeClaim/{name}", words)
    if phase == "Lost":
        yield found(LOST, {"claim": name}, Evidence(quoted.object, f"phase Lost; {words}"), since, user)
    elif metadata.get("deletionTimestamp"):
        yield found(DELETED, {"claim": name}, quoted, time_of(metadata.get("deletionTimestamp")), user)
    elif phase == "Pending" and (warned or facts.age(since) >= PATIENCE) and not _waits_for_pod(events, facts, user):
        match = first_match(PENDING, words) or (CLAIM, {})
        yield found(match[0], {"claim": name, **match[1]}, quoted, since, user)


def _waits_for_pod(events: list[Object], facts: Facts, user: str) -> bool:
    """Whether the volume comes once the scheduler has chosen a node, which it has not."""
    is_lazy = any(one.get("reason") == "WaitForFirstConsumer" for one in events[-1:])
    return is_lazy and any(pod.name == user and not pod.node for pod in facts.live)
