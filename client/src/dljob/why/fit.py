"""Which node comes nearest to what a pod needs.

It knows requests, node selectors, required node affinity, taints, cordons and the number of pods, and none of the
scheduler's rules about other pods and volumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dljob import quantity
from dljob.view import pod_requests
from dljob.why.facts import mapping, maps, name_of
from dljob.why.model import Object

Amounts = dict[str, Decimal]
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
_CORDON = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Nearest:
    """A node, and what is missing there."""

    node: str
    misfits: tuple[tuple[str, str], ...]
    """Id of the cause and text of each; empty where the node fits as far as this module knows."""
    could_fit_when_empty: bool
    """Whether the node would fit without other pods."""


class Nodes:
    """The nodes with what is left of each."""

    def __init__(self, nodes: Sequence[Object], neighbours: Iterable[Object]) -> None:
        self._nodes = nodes
        self._used: dict[str, Amounts] = {}
        self._counts: dict[str, int] = {}
        self._answers: dict[str, Nearest | None] = {}
        for one in neighbours:
            where = mapping(one.get("spec")).get("nodeName")
            if where and mapping(one.get("status")).get("phase") not in ("Succeeded", "Failed"):
                _add(self._used.setdefault(where, {}), pod_requests(mapping(one.get("spec"))))
                self._counts[where] = self._counts.get(where, 0) + 1

    def nearest(self, pod: Object) -> Nearest | None:
        """Of the nodes that the pod selects, or of all, that with the fewest obstacles, and then the smallest shortage."""
        spec = mapping(pod.get("spec"))
        needed = pod_requests(spec)
        key = repr((needed, *(spec.get(one) for one in ("nodeSelector", "affinity", "tolerations"))))
        if key not in self._answers:
            self._answers[key] = self._nearest(pod, needed)
        return self._answers[key]

    def _nearest(self, pod: Object, needed: Amounts) -> Nearest | None:
        best: tuple[tuple[bool, int, Decimal, str], Nearest] | None = None
        for node in self._nodes:
            name = name_of(node)
            rules = list(_broken_rules(pod, node))
            lacks = dict(_shortages(needed, node, self._used.get(name, {})))
            crowded = _is_crowded(node, self._counts.get(name, 0))
            short = ((_of_resource(key), f"{quantity.text(key, one[0])} short") for key, one in lacks.items())
            misfits = (*rules, *short, *([("too-many-pods", "no room for another pod")] if crowded else []))
            size = max((one[1] for one in lacks.values()), default=Decimal(0))
            could = not rules and not dict(_shortages(needed, node, {})) and not _is_crowded(node, 0)
            rank = (not _is_selected(mapping(pod.get("spec")), node), len(misfits), size, name)
            if best is None or rank < best[0]:
                best = rank, Nearest(name, misfits, could)
        return best[1] if best else None


def _quantities(values: Any) -> Amounts:
    return {str(key): quantity.parse(one) for key, one in mapping(values).items()}


def _add(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for key, one in more.items():
        total[key] = total.get(key, Decimal(0)) + one


def _shortages(needed: Amounts, node: Object, used: Amounts) -> Iterator[tuple[str, tuple[Decimal, Decimal]]]:
    """By resource, what is missing, and that as a part of what is needed."""
    allocatable = _quantities(mapping(node.get("status")).get("allocatable"))
    for key, wanted in needed.items():
        missing = wanted - (allocatable.get(key, Decimal(0)) - used.get(key, Decimal(0)))
        if wanted > 0 and missing > 0:
            yield key, (missing, missing / wanted)


def _is_crowded(node: Object, pods: int) -> bool:
    most = mapping(mapping(node.get("status")).get("allocatable")).get("pods")
    return most is not None and pods + 1 > quantity.parse(most)


def _of_resource(name: str) -> str:
    known = name in ("cpu", "memory", "ephemeral-storage")
    return f"insufficient-{name}" if known else "insufficient-resource"


def _broken_rules(pod: Object, node: Object) -> Iterator[tuple[str, str]]:
    spec, of_node = mapping(pod.get("spec")), mapping(node.get("spec"))
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    for key, value in mapping(spec.get("nodeSelector")).items():
        if labels.get(key) != value:
            yield "node-selector", f"no label {key}={value}"
    if not _matches_affinity(spec, labels, name_of(node)):
        yield "node-selector", "another node affinity"
    tolerations = maps(spec.get("tolerations"))
    for taint in maps(of_node.get("taints")):
        if taint.get("effect") in _KEEPS_AWAY and not any(_tolerates(one, taint) for one in tolerations):
            id_ = "node-unschedulable" if taint.get("key") == _CORDON else "taint"
            yield id_, f"taint {taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"


def _matches_affinity(spec: Mapping[str, Any], labels: Mapping[str, Any], name: str) -> bool:
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = maps(required.get("nodeSelectorTerms"))
    return not terms or any(_matches(term, labels, name) for term in terms)


def _matches(term: Mapping[str, Any], labels: Mapping[str, Any], name: str) -> bool:
    fields = {"metadata.name": name}
    pairs = [(one, labels) for one in maps(term.get("matchExpressions"))]
    pairs += [(one, fields) for one in maps(term.get("matchFields"))]
    return bool(pairs) and all(_holds(one, values) for one, values in pairs)


def _holds(one: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, operator, values = str(one.get("key")), one.get("operator"), list(one.get("values") or ())
    present = labels.get(key)
    if operator in ("In", "NotIn"):
        return bool(present in values) is (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return bool(key in labels) is (operator == "Exists")
    try:
        number, bound = int(str(present)), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def _tolerates(one: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if one.get("effect") not in (None, "", taint.get("effect")):
        return False
    if one.get("operator") == "Exists":
        return one.get("key") in (None, "", taint.get("key"))
    return one.get("key") == taint.get("key") and (one.get("value") or "") == (taint.get("value") or "")


def _is_selected(spec: Mapping[str, Any], node: Object) -> bool:
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    wanted = mapping(spec.get("nodeSelector"))
    return all(labels.get(key) == one for key, one in wanted.items()) and _matches_affinity(spec, labels, name_of(node))
