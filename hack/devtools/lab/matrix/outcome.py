"""What happened in a cell, from the records of its pods: how they ended, and the operator's part. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SLACK = 1.5
"""Seconds by which an end may seem to precede its cause: kubelets report whole seconds."""


@dataclass(frozen=True)
class End:
    """A container that has ended. ``at`` is in seconds since the epoch."""

    replica: str
    uid: str
    container: str
    code: int
    reason: str
    at: float


@dataclass
class Seen:
    """All that was seen of a job's pods, by replica (``worker-1``)."""

    uids: dict[str, list[str]] = field(default_factory=dict)
    """The pods of each replica, one after the other."""
    ends: dict[str, End] = field(default_factory=dict)
    """By the container's ID."""
    deleted: dict[str, float] = field(default_factory=dict)
    """When the deletion of a pod began, by its uid."""
    restarted: set[str] = field(default_factory=set)
    """Pods whose container the kubelet has started again."""
    changed: float = 0.0
    """When a container last started or ended."""

    def take(self, pod: Mapping[str, Any], replica: str) -> None:
        """Record one state of a pod; the order of the states does not matter, nor how often each comes."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        uid = metadata["uid"]
        uids = self.uids.setdefault(replica, [])
        if uid not in uids:
            uids.append(uid)
        if metadata.get("deletionTimestamp"):
            grace = metadata.get("deletionGracePeriodSeconds") or 0
            begun = epoch(metadata["deletionTimestamp"]) - grace
            self.deleted[uid] = min(begun, self.deleted.get(uid, begun))
        for one in status.get("containerStatuses") or ():
            if one.get("restartCount"):
                self.restarted.add(uid)
            for state in (one.get("state") or {}, one.get("lastState") or {}):
                if running := state.get("running"):
                    self.changed = max(self.changed, epoch(running["startedAt"]))
                found = state.get("terminated")
                if found and found.get("finishedAt") and found.get("containerID"):
                    at = epoch(found["finishedAt"])
                    self.changed = max(self.changed, at)
                    end = End(replica, uid, found["containerID"], found["exitCode"], found.get("reason", ""), at)
                    self.ends[end.container] = end

    def first_end(self, uid: str, since: float) -> End | None:
        """The first container of the pod that ended after that time."""
        found = [end for end in self.ends.values() if end.uid == uid and end.at >= since - SLACK]
        return min(found, key=lambda end: end.at, default=None)


def epoch(timestamp: str) -> float:
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def how(end: End | None, since: float) -> str:
    """The exit code, the kubelet's reason where it says more, and the time: ``137 OOMKilled``, ``1 after 3 s``."""
    if end is None:
        return "ran on"
    reason = f" {end.reason}" if end.reason not in ("", "Error", "Completed") else ""
    seconds = max(0.0, end.at - since)
    return f"{end.code}{reason} after {seconds:.0f} s"


def ended(seen: Seen, uid: str, since: float) -> str:
    """How one pod ended after the event: by itself, or since the operator deleted it."""
    end, deleted = seen.first_end(uid, since), seen.deleted.get(uid)
    if deleted is not None and (end is None or deleted <= end.at) and deleted >= since - SLACK:
        code = f", exit {end.code}" if end else ""
        took = f" in {end.at - deleted:.0f} s" if end else ""
        return f"deleted after {max(0.0, deleted - since):.0f} s{code}{took}"
    return how(end, since)


def survivors(seen: Seen, before: Mapping[str, str], victim: str, since: float) -> dict[str, str]:
    """How each other pod that ran at the event ended."""
    return {name: ended(seen, uid, since) for name, uid in before.items() if name != victim}


def grouped(by_name: Mapping[str, str]) -> str:
    """``worker-0, worker-2: 1 after 3 s; master-0: ran on``"""
    names: dict[str, list[str]] = {}
    for name, text in by_name.items():
        names.setdefault(text, []).append(name)
    return "; ".join(f"{', '.join(found)}: {text}" for text, found in names.items()) or "none"


def reaction(seen: Seen, before: Mapping[str, str], status: Mapping[str, Any], since: float) -> str:
    """What the operator and the kubelet did after the event."""
    replaced = sorted(name for name, uid in before.items() if seen.uids.get(name, [uid])[-1] != uid)
    ends = [end for end in seen.ends.values() if end.at >= since - SLACK and end.uid in seen.restarted]
    in_place = sorted({end.replica for end in ends if before.get(end.replica) == end.uid})
    parts = []
    if replaced and len(replaced) == len(before) and len(before) > 1:
        parts.append("new pods for all")
    elif replaced:
        parts.append(f"new pod for {', '.join(replaced)}")
    if in_place:
        parts.append(f"kubelet restarts {', '.join(in_place)}")
    retries = status.get("retries") or {}
    if retries:
        counts = retries.items() if isinstance(retries, Mapping) else [("", retries)]
        parts.append("counts " + ", ".join(f"{count} {name}".strip() for name, count in counts))
    if state_of(status) == "Failed":
        failure = status.get("failure") or {}
        words = [failure.get("pod") or "", str(failure.get("exitCode", "")), failure.get("reason") or ""]
        parts.append(f"fails the job: {' '.join(word for word in words if word)}".rstrip(": "))
    return "; ".join(parts) or "nothing"


def state_of(status: Mapping[str, Any]) -> str:
    """``Succeeded``, ``Failed`` or ""."""
    true = [one["type"] for one in status.get("conditions") or () if one.get("status") == "True"]
    return next((state for state in ("Succeeded", "Failed") if state in true), "")


def result(state: str, moves: bool, waited: float, took: float, last: int, steps: int) -> str:
    """The end of the cell: the job's state, or that nothing moves. ``last`` is the last step that was seen."""
    if state == "Succeeded" and last < steps:
        return f"**Succeeded** after {took:.0f} s, but the training ended at step {last} of {steps}"
    if state:
        return f"{state} after {took:.0f} s"
    if moves:
        return f"still trains after {took:.0f} s"
    return f"**hangs**: no step for {waited:.0f} s"
