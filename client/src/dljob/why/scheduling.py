"""Pods that no node takes: by what the scheduler says of each of its rules."""

from __future__ import annotations

from collections.abc import Iterator

from dljob.times import time_of
from dljob.why import fit, scheduler
from dljob.why.facts import Facts, Pod, condition, mapping, maps
from dljob.why.finding import Finding, Rule, first_match, found, rule
from dljob.why.model import Evidence, Severity

SILENT = 30.0
"""Seconds after which a scheduler that has said nothing of a pod is missing."""
_WHERE = "none of {nodes} fits {who}: {what}{nearest}"

TABLE = (
    rule("gang-incomplete", r"minCount|pod group|PodGroup|pods? in (?:the )?(?:queue|gang)|gang is|composite",
         "the gang of {who} cannot start together: {what}{nearest}",
         "Free as much room as all members need together, or lower schedulingPolicy.minAvailable.", Severity.WARNING),
    rule("claim-missing", r"persistentvolumeclaim \"(?P<claim>[^\"]+)\" not found",
         "the PersistentVolumeClaim {claim} of {who} does not exist", "Create the claim {claim}, or correct its name."),
    rule("claim-deleted", r"persistentvolumeclaim \"(?P<claim>[^\"]+)\" is being deleted",
         "the PersistentVolumeClaim {claim} of {who} is being deleted", "Use another claim, or create it again."),
    rule("claim-lost", r"bound to non-existent|persistentvolumeclaim .* is lost|bound to.*non-existent",
         "a claim of {who} has lost its PersistentVolume", "Create the claim again, and restore its data."),
    rule("claim-unbound", "unbound immediate PersistentVolumeClaims", "a claim of {who} has no volume yet",
         "See why the claim is pending: kubectl describe pvc."),
    rule("volume-node-conflict", r"volume node affinity conflict|PersistentVolume's node affinity|"
         r"available volume zone", "none of {nodes} fits {who}, because the volume is tied to others: {what}",
         "Use a volume that the nodes reach, or let the pod run where the volume is."),
    rule("volume-none", "available persistent volumes to bind|enough free storage", _WHERE,
         "Create a PersistentVolume that fits, or use a StorageClass with a provisioner."),
    rule("volume-limit", "exceed max volume count", _WHERE, "Use fewer volumes a node, or more nodes."),
    rule("volume-in-use", r"no available disk|ReadWriteOncePod", _WHERE,
         "Wait until the other pod ends, or use a volume for many readers.", Severity.WARNING),
    rule("device-claim", r"resource ?claim|cannot allocate all claims|device ?class|dynamic resource", _WHERE,
         "Check that a DRA driver offers such devices: kubectl get resourceslices, deviceclasses, resourceclaims."),
    rule("host-ports", "free ports", _WHERE, "Drop hostPort or hostNetwork, or use as many nodes as replicas."),
    rule("pod-anti-affinity", "anti-affinity", _WHERE, "Add nodes, or make the rule preferred instead of required."),
    rule("pod-affinity", "pod affinity rules", _WHERE, "Check the labels of the rule: no running pod has them there."),
    rule("topology-spread", "topology spread", _WHERE,
         "Raise maxSkew, or set whenUnsatisfiable to ScheduleAnyway, or nodeTaintsPolicy to Honor."),
    rule("insufficient-cpu", r"Insufficient cpu", _WHERE, "Ask for less CPU, free some, or add a node."),
    rule("insufficient-memory", "Insufficient memory", _WHERE, "Ask for less memory, free some, or add a node."),
    rule("insufficient-ephemeral-storage", "Insufficient ephemeral-storage", _WHERE,
         "Ask for less ephemeral-storage, or use a volume."),
    rule("insufficient-resource", r"Insufficient (?P<resource>\S+)", _WHERE,
         "Ask for less {resource}, free some, or add a node; without such nodes check the device plugin."),
    rule("too-many-pods", "Too many pods", _WHERE, "Add nodes, or raise the kubelet's maxPods.", Severity.WARNING),
    rule("node-missing", r"requested node name|no nodes available|node .* not found", "there is no node for {who}: {what}",
         "Check nodeName of the template, and that the cluster has nodes."),
    rule("node-unschedulable", "were unschedulable", _WHERE, "kubectl uncordon the node, or add one."),
    rule("node-selector", "node affinity", _WHERE,
         "Correct nodeSelector or affinity of the template, or label nodes: kubectl get nodes --show-labels."),
    rule("taint", "taint", _WHERE, "Add a toleration to the template, or remove the taint."),
    rule("unschedulable", "", "the scheduler does not place {who}: {what}{nearest}", "Read the quoted message."),
)  # fmt: skip
_OF_NODES = tuple(one.id for one in TABLE[[one.id for one in TABLE].index("insufficient-cpu") :])
"""Rules that look at nothing but the node: most pods break some of them on some nodes. All others decide."""

GATE = rule("scheduling-gate", "", "the scheduling gates of {who} are closed: {gates}",
            "Their controller has to remove them from spec.schedulingGates.", Severity.INFO)  # fmt: skip
NO_SCHEDULER = rule("scheduler-missing", "", "the scheduler {scheduler} has not looked at {who}",
                    "Start this scheduler, or correct schedulerName or --gang-scheduler-name.")  # fmt: skip
NOT_YET = rule("preempting", "", "pods on node {node} give way to {who}", "Wait until they have ended.",
               Severity.INFO)  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    nodes = fit.Nodes(facts.snapshot.nodes, facts.snapshot.neighbours)
    for pod in facts.live:
        if pod.node:
            continue
        scheduled = condition(pod.object, "PodScheduled")
        if scheduled.get("reason") == "SchedulingGated" or pod.spec.get("schedulingGates"):
            yield from _gated(facts, pod)
        elif scheduled.get("status") == "False":
            yield _unschedulable(pod, nodes)
        elif facts.age(pod.created) >= SILENT:
            name = str(pod.spec.get("schedulerName") or "default-scheduler")
            words = f"schedulerName: {name}; no condition PodScheduled"
            yield found(NO_SCHEDULER, {"scheduler": name}, Evidence(f"Pod/{pod.name}", words), pod.created, pod.name)


def _gated(facts: Facts, pod: Pod) -> Iterator[Finding]:
    gates = ", ".join(str(one.get("name")) for one in maps(pod.spec.get("schedulingGates")))
    scheduled = condition(pod.object, "PodScheduled")
    quoted = Evidence(f"Pod/{pod.name}", str(scheduled.get("message") or f"schedulingGates: {gates}"))
    yield found(GATE, {"gates": gates}, quoted, time_of(scheduled.get("lastTransitionTime")) or pod.created, pod.name)


def _unschedulable(pod: Pod, nodes: fit.Nodes) -> Finding:
    scheduled = condition(pod.object, "PodScheduled")
    message = str(scheduled.get("message") or "")
    quoted = Evidence(f"Pod/{pod.name}", " ".join(message.split()) or str(scheduled.get("reason")))
    since = time_of(scheduled.get("lastTransitionTime")) or pod.created
    if nominated := mapping(pod.object.get("status")).get("nominatedNodeName"):
        return found(NOT_YET, {"node": nominated}, quoted, since, pod.name)
    verdict = scheduler.parse(message)
    near = nodes.nearest(pod.object)
    one, fields = _deciding(verdict, near)
    what = ", ".join(f"{each.nodes} {each.why}" if each.nodes else each.why for each in verdict.rejections)
    fields |= {"nodes": f"{verdict.total} nodes" if verdict.total else "the nodes", "what": what, "nearest": ""}
    if near and near.misfits:
        fields["nearest"] = f"; nearest is {near.node}: {', '.join(text for _, text in near.misfits)}"
        if near.could_fit_when_empty and one.id.startswith("insufficient-"):
            fields["nearest"] += ", which other pods hold"
            one = Rule(one.id, one.pattern, one.sentence, one.fix, Severity.WARNING)
    return found(one, fields, quoted, since, pod.name)


def _deciding(verdict: scheduler.Verdict, near: fit.Nearest | None) -> tuple[Rule, dict[str, str]]:
    """The rule that matters most: one about the pod itself, or one that the nearest node breaks."""
    matched = [match for each in verdict.rejections if (match := first_match(TABLE, each.why))]
    broken = [id_ for id_, _ in near.misfits] if near else []
    own = [match for match in matched if match[0].id not in _OF_NODES]
    own = own or [match for match in matched if match[0].id in broken]
    chosen = min(own or matched, key=lambda match: TABLE.index(match[0]), default=(TABLE[-1], {}))
    return chosen[0], dict(chosen[1])
