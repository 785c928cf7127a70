"""Every kind of job, from the roles and the definitions in crds/, and small valid jobs of each. Pure but for the files.

A new kind that a role declares is here at once: nothing in the tools lists the kinds.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from devtools.definitions import CRDS, definitions, load
from devtools.paths import ROOT
from devtools.testbed.cluster.kwok import node_name

Resource = dict[str, Any]

ROLES = ROOT / "roles"
IMAGE = "example.com/none:1"
"""Nothing pulls it: kwok only writes the status of its pods."""
ANY = "dljob.operator"
"""The group of the kind whose jobs name their framework, so that no role declares it."""
WITH_ANY = "jax"
"""The framework of the small jobs of that kind."""
_KEPT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("kubeflow.org/v1", "PaddleJob"): {"types": ["Worker"]},
    ("tensorflow.org/v1alpha1", "TfJob"): {"types": ["Master"]},
    ("kubeflow.org/v1alpha1", "Caffe2Job"): {"extra": {"backendSpecs": {"backendType": "none"}}},
}
"""Small jobs that differ from the rule of :func:`_types`: with others, the seeds of `fuzz` and `soak` would change."""


@dataclasses.dataclass(frozen=True)
class JobKind:
    """One version of one kind, and how a small job of it looks."""

    group: str
    version: str
    kind: str
    plural: str
    stored: bool
    """Whether etcd holds the objects in this version; a list in it shows those of every version."""
    container: str
    """The name that its role asks for, or the role's where it asks for none."""
    types: tuple[tuple[str, int], ...]
    """The replica types of a small job, in order, each with its number of replicas."""
    success: str
    """The type whose replica 0 decides the outcome."""
    field: str
    """The field of the replicas in the spec; "" where the spec itself is the list."""
    type_field: str
    """The field with the replica type in a list's entry; "" where the replicas are a map, or a single entry."""
    single: bool
    """Whether the replicas are a single entry without a type."""
    has_batch_job: bool
    """Whether a batch Job runs its success target; the kind then has no restart policy of the operator's own."""
    count_field: str = "replicas"
    """The field of an entry with the number of replicas."""
    extra: Mapping[str, Any] = dataclasses.field(repr=False, compare=False, default_factory=dict)
    """Further fields of the spec of a small job."""
    schema: Mapping[str, Any] = dataclasses.field(repr=False, compare=False, default_factory=dict)
    """Its structural OpenAPI schema."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def title(self) -> str:
        """Such as ``kubeflow.org/v1 MXJob``, as the operator's metrics name it."""
        return f"{self.api_version} {self.kind}"

    def collection(self, namespace: str) -> str:
        """The path of the objects in a namespace."""
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"

    @property
    def pods(self) -> int:
        return sum(count for _, count in self.types)

    @property
    def retry_policy(self) -> str:
        """The restart policy with which a pod that failed with a retryable exit code gets a successor: ``ExitCode`` in
        v1, where it is the operator's own; ``Never`` in a list's template, where the kubelet restarts nothing; "" where
        a failure ends the job."""
        if self.single or self.has_batch_job:
            return ""
        return "Never" if self.type_field else "ExitCode"

    def small_job(self, name: str, node: int = 0, run_policy: Mapping[str, Any] | None = None) -> Resource:
        """A valid job of one to three pods on a simulated node; without ``run_policy`` where the spec is a list."""
        in_template = self.retry_policy if self.type_field else "Never" if self.single else ""
        replicas = {
            type_: (count, pod_template(self.container, node_name(node), in_template)) for type_, count in self.types
        }
        more = {"runPolicy": dict(run_policy)} if run_policy else {}
        return self.job(name, replicas, self.retry_policy or "Never", **more)

    def job(
        self, name: str, replicas: Mapping[str, tuple[int, Resource]], policy: str = "Never", **more: Any
    ) -> Resource:
        """A job with so many replicas of a template for each type, in the layout of the kind.

        ``policy`` is their restart policy, unless the layout has it in the template. ``more`` has fields of the spec.
        """
        entries = {type_: {self.count_field: count, "template": one} for type_, (count, one) in replicas.items()}
        laid_out: Any
        if self.single:
            (laid_out,) = entries.values()
        elif self.type_field:
            laid_out = [{self.type_field: type_, **entry} for type_, entry in entries.items()]
        else:
            laid_out = {
                type_: {self.count_field: entry[self.count_field], "restartPolicy": policy, **entry}
                for type_, entry in entries.items()
            }
        spec = {**copy.deepcopy(dict(self.extra)), self.field: laid_out, **more} if self.field else laid_out
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}, "spec": spec}


def pod_template(container: str, node: str, restart_policy: str = "") -> Resource:
    """A pod template on the node of that name; ``restart_policy`` only if given.

    It sets nodeName, because the cluster's scheduler places only 50 pods a second.
    """
    spec: Resource = {
        "nodeName": node,
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": container, "image": IMAGE, "command": ["train"]}],
    }
    if restart_policy:
        spec["restartPolicy"] = restart_policy
    return {"spec": spec}


def read_kinds(folder: Path = CRDS, roles: Path = ROLES) -> tuple[JobKind, ...]:
    """All served versions of the definitions in ``folder``, in the order of file names."""
    declared = declarations(roles)
    return tuple(kind for definition in definitions(folder).values() for kind in _kinds(definition, declared))


@functools.cache
def kind_of(api_version: str, kind: str) -> JobKind:
    """One of them, for which only its own definition is read. Raises OSError where none is."""
    file = CRDS / f"{kind.lower()}s.{api_version.partition('/')[0]}.yaml"
    found = _kinds(load(file.read_text(encoding="utf-8")), declarations())
    return next(one for one in found if one.api_version == api_version)


def stored(kinds: Sequence[JobKind]) -> tuple[JobKind, ...]:
    """One of the versions of each kind: those whose lists together have every object once."""
    return tuple(kind for kind in kinds if kind.stored)


def declarations(roles: Path = ROLES) -> dict[str, Resource]:
    """What the roles declare, by their names."""
    files = {file.parents[1].name: file for file in sorted(roles.glob("*/vars/main.yml"))}
    return {role: load(file.read_text(encoding="utf-8"))[f"{role}_framework"] for role, file in files.items()}


def _kinds(definition: Mapping[str, Any], declared: Mapping[str, Resource]) -> Iterator[JobKind]:
    spec = definition["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    by_kind = {(one["group"], one["kind"]): role for role, keys in declared.items() for one in keys["kinds"]}
    role = WITH_ANY if group == ANY else by_kind[group, kind]
    for version in spec["versions"]:
        if version["served"]:
            yield _kind(spec, version, role, _flavor(declared[role], group, version["name"]))


def _flavor(declared: Resource, group: str, version: str) -> Resource:
    """What the role declares of one version of a kind."""
    fitting = [
        flavor
        for flavor in declared.get("flavors") or [{}]
        if group in flavor.get("groups", [group]) and flavor.get("version", version) == version
    ]
    # of two flavors of a group, each extends a family that is named after its version
    chosen = next((one for one in fitting if version in one.get("extends", "").split("_")), fitting[0])
    return {**declared, **chosen}


def _kind(spec: Resource, version: Resource, role: str, keys: Resource) -> JobKind:
    group, kind = spec["group"], spec["names"]["kind"]
    schema = version["schema"]["openAPIV3Schema"]
    is_any = group == ANY
    field_ = "replicas" if is_any else keys.get("replicas_fields", ["replicaSpecs"])[0]
    layout = schema["properties"]["spec"]
    layout = layout["properties"][field_] if field_ else layout
    is_single = "template" in layout.get("properties", {})
    modes = [mode for mode, meaning in keys.get("modes", {}).items() if meaning == "dist"]
    chosen, target = _types(keys)
    kept = _KEPT.get((f"{group}/{version['name']}", kind), {})
    chosen = kept.get("types", chosen)
    alone = 1 if is_single or "maximum" in (keys["replica_types"][chosen[0]] or {}) else 2
    spelled = {name: name.upper() if "type_field" in keys else name for name in (*chosen, target)}
    return JobKind(
        group, version["name"], kind, spec["names"]["plural"], version["storage"],
        container=role if "{" in keys["container"] else keys["container"],
        types=tuple((spelled[name], alone if len(chosen) == 1 else 1) for name in chosen),
        success=spelled[target if target in chosen else chosen[0]],
        field=field_,
        type_field=keys.get("type_field", ""),
        single=is_single,
        has_batch_job=bool(keys.get("batch_jobs")),
        count_field="count" if is_any else "replicas",
        extra={"framework": role} if is_any else {**({"jobMode": modes[0]} if modes else {}), **kept.get("extra", {})},
        schema=schema,
    )  # fmt: skip


def _types(keys: Resource) -> tuple[list[str], str]:
    """The types of a small job and its success target: this, those that coordinate, and one of any number."""
    bounds = {name: keys["replica_types"][name] or {} for name in keys.get("types") or keys["replica_types"]}
    target = next(name for name in keys.get("success_target") or bounds if name in bounds)
    others = [
        name for name, bound in bounds.items() if name != target and not {"maximum", "coordinates"} & bound.keys()
    ]
    return [name for name, b in bounds.items() if name in (target, *others[:1]) or b.get("coordinates")], target
