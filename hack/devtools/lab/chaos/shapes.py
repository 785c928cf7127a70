"""What the jobs of a run look like, and their outcomes, from jobs.yaml.

The nodes are simulated (:mod:`.nodes`): a pod ends as its annotations say, which a job's template contains.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devtools.definitions import load
from devtools.testbed.jobs import IMAGE, kind_of

EXIT = "chaos.dljob.operator/exit"
"""The exit code of every container of the pod. A pod without this annotation runs until it is deleted."""
FIRST_EXIT = "chaos.dljob.operator/first-exit"
"""The exit code of the first attempt, where it differs."""
UNLUCKY_EXIT = "chaos.dljob.operator/unlucky-exit"
"""The exit code of the pods whose name matches UNLUCKY. All pods of a batch Job have the attempt of that Job, and a
random name."""
UNLUCKY = "[2-9b]$"
"""Three in ten of the names that Kubernetes generates, whose last character is one of bcdfghjklmnpqrstvwxz2456789."""
SECONDS = "chaos.dljob.operator/seconds"
"""The time that the pod runs, as a duration."""
TIME = "chaos.dljob.operator/time"
"""The time that the pod's node reports instead of the real one: the skew of the node's clock."""
NODE_LABEL = {"chaos.dljob.operator/node": "simulated"}
SUCCEEDED, FAILED = "Succeeded", "Failed"
SKEWED = ("2001-02-03T04:05:06Z", "2099-01-01T00:00:00Z")
"""Times of nodes whose clock is wrong: far before the operator's, and far after it."""


@dataclass(frozen=True)
class Ending:
    """How the pods of a replica type end."""

    exit: str | None = "0"
    """None for a pod that runs until it is deleted."""
    first_exit: str | None = None
    seconds: float = 2.0
    unlucky_exit: str | None = None


ENDINGS = {
    "success": Ending(),
    "last": Ending(seconds=6),  # the success target, which ends after the others
    "forever": Ending(exit=None),
    "retried": Ending(first_exit="137"),
    "retried forever": Ending(exit=None, first_exit="137"),
    "failure": Ending("1"),
}


@dataclass(frozen=True)
class Shape:
    """How to write the manifests of one kind."""

    title: str
    kind: str
    """Such as ``kubeflow.org/v1 MXJob``."""
    replicas: Mapping[str, tuple[int, Ending] | tuple[int, Ending, str]]
    """Of each type its number, how its pods end, and its restart policy if that is not ``policy``."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The other fields of the spec."""
    policy: str = "ExitCode"
    container: str = ""
    """By default that of the kind."""
    fails: bool = False

    @property
    def outcome(self) -> str:
        return FAILED if self.fails else SUCCEEDED

    def build(self, source: random.Random, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """A manifest; ``source`` is the random source of the job."""
        kind = kind_of(*self.kind.split())
        in_template = "Never" if kind.type_field else self.policy if kind.single else ""
        replicas: dict[str, tuple[int, dict[str, Any]]] = {}
        own: dict[str, str] = {}
        for type_, (count, ending, *policy) in self.replicas.items():
            # Kubernetes does not retry a launcher's pod that ended in the future before that time has come
            clocks = SKEWED[:1] if type_ == "Launcher" else SKEWED
            replicas[type_] = count, _template(self.container or kind.container, ending, source, in_template, clocks)
            if policy:
                own[type_] = policy[0]
        job = kind.job(name, replicas, self.policy, **self.spec)
        for type_, one in own.items():
            job["spec"][kind.field][type_]["restartPolicy"] = one
        job["metadata"]["labels"] = dict(labels)
        return job


def _template(
    container: str, ending: Ending, source: random.Random, policy: str, clocks: tuple[str, ...]
) -> dict[str, Any]:
    annotations = {SECONDS: f"{ending.seconds + source.uniform(0, 3):.1f}s"}
    exits = {EXIT: ending.exit, FIRST_EXIT: ending.first_exit, UNLUCKY_EXIT: ending.unlucky_exit}
    annotations |= {name: code for name, code in exits.items() if code is not None}
    if source.random() < 0.2:
        annotations[TIME] = source.choice(clocks)
    return {
        "metadata": {"annotations": annotations},
        "spec": {
            **({"restartPolicy": policy} if policy else {}),
            "nodeSelector": dict(NODE_LABEL),
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": source.choice((0, 1, 2)),
            "containers": [{"name": container, "image": IMAGE, "command": ["train"]}],
        },
    }


def _read(entry: Mapping[str, Any]) -> Shape:
    replicas = {
        type_: (count, ENDINGS[ending] if isinstance(ending, str) else Ending(**ending), *policy)
        for type_, (count, ending, *policy) in entry["replicas"].items()
    }
    return Shape(**{**entry, "replicas": replicas})


SHAPES = tuple(map(_read, load(Path(__file__).with_name("jobs.yaml").read_text(encoding="utf-8"))))
