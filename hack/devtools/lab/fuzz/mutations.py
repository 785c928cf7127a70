"""Changes of a valid job, each of one sort. Pure: a mutation changes the manifest that it gets, in place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from devtools.lab.fuzz import values

Resource = dict[str, Any]
Place = tuple[Any, Any]
"""A mapping or list, and a key or an index in it."""
Mutation = Callable[[random.Random, Resource], None]

PERIOD = "ansible.sdk.operatorframework.io/reconcile-period"
OWN_ANNOTATIONS = (
    PERIOD, "dljob.operator/requeued-at", "dljob.operator/spec-hash", "dljob.operator/shared-environment",
    "dljob.operator/lifetime", "kubectl.kubernetes.io/last-applied-configuration",
)  # fmt: skip
OWN_LABELS = (
    "dljob.operator/job-uid", "dljob.operator/replica-type", "dljob.operator/replica-index", "dljob.operator/attempt",
    "dljob.operator/page-of", "app.kubernetes.io/managed-by", "training.kubeflow.org/job-name",
)  # fmt: skip
MANY = 3000
LARGE = 1_450_000
"""Bytes. etcd's limit for a request is 1.5 MiB, and the API server's for one of JSON 3 MiB."""


def places(value: Any) -> Iterator[Place]:
    """All values inside ``value``, each with its holder. It does not recurse."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])


def templates(manifest: Resource) -> list[Resource]:
    """All pod templates whose spec is a mapping."""
    found = [holder[key] for holder, key in places(manifest) if key == "template"]
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("spec"), dict)]


def containers(manifest: Resource) -> list[Resource]:
    listed = [template["spec"].get("containers") for template in templates(manifest)]
    return [one for several in listed if isinstance(several, list) for one in several if isinstance(one, dict)]


def _spec_place(
    rng: random.Random, manifest: Resource, wanted: Callable[[Any], bool] = lambda value: True
) -> Place | None:
    """A random place in the spec whose value is ``wanted``."""
    root = {"spec": manifest["spec"]} if "spec" in manifest else {}
    found = [(holder, key) for holder, key in places(root) if wanted(holder[key])]
    if not found:
        return None
    holder, key = rng.choice(found)
    return (manifest if holder is root else holder), key


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _metadata(manifest: Resource) -> Resource:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        metadata = manifest["metadata"] = {}
    return metadata


def _section(holder: Resource, key: str) -> Resource:
    if not isinstance(holder.get(key), dict):
        holder[key] = {}
    found: Resource = holder[key]
    return found


def _replacing(
    new: Callable[[random.Random, Any], Any], wanted: Callable[[Any], bool] = lambda value: True
) -> Mutation:
    """A mutation that puts ``new`` in the place of a value in the spec that is ``wanted``."""

    def mutate(rng: random.Random, manifest: Resource) -> None:
        if place := _spec_place(rng, manifest, wanted):
            holder, key = place
            holder[key] = new(rng, holder[key])

    return mutate


wrong_type = _replacing(lambda rng, old: values.pick(rng, values.OF_OTHER_TYPES))
number = _replacing(lambda rng, old: rng.choice(values.NUMBERS), _is_number)
percentage = _replacing(lambda rng, old: rng.choice(values.PERCENTAGES), _is_number)
string = _replacing(lambda rng, old: values.text(rng), lambda value: isinstance(value, str))
repeated = _replacing(
    lambda rng, old: [values.copied(one) for _ in range(rng.choice((2, 3, 20))) for one in old],
    lambda value: isinstance(value, list) and bool(value),
)


def name(rng: random.Random, manifest: Resource) -> None:
    _metadata(manifest)["name"] = rng.choice(values.NAMES)


def long_name(rng: random.Random, manifest: Resource) -> None:
    """A name at one of the limits that still tells the objects apart."""
    metadata = _metadata(manifest)
    size = rng.choice((40, 50, 54, 55, 56, 57, 60, 62, 63, 64, 100, 252, 253, 254))
    metadata["name"] = str(metadata.get("name", "x")).ljust(size, "x")[:size]


def generate_name(rng: random.Random, manifest: Resource) -> None:
    metadata = _metadata(manifest)
    metadata["generateName"] = str(metadata.pop("name", "x"))[:50] + rng.choice(("-", ".", "", "_"))


def removed(rng: random.Random, manifest: Resource) -> None:
    if place := _spec_place(rng, manifest):
        del place[0][place[1]]


def unknown_key(rng: random.Random, manifest: Resource) -> None:
    if place := _spec_place(rng, manifest, lambda value: isinstance(value, dict)):
        place[0][place[1]][values.text(rng)] = values.pick(rng, (values.text(rng), *values.OF_OTHER_TYPES))


def renamed_key(rng: random.Random, manifest: Resource) -> None:
    """A key in other capitals, as in a typing error."""
    if place := _spec_place(rng, manifest, lambda value: isinstance(value, dict) and bool(value)):
        holder = place[0][place[1]]
        key = rng.choice(list(holder))
        holder[rng.choice((key.upper(), key.lower(), key.title(), f" {key}", f"{key}s"))] = holder.pop(key)


def deep(rng: random.Random, manifest: Resource) -> None:
    """Nested below and above the limit, in a part of a template whose fields the schema does not list."""
    value = values.nested(rng.choice(values.LEVELS), rng)
    if found := templates(manifest):
        template = rng.choice(found)
        holder = rng.choice((template["spec"], _section(template, "metadata"), _section(template["spec"], "affinity")))
        holder["nested"] = value


def many(rng: random.Random, manifest: Resource) -> None:
    """Thousands of labels, annotations or variables."""
    entries = {f"example.com/key-{index}": values.STRINGS[index % 20] for index in range(rng.choice((200, MANY)))}
    targets = [_metadata(manifest)] + [_section(template, "metadata") for template in templates(manifest)]
    if rng.random() < 0.5 or not (boxes := containers(manifest)):
        rng.choice(targets)[rng.choice(("labels", "annotations"))] = entries
    else:
        rng.choice(boxes)["env"] = [{"name": f"VARIABLE_{index}", "value": text} for index, text in enumerate(entries)]


def large(rng: random.Random, manifest: Resource) -> None:
    """Near the size that etcd takes: below, at and above it."""
    size = LARGE + rng.choice((-700_000, -200_000, -40_000, 0, 60_000, 110_000, 200_000))
    found = templates(manifest)
    if not found:
        return
    template = rng.choice(found)
    if rng.random() < 0.5:
        _section(_section(template, "metadata"), "annotations")["example.com/large"] = "x" * min(size, 250_000)
    template["spec"]["large"] = "x" * size


def quantity(rng: random.Random, manifest: Resource) -> None:
    for container in containers(manifest):
        kind = rng.choice(("limits", "requests"))
        resource = rng.choice(("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "example.com/x", "", "{{ x }}"))
        _section(_section(container, "resources"), kind)[resource] = values.pick(rng, values.QUANTITIES)


def annotation(rng: random.Random, manifest: Resource) -> None:
    annotations = _section(_metadata(manifest), "annotations")
    for _ in range(rng.randint(1, 3)):
        key = rng.choice(OWN_ANNOTATIONS)
        annotations[key] = rng.choice(values.DURATIONS) if key == PERIOD else values.text(rng)


def label(rng: random.Random, manifest: Resource) -> None:
    """Labels of the operator itself, on the job or in a template."""
    targets = [_metadata(manifest)] + [_section(template, "metadata") for template in templates(manifest)]
    labels = _section(rng.choice(targets), "labels")
    for _ in range(rng.randint(1, 4)):
        labels[rng.choice(OWN_LABELS)] = rng.choice((values.text(rng), "0", "-1", "a", "99999999999999999999"))


def owner(rng: random.Random, manifest: Resource) -> None:
    """Owner references of the job itself: to nothing, to itself, twice a controller, or no references at all."""
    one = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-0000-0000-000000000000"}
    two = {**one, "kind": "Node", "controller": True, "blockOwnerDeletion": True}
    _metadata(manifest)["ownerReferences"] = values.pick(
        rng, ([two], [two, two], [{**two, "uid": ""}], [{}], [None], "x")
    )


def metadata(rng: random.Random, manifest: Resource) -> None:
    choices: tuple[tuple[str, Any], ...] = (
        ("finalizers", ["example.com/hold"]), ("finalizers", ["foregroundDeletion", "{{ x }}"]),
        ("deletionTimestamp", "2020-01-01T00:00:00Z"), ("creationTimestamp", "9999-12-31T23:59:59Z"),
        ("uid", "{{ 1 }}"), ("resourceVersion", "1"), ("generation", -5), ("managedFields", [{"manager": "x"}]),
        ("namespace", "kube-system"), ("labels", values.pick(rng, values.OF_OTHER_TYPES)),
        ("annotations", values.pick(rng, values.OF_OTHER_TYPES)),
    )  # fmt: skip
    key, value = rng.choice(choices)
    _metadata(manifest)[key] = value


def replicas(rng: random.Random, manifest: Resource) -> None:
    wanted = rng.choice((0, 2, 3, 7, 51, 1000, 20_001, 2**31 - 1, *values.NUMBERS))
    found = [holder for holder, key in places(manifest) if key == "replicas"]
    if found:
        rng.choice(found)["replicas"] = wanted


def groups(rng: random.Random, manifest: Resource) -> None:
    """Groups of replicas with the template of a replica spec, of which some have too many replicas."""
    found = [holder for holder, key in places(manifest) if key == "template" and isinstance(holder, dict)]
    if found:
        entry = rng.choice(found)
        counted = "count" if manifest.get("kind") == "DLJob" else "replicas"
        entry["groups"] = [
            {
                "name": rng.choice(("large", "small", "Large", "", values.text(rng))),
                counted: rng.choice((0, 1, 1, 2, 2**31 - 1)),
                "template": values.copied(entry["template"]),
            }
            for _ in range(rng.choice((1, 1, 2, 17)))
        ]


FAILURE_POLICIES: tuple[Any, ...] = (
    {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1, 137]}}]},
    {"rules": [{"action": "RestartJob", "onTerminationReasons": {"operator": "In", "values": ["OOMKilled"]}}]},
    {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}, {"action": "Restart"}]},
    {"rules": [{"action": "{{ x }}", "onExitCodes": {"containerName": "none", "operator": "In", "values": [0]}}]},
    {"rules": [[]]},
    {},
)

RESTARTS_WITHIN: tuple[Any, ...] = (
    {"count": 0, "seconds": 60},
    {"count": 1, "seconds": 3600, "action": "RestartJob"},
    {"count": 1, "seconds": 0, "action": "{{ x }}"},
    {"count": 101},
)

STALL_POLICIES: tuple[Any, ...] = (
    {"startSeconds": 30},
    {"noProgressSeconds": 30, "action": "RestartJob"},
    {"startSeconds": 31, "noProgressSeconds": 1, "action": "{{ x }}"},
    {"action": "FailJob"},
)

STARTUP_POLICIES: tuple[Any, ...] = (
    {"startupPolicyOrder": "InOrder"},
    {"dependsOn": {"Worker": [{"replicaType": "Master", "condition": "Running"}]}},
    {"dependsOn": {"worker": [{"replicaType": "{{ x }}"}], "Master": "Worker"}},
    {"startupPolicyOrder": "InOrder", "dependsOn": {}},
)


RUN_POLICIES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("activeDeadlineSeconds", (1, 5)),
    ("backoffLimit", (0, 3)),
    ("ttlSecondsAfterFinished", (0, 1)),
    ("suspend", (True, False)),
    ("cleanPodPolicy", ("All", "Running", "None", "all", "")),
    ("restartScope", ("Job", "Replica")),
    ("maxRestartsPerReplica", (0, 2)),
    ("restartsWithin", RESTARTS_WITHIN),
    ("podFailurePolicy", FAILURE_POLICIES),
    ("pendingTimeoutSeconds", (1, 30)),
    ("forceDeleteAfterSeconds", (0, 30)),
    ("progress", ("None", "Rank0", "AllRanks", "rank0")),
    ("stallPolicy", STALL_POLICIES),
    ("startupPolicy", STARTUP_POLICIES),
    ("managedBy", ("kueue.x-k8s.io/multikueue", "dljob.operator/dljob-operator", "other")),
    ("schedulingPolicy", ({"minAvailable": 5}, {"queue": "{{ q }}", "minResources": {"cpu": "1"}})),
)


def run_policy(rng: random.Random, manifest: Resource) -> None:
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return
    policy = _section(spec, "runPolicy")
    for _ in range(rng.randint(1, 3)):
        key, usual = rng.choice(RUN_POLICIES)
        policy[key] = values.pick(rng, (*usual, *usual, *usual, rng.choice(values.NUMBERS), values.text(rng)))


POD_FIELDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("hostname", ("x", "{{ x }}", "a" * 64)),
    ("subdomain", ("x", "", "a.b")),
    ("restartPolicy", ("Always", "OnFailure", "Never", "ExitCode", "", "never")),
    ("dnsConfig", ({"searches": ["a"] * 40}, {"searches": "x"}, {"nameservers": ["{{ x }}"]}, [])),
    ("volumes", ([{"name": "v"}], [{"name": "v", "hostPath": {"path": "/"}}], [{}], "x", [None])),
    ("initContainers", ([{"name": "i", "image": "i"}], [{}], [None], "x", [{"name": "i", "image": "i"}] * 2)),
    ("nodeName", ("no-such-node", "{{ node }}")),
    ("serviceAccountName", ("none", "{{ x }}")),
    ("priority", (2**31, "x")),
    ("hostNetwork", (True, "x")),
    ("securityContext", ({"runAsUser": -1}, {"runAsUser": 2**63}, [], {"sysctls": [{"name": "x", "value": "y"}]})),
    ("activeDeadlineSeconds", (0, -1, 1)),
    ("terminationGracePeriodSeconds", (-1, 2**63 - 1)),
    ("schedulingGates", ([{"name": "example.com/gate"}],)),
    ("imagePullSecrets", ([{}], [{"name": "{{ x }}"}])),
    ("topologySpreadConstraints", ([{}], [{"maxSkew": 0}])),
    ("overhead", ({"cpu": "-1"}, {"cpu": "{{ x }}"})),
    ("ephemeralContainers", ([{"name": "e", "image": "e"}],)),
)
CONTAINER_FIELDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("name", ("", "A", "a" * 63, "a" * 64, "{{ x }}", "other")),
    ("image", ("", " ", "{{ image }}", "UPPER/x:1", "x" * 300, "x:y:z")),
    ("command", ([], [""], ["{{ 1 }}"], "train", [None], ["x"] * 500)),
    ("args", (["{% x %}"], "x", [1])),
    ("env", ([{"name": ""}], [{"name": "A=B"}], [{"name": "TF_CONFIG", "value": "{{ x }}"}], [{}], [None], "x", {})),
    ("envFrom", ([{}], [{"configMapRef": {"name": "none"}}])),
    (
        "ports",
        ([{"containerPort": 0}], [{"containerPort": 70000}], [{"name": "x" * 16, "containerPort": 1}], [{}], "x"),
    ),
    ("volumeMounts", ([{"name": "nowhere", "mountPath": "/x"}], [{}], [{"name": "", "mountPath": ""}])),
    ("livenessProbe", ({}, {"exec": {"command": []}}, {"httpGet": {"port": "{{ x }}"}, "tcpSocket": {"port": 1}})),
    ("terminationMessagePolicy", ("x", "File")),
    ("imagePullPolicy", ("x", "Always")),
    ("workingDir", ("{{ x }}", "\n")),
    ("lifecycle", ({"preStop": {}}, {"postStart": {"exec": {"command": ["{{ x }}"]}}})),
    ("securityContext", ({"privileged": "x"}, {"capabilities": {"add": ["{{ x }}"]}})),
)


def pod_field(rng: random.Random, manifest: Resource) -> None:
    if found := templates(manifest):
        key, choices = rng.choice(POD_FIELDS)
        rng.choice(found)["spec"][key] = values.pick(rng, choices)


def container_field(rng: random.Random, manifest: Resource) -> None:
    if found := containers(manifest):
        key, choices = rng.choice(CONTAINER_FIELDS)
        rng.choice(found)[key] = values.pick(rng, choices)


def another_container(rng: random.Random, manifest: Resource) -> None:
    if found := templates(manifest):
        listed = rng.choice(found)["spec"].get("containers")
        if isinstance(listed, list):
            one = {"name": rng.choice(("sidecar", "mxnet", "x")), "image": values.text(rng)}
            listed += [dict(one) for _ in range(rng.choice((1, 2, 70)))]


MUTATIONS: Mapping[str, tuple[Mutation, float]] = {
    "wrong type": (wrong_type, 3),
    "number": (number, 2),
    "string": (string, 3),
    "name": (name, 1),
    "long name": (long_name, 1),
    "generateName": (generate_name, 0.3),
    "removed": (removed, 2),
    "repeated": (repeated, 1),
    "unknown key": (unknown_key, 2),
    "renamed key": (renamed_key, 1),
    "deep": (deep, 1),
    "many": (many, 0.5),
    "large": (large, 0.15),
    "quantity": (quantity, 2),
    "percentage": (percentage, 0.5),
    "annotation": (annotation, 2),
    "label": (label, 1.5),
    "owner": (owner, 0.7),
    "metadata": (metadata, 1),
    "replicas": (replicas, 1.5),
    "groups": (groups, 1),
    "run policy": (run_policy, 2),
    "pod field": (pod_field, 3),
    "container field": (container_field, 3),
    "another container": (another_container, 0.7),
}
"""Each mutation with its weight."""


def mutate(rng: random.Random, manifest: Resource, count: int) -> tuple[str, ...]:
    """Apply ``count`` random mutations, and return their names."""
    names = rng.choices(list(MUTATIONS), [weight for _, weight in MUTATIONS.values()], k=count)
    for chosen in names:
        MUTATIONS[chosen][0](rng, manifest)
    return tuple(names)


def mutate_values(rng: random.Random, manifest: Resource) -> None:
    """One change of a type, a number or a string, for a document that is no job."""
    rng.choice((wrong_type, number, string, removed, unknown_key))(rng, manifest)
