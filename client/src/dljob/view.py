"""What dljob knows of a job, of any kind and flavor, whichever operator wrote its status: a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from dljob import quantity
from dljob.account import Account, account_of
from dljob.kinds import FIRST_CONTAINER, Flavor, Kind, Resource, kind_of
from dljob.progress import Metric, Progress, progress_of
from dljob.times import time_of

QUEUED, SUSPENDED, CREATED, STARTING, RUNNING, RESTARTING, SUCCEEDED, FAILED, INVALID, DELETING = STATES = (
    "Queued",
    "Suspended",
    "Created",
    "Starting",
    "Running",
    "Restarting",
    "Succeeded",
    "Failed",
    "Invalid",
    "Deleting",
)
"""Queued: Kueue has not admitted it. Created: no operator has taken it up. Starting: not all its replicas have run."""
FINAL = (SUCCEEDED, FAILED, INVALID)
_AT_REST = (*FINAL, QUEUED, SUSPENDED, DELETING)
"""States in which a job trains no further."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
JOB_UID_LABEL = "dljob.operator/job-uid"
JOB_NAME_LABEL = "training.kubeflow.org/job-name"
"""Label of the pods of training-operator v1 and mpi-operator."""
_TYPE_LABELS = (
    "dljob.operator/replica-type",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",
    "job_type",
)
_INDEX_LABELS = ("dljob.operator/replica-index", "training.kubeflow.org/replica-index", "task_index")
_NOTHING = Decimal(0)
_USERS = ("dljob.operator/user", "arena.kubeflow.org/console-user", "app.kubernetes.io/created-by")
"""Labels or annotations with the user, whom Kubernetes itself does not record."""
_GPU_NAMES = ("gpu", "nvidia.com/mig", "google.com/tpu", "habana.ai/", "aws.amazon.com/neuron", "huawei.com/ascend")


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replicas of a type by state; ``pending`` includes those without a pod."""

    type: str
    desired: int
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Requests:
    """What all replicas of a job request together, from its templates: requests, or else limits."""

    gpus: int = 0
    """Accelerators of every make; a MIG device counts as one."""
    cpu: float = 0.0
    """Cores."""
    memory: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds; ``None`` where the objects do not tell."""

    queued: float | None = None
    """From the creation until the operator started it; Kueue's queue included."""
    starting: float | None = None
    """From then until it ran."""
    running: float | None = None
    """From then until it ended, or until now. Where the begin of running is not recorded, starting is included."""


@dataclass(frozen=True, slots=True)
class Times:
    """When a job changed, as far as its objects tell: all that its age and its durations need."""

    created: datetime | None
    started: datetime | None
    ran: datetime | None
    ended: datetime | None

    def age(self, now: datetime) -> float:
        """Seconds since the creation."""
        return (now - self.created).total_seconds() if self.created else 0.0

    def durations(self, state: str, now: datetime) -> Durations:
        """Of a job in this state."""
        if self.created is None:
            return Durations()
        if state in (QUEUED, SUSPENDED):  # of a job that was stopped, the start is that of its last run
            return Durations(queued=_between(self.created, now))
        if self.started is None:
            return Durations(queued=_between(self.created, self.ended or now))
        queued = _between(self.created, self.started)
        if state in (CREATED, STARTING):
            return Durations(queued, _between(self.started, now))
        if self.ran is None:
            return Durations(queued, None, _between(self.started, self.ended or now))
        return Durations(queued, _between(self.started, self.ran), _between(self.ran, self.ended or now))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed, or why one of its pods did."""

    reason: str
    message: str
    pod: str = ""
    container: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """One job. :func:`view` makes it."""

    api_version: str
    kind: str
    resource: str
    """``<plural>.<group>``."""
    namespace: str
    name: str
    uid: str
    created: str
    """RFC 3339."""
    state: str
    """One of ``STATES``."""
    reason: str
    """Explains the state, in the words of the operator; may be empty."""
    framework: str
    replicas: tuple[Replicas, ...]
    restarts: int
    requests: Requests
    queue: str
    nodes: tuple[str, ...]
    """Of the pods that were given, sorted."""
    age: float
    """Seconds."""
    durations: Durations
    failure: Failure | None
    owner: str
    """``<Kind>/<name>`` of the controller, such as a Katib Trial; "" for a user's own job."""
    user: str
    labels: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    """What it has used; ``None`` where no operator keeps an account of it."""
    progress: Progress | None = None
    """How far its training is; ``None`` where its program reports nothing."""

    @property
    def key(self) -> str:
        """``<resource>/<name>``, as kubectl writes it."""
        return f"{self.resource}/{self.name}"

    @property
    def ready(self) -> str:
        """``<running or succeeded>/<desired>``."""
        up = sum(one.running + one.succeeded for one in self.replicas)
        return f"{up}/{sum(one.desired for one in self.replicas)}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON and YAML, with camelCase keys."""
        return {_camel(name): _plain(value) for name, value in asdict(self).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel(key) if key.islower() else key: _plain(one) for key, one in value.items()}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Metric):
        return value._asdict()
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def view(job: Resource, pods: Iterable[Resource] = (), now: datetime | None = None) -> JobView:
    """The view of ``job``. ``pods`` may contain those of other jobs; without them it shows what the status says.

    ``now`` is the current time by default. Raises UnknownKind; anything else that a job may contain gives a view.
    """
    kind = kind_of(job)
    meta, status = _map(job.get("metadata")), _map(job.get("status"))
    now = now or datetime.now(UTC)
    flavor = kind.flavor(job)
    types = list(replica_specs(job, kind))
    own = [pod for pod in pods if belongs(pod, job)]
    state = _state(job, status)
    labels = {str(key): str(value) for key, value in _map(meta.get("labels")).items()}
    times = _times(meta, status, state)
    return JobView(
        api_version=str(job.get("apiVersion")),
        kind=kind.kind,
        resource=kind.resource,
        namespace=_text(meta.get("namespace")),
        name=_text(meta.get("name")),
        uid=_text(meta.get("uid")),
        created=_text(meta.get("creationTimestamp")),
        state=state,
        reason=_reason(status),
        framework=kind.framework or _text(_map(job.get("spec")).get("framework")),
        replicas=_replicas(types, flavor, status, own, state),
        restarts=_restarts(status, own, flavor, kind.container_of(job)),
        requests=_requests(types),
        queue=labels.get(QUEUE_LABEL)
        or _text(_map(_map(_map(job.get("spec")).get("runPolicy")).get("schedulingPolicy")).get("queue")),
        nodes=tuple(sorted({_text(_map(pod.get("spec")).get("nodeName")) for pod in own} - {""})),
        age=times.age(now),
        durations=times.durations(state, now),
        failure=_failure(status, own, kind.container_of(job)) if state in (FAILED, INVALID) else None,
        owner=_owner(meta),
        user=_user(meta),
        labels=labels,
        account=account_of(status, now),
        progress=progress_of(status, now, goes_on=state not in _AT_REST),
    )


def times_of(job: Resource, state: str) -> Times:
    """When a job, whose view has this state, changed; with it :func:`aged` needs no object."""
    return _times(_map(job.get("metadata")), _map(job.get("status")), state)


def aged(seen: JobView, times: Times, now: datetime) -> JobView:
    """The view of a job that has not changed, as of ``now``."""
    progress = seen.progress.at(now) if seen.progress else None
    return replace(seen, age=times.age(now), durations=times.durations(seen.state, now), progress=progress)


def belongs(pod: Resource, job: Resource) -> bool:
    """Whether a pod is of the job: by its uid, or the batch Job of an MPIJob's launcher by its name."""
    meta, of = _map(pod.get("metadata")), _map(job.get("metadata"))
    labels, uid = _map(meta.get("labels")), of.get("uid")
    if meta.get("namespace") != of.get("namespace"):
        return False
    if uid and (
        labels.get(JOB_UID_LABEL) == uid or any(_map(o).get("uid") == uid for o in _list(meta, "ownerReferences"))
    ):
        return True
    by_batch_job = any(
        _map(o).get("kind") == "Job" and str(_map(o).get("name")).startswith(f"{of.get('name')}-")
        for o in _list(meta, "ownerReferences")
    )
    return by_batch_job and JOB_UID_LABEL not in labels and labels.get(JOB_NAME_LABEL) == of.get("name")


def replica_of(pod: Resource, kind: Kind, job: Resource) -> tuple[str, int | None]:
    """The replica type and index of a pod; ("", None) where its labels do not say."""
    labels = _map(_map(pod.get("metadata")).get("labels"))
    name = _first(labels, _TYPE_LABELS)
    index = _first(labels, _INDEX_LABELS)
    return kind.flavor(job).canonical(name), int(index) if index.isascii() and index.isdigit() else None


def _first(labels: Resource, names: Iterable[str]) -> str:
    """The first of the labels that is there."""
    return next((str(labels[name]) for name in names if name in labels), "")


# --- spec


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """The replicas of a type, with the pod specs of how many of them."""

    type: str
    count: int
    pods: tuple[tuple[int, Resource], ...]


def replica_specs(job: Resource, kind: Kind) -> Iterator[ReplicaSpec]:
    """The replicas that a job asks for. What is no replica spec is left out: the operator reports it."""
    flavor = kind.flavor(job)
    for name, entry in _entries(job.get("spec"), flavor):
        count = _count(entry.get("count") if "count" in entry else entry.get("replicas"))
        left, pods = count, []
        for group in (_map(one) for one in _list(entry, "groups")):
            number = min(left, _count(group.get("count") if "count" in group else group.get("replicas")))
            pods.append((number, _pod_spec(group)))
            left -= number
        yield ReplicaSpec(flavor.canonical(name), count, (*pods, (left, _pod_spec(entry))))


def _entries(spec: Any, flavor: Flavor) -> Iterator[tuple[str, Resource]]:
    found = spec if flavor.fields == ("",) else next((spec[f] for f in flavor.fields if f in _map(spec)), None)
    if flavor.layout == "map":
        yield from ((str(name), _map(entry)) for name, entry in _map(found).items())
    elif flavor.layout == "list":
        only = flavor.types[0] if len(flavor.types) == 1 else ""
        for entry in found if isinstance(found, list) else ():
            yield str(_map(entry).get(flavor.type_field) or flavor.default_type or only), _map(entry)
    elif found is not None:
        yield flavor.types[0] if flavor.types else "Worker", _map(found)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1


def _pod_spec(entry: Resource) -> Resource:
    """The pod's spec; a DLJob may give the resources of its only container instead."""
    spec = _map(_map(entry.get("template")).get("spec"))
    short = _map(entry.get("resources"))
    if not short:
        return spec
    first, *others = _list(spec, "containers") or [{}]
    return {**spec, "containers": [{**_map(first), "resources": short}, *others]}


def _requests(specs: Sequence[ReplicaSpec]) -> Requests:
    gpus = cpu = memory = _NOTHING
    for spec in specs:
        for count, pod in spec.pods:
            for name, amount in pod_requests(pod).items():
                if name == "cpu":
                    cpu += count * amount
                elif name == "memory":
                    memory += count * amount
                elif is_gpu(name):
                    gpus += count * amount
    return Requests(round(gpus), round(float(cpu), 6), round(memory))


def is_gpu(resource: str) -> bool:
    """Whether a resource of this name is an accelerator."""
    return any(part in resource for part in _GPU_NAMES)


def pod_requests(spec: Resource) -> dict[str, Decimal]:
    """What a pod requests, as the scheduler counts: init containers run before the others, sidecars beside them."""
    total: dict[str, Decimal] = {}
    for container in _list(spec, "containers"):
        _add(total, container)
    before: dict[str, Decimal] = {}
    most: dict[str, Decimal] = {}
    for container in (_map(one) for one in _list(spec, "initContainers")):
        if container.get("restartPolicy") == "Always":
            _add(total, container)
            _add(before, container)
            step = before
        else:
            step = dict(before)
            _add(step, container)
        most = {name: max(most.get(name, _NOTHING), step.get(name, _NOTHING)) for name in {*most, *step}}
    total = {name: max(total.get(name, _NOTHING), most.get(name, _NOTHING)) for name in {*total, *most}}
    for name, amount in _map(spec.get("overhead")).items():
        total[name] = total.get(name, _NOTHING) + quantity.parse(amount)
    return {name: max(_NOTHING, amount) for name, amount in total.items()}


def _add(total: dict[str, Decimal], container: Any) -> None:
    resources = _map(_map(container).get("resources"))
    for name, amount in {**_map(resources.get("limits")), **_map(resources.get("requests"))}.items():
        total[name] = total.get(name, _NOTHING) + quantity.parse(amount)


# --- status


def _conditions(status: Resource) -> list[Resource]:
    return [one for one in _list(status, "conditions") if isinstance(one, Mapping)]


def _true(status: Resource, type_: str) -> Resource | None:
    found = (one for one in _conditions(status) if one.get("type") == type_ and one.get("status") == "True")
    return next(found, None)


def _outcome(status: Resource) -> str:
    state = status.get("state")
    if state in (SUCCEEDED, FAILED):
        return str(state)
    # training-operator and mpi-operator write conditions alone
    return next((type_ for type_ in (SUCCEEDED, FAILED) if _true(status, type_)), "")


def _state(job: Resource, status: Resource) -> str:
    meta = _map(job.get("metadata"))
    outcome = _outcome(status)
    if outcome == FAILED and _is_invalid(status):
        return INVALID
    if outcome:
        return outcome
    if meta.get("deletionTimestamp"):
        return DELETING
    if _map(_map(job.get("spec")).get("runPolicy")).get("suspend") is True or _true(status, SUSPENDED):
        return QUEUED if QUEUE_LABEL in _map(meta.get("labels")) else SUSPENDED
    if _true(status, RESTARTING):
        return RESTARTING
    # of the v1alpha1 operators only the phase tells: their state is Running from the first pod on
    if _true(status, RUNNING) or (not _conditions(status) and status.get("phase") == RUNNING):
        return RUNNING
    begun = status.get("startTime") or status.get("phase") or _true(status, CREATED)
    return STARTING if begun else CREATED


def _is_invalid(status: Resource) -> bool:
    reasons = [_map(status.get("failure")).get("reason"), (_true(status, FAILED) or {}).get("reason")]
    return any(str(reason or "").endswith(("FailedValidation", "ValidationFailed")) for reason in reasons)


def _reason(status: Resource) -> str:
    if status.get("reason"):
        return _text(status["reason"])
    current = [one for one in _conditions(status) if one.get("status") == "True"]
    return _text(current[-1].get("message")) if current else ""


def _replicas(
    specs: Sequence[ReplicaSpec], flavor: Flavor, status: Resource, pods: Sequence[Resource], state: str
) -> tuple[Replicas, ...]:
    desired: dict[str, int] = {}
    for spec in specs:
        desired[spec.type] = desired.get(spec.type, 0) + spec.count
    counts = {name: dict.fromkeys(("running", "succeeded", "failed"), 0) for name in desired}
    for name, states in _status_counts(status, flavor, desired):
        for one, number in states.items():
            if name in counts and one in counts[name]:
                counts[name][one] += number
    if pods and state not in FINAL:  # newer than the status; of an ended job pods may be gone
        counts = {name: dict.fromkeys(("running", "succeeded", "failed"), 0) for name in desired}
        for name, one in _pod_states(pods, flavor):
            if name in counts and one in counts[name]:
                counts[name][one] += 1
    order = {name: number for number, name in enumerate(flavor.types)}
    return tuple(
        Replicas(name, number, max(0, number - sum(counts[name].values())), **counts[name])
        for name, number in sorted(desired.items(), key=lambda item: order.get(item[0], len(order)))
    )


def _status_counts(
    status: Resource, flavor: Flavor, desired: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, int]]]:
    """By type the counts of the status, in whichever format it has."""
    found = status.get("replicaStatuses")
    if isinstance(found, list):
        for entry in (_map(one) for one in found):
            name = next((str(v) for k, v in entry.items() if k == flavor.status_type_field or k.endswith("_type")), "")
            states = {str(k).lower(): _number(v) for k, v in _map(entry.get("ReplicasStates")).items()}
            yield flavor.canonical(name), states
        return
    entries = _map(found)
    if flavor.layout == "single" and any(name in entries for name in ("active", "succeeded", "failed")):
        entries = {next(iter(desired), "Worker"): entries}
    for name, entry in entries.items():
        counts = {key: _number(_map(entry).get(key)) for key in ("active", "succeeded", "failed")}
        yield flavor.canonical(str(name)), {"running": counts.pop("active"), **counts}


def _pod_states(pods: Sequence[Resource], flavor: Flavor) -> Iterator[tuple[str, str]]:
    """The type and state of each replica that has a pod; of two pods the one created last."""
    newest: dict[tuple[str, str], tuple[str, str, str]] = {}
    for pod in pods:
        meta = _map(pod.get("metadata"))
        labels = _map(meta.get("labels"))
        name = _first(labels, _TYPE_LABELS)
        index = _first(labels, _INDEX_LABELS)
        if flavor.canonical(name) in flavor.batch_jobs:
            index = ""  # each retry of a batch Job has a pod of its own
        elif not index:
            index = _text(meta.get("name"))
        key = (flavor.canonical(name), index)
        phase = _text(_map(pod.get("status")).get("phase"))
        newest[key] = max(newest.get(key, ("", "", "")), (_text(meta.get("creationTimestamp")), key[0], phase))
    return ((name, phase.lower()) for _, name, phase in newest.values())


def _restarts(status: Resource, pods: Sequence[Resource], flavor: Flavor, container: str) -> int:
    """Replacements of pods that the status counts, and restarts of the containers by kubelets."""
    counted = sum(_number(value) for value in _map(status.get("retries")).values())
    for pod in pods:
        labels = _map(_map(pod.get("metadata")).get("labels"))
        name = _first(labels, _TYPE_LABELS)
        if flavor.canonical(name) in flavor.batch_jobs and status.get("retries"):
            continue  # the status counts these too
        counted += max((_number(one.get("restartCount")) for one in _main(pod, container)), default=0)
    return counted


def _main(pod: Resource, container: str) -> list[Resource]:
    """The status of the container that runs the framework; of all containers where none has its name."""
    statuses = [_map(one) for one in _list(_map(pod.get("status")), "containerStatuses")]
    first = next((_map(one).get("name") for one in _list(_map(pod.get("spec")), "containers")), None)
    name = first if container == FIRST_CONTAINER else container
    return [one for one in statuses if one.get("name") == name] or statuses


def _times(meta: Resource, status: Resource, state: str) -> Times:
    conditions = {str(one.get("type")): one for one in _conditions(status)}
    ended = None
    if state in FINAL:
        outcome = conditions.get(SUCCEEDED if state == SUCCEEDED else FAILED, {})
        ended = time_of(status.get("completionTime")) or time_of(outcome.get("lastTransitionTime"))
    ran = conditions.get(RUNNING, {})
    # the operators of v1 overwrite the time when it ends
    ran_at = time_of(ran.get("lastTransitionTime")) if ran.get("status") == "True" else None
    return Times(time_of(meta.get("creationTimestamp")), time_of(status.get("startTime")), ran_at, ended)


def _between(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


def _failure(status: Resource, pods: Sequence[Resource], container: str) -> Failure:
    """Of this operator's status; else the words of the condition, with the pod that ended first with an error."""
    given = _map(status.get("failure"))
    if given:
        code = given.get("exitCode")
        return Failure(
            reason=_text(given.get("reason")),
            message=_text(given.get("message")),
            pod=_text(given.get("pod")),
            container=_text(given.get("container")),
            exit_code=code if isinstance(code, int) else None,
        )
    condition = _true(status, FAILED) or {}
    reason, message = _text(condition.get("reason")), _text(condition.get("message")) or _text(status.get("reason"))
    ends = []
    for pod in pods:
        for one in _main(pod, container):
            ended = _map(_map(one.get("state")).get("terminated")) or _map(_map(one.get("lastState")).get("terminated"))
            if ended.get("exitCode"):
                ends.append((_text(ended.get("finishedAt")), _text(_map(pod.get("metadata")).get("name")), one, ended))
    if not ends:
        return Failure(reason or FAILED, message)
    _, pod_name, main, ended = min(ends, key=lambda end: end[:2])
    said = _text(ended.get("message")).strip() or message
    return Failure(
        _text(ended.get("reason")) or reason, said, pod_name, _text(main.get("name")), _number(ended["exitCode"])
    )


def _owner(meta: Resource) -> str:
    owners = (_map(one) for one in _list(meta, "ownerReferences"))
    return next((f"{one.get('kind')}/{one.get('name')}" for one in owners if one.get("controller")), "")


def _user(meta: Resource) -> str:
    found = {**_map(meta.get("annotations")), **_map(meta.get("labels"))}
    return next((_text(found[name]) for name in _USERS if found.get(name)), "")


# --- plain values: a job may contain anything


def _map(value: Any) -> Resource:
    if isinstance(value, dict):  # by far most often, and faster to ask
        return value
    return value if isinstance(value, Mapping) else {}


def _list(value: Resource, name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
