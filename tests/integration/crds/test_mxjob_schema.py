"""Valid MXJobs are accepted unchanged; invalid ones are rejected with the field and the fix."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders import kept
from support.upstream_manifests import MXJOBS, from_each_source, load

Job = dict[str, Any]
Jobs = dict[str, Job]
Edit = Callable[[Job], object]

BARE, MAP = ("mpba",), ("kubeflow-map",)
FIORAVANZO = ("fioravanzo",)
LISTS = (*FIORAVANZO, "kubeflow-list")  # of replicaSpecs
OBJECTS = (*LISTS, *MAP)  # whose spec can contain options
FLAVORS = (*OBJECTS, *BARE)
ABSENT = object()


def steps(path: str) -> list[int | str]:
    """The keys and indices of ``path`` ("spec.0.replicas")."""
    return [int(part) if part.isdigit() else part for part in path.split(".")]


def stands_at(path: str, job: Job) -> Any:
    """The value at ``path``."""
    held: Any = job
    for part in steps(path):
        held = held[part]
    return held


def at(path: str, value: Any) -> Edit:
    """An edit that sets the value at ``path``, or with ABSENT removes it."""

    def edit(job: Job) -> None:
        *parents, last = steps(path)
        holder: Any = job
        for part in parents:
            if isinstance(part, str) and part not in holder:
                holder[part] = {}
            holder = holder[part]
        if value is ABSENT:
            del holder[last]
        elif isinstance(last, int) and last == len(holder):
            holder.append(value)
        else:
            holder[last] = value

    return edit


def entry(flavor: str, number: int) -> str:
    """Path of the entry of the scheduler (0), the servers (1) or the workers (2) in that flavor's job."""
    if flavor == "kubeflow-map":
        return f"spec.mxReplicaSpecs.{('Scheduler', 'Server', 'Worker')[number]}"
    return f"spec.{number}" if flavor == "mpba" else f"spec.replicaSpecs.{number}"


def spec_of(type_field: str, type_: str, replicas: int = 1) -> Job:
    return {type_field: type_, "replicas": replicas, "template": template()}


def template(name: str = "mxnet") -> Job:
    return {"spec": {"containers": [{"name": name, "image": "example/train:1"}]}}


def map_entry(replicas: int = 1) -> Job:
    return {"replicas": replicas, "template": template()}


@pytest.mark.parametrize("flavor", FLAVORS)
def test_plain_job(flavor: str, jobs: Jobs, submit: Callable[..., Job]) -> None:
    assert submit(jobs[flavor])["spec"] == kept(jobs[flavor])


@pytest.mark.parametrize("path", from_each_source(*MXJOBS))
def test_upstream_manifests(path: Path, submit: Callable[..., Job]) -> None:
    manifest = load(path)
    assert submit(manifest)["spec"] == kept(manifest)


WHOLE_RUN_POLICY = {
    "cleanPodPolicy": "None",
    "ttlSecondsAfterFinished": 0,
    "activeDeadlineSeconds": 1,
    "backoffLimit": 0,
    "suspend": False,
    "managedBy": "kubeflow.org/training-operator",
    "schedulingPolicy": {
        "minAvailable": 5,
        "queue": "research",
        "minResources": {"cpu": 4, "memory": "8Gi"},
        "priorityClass": "high",
        "scheduleTimeoutSeconds": 60,
    },
}
# test id, API flavors, and the edits of a plain job
GOOD: list[tuple[str, tuple[str, ...], list[Edit]]] = [
    ("no servers", BARE, [at("spec.1.replicas", 0)]),
    ("scheduler alone", BARE, [at("spec.2", ABSENT), at("spec.1", ABSENT)]),
    ("a job name of 63 characters", (*BARE, *LISTS), [at("metadata.name", "j" * 63)]),
    ("the original's port field", FIORAVANZO, [at("spec.replicaSpecs.0.mxPort", 9000)]),
    ("both ports alike", FIORAVANZO, [at("spec.replicaSpecs.0.mxPort", 1), at("spec.replicaSpecs.0.PsRootPort", 1)]),
    ("highest port", LISTS, [at("spec.replicaSpecs.0.PsRootPort", 65535)]),
    ("dist", LISTS, [at("spec.jobMode", "dist")]),
    ("local job with a scheduler", LISTS, [at("spec.jobMode", "local")]),
    (
        "local job of one worker",
        LISTS,
        [at("spec.jobMode", "local"), at("spec.replicaSpecs", [spec_of("mxReplicaType", "WORKER")])],
    ),
    ("chief", LISTS, [at("spec.terminationPolicy.chief", {"replicaName": "WORKER", "replicaIndex": 1})]),
    ("chief in any case", OBJECTS, [at("spec.terminationPolicy.chief", {"replicaName": "wORKER", "replicaIndex": 1})]),
    (
        "spec with mx-operator's defaults",
        ("kubeflow-list",),
        [
            at("spec.RuntimeId", "aycw"),
            at("spec.jobMode", "dist"),
            at("spec.mxImage", "example/mxnet:1"),
            *(at(f"spec.replicaSpecs.{n}.PsRootPort", 9091) for n in range(3)),
            at("spec.terminationPolicy.chief", {"replicaIndex": 0, "replicaName": "SCHEDULER"}),
        ],
    ),
    ("longest RuntimeId", OBJECTS, [at("spec.RuntimeId", "a2345678901234-6")]),
    ("cleanupPodPolicy", OBJECTS, [at("spec.cleanupPodPolicy", "All")]),
    ("cleanPodPolicy in its earlier place", OBJECTS, [at("spec.cleanPodPolicy", "None")]),
    ("scheduler name", OBJECTS, [at("spec.schedulerName", "volcano")]),
    ("restarts as one", OBJECTS, [at("spec.runPolicy.restartScope", "Job")]),
    ("whole run policy", OBJECTS, [at("spec.runPolicy", WHOLE_RUN_POLICY)]),
    ("absent jobMode", MAP, [at("spec.jobMode", ABSENT)]),
    ("types in any case", MAP, [at("spec.mxReplicaSpecs", {"SCHEDULER": map_entry(), "worker": map_entry(3)})]),
    ("no scheduler", MAP, [at("spec.mxReplicaSpecs.Scheduler", ABSENT)]),
    (
        "scheduler and servers of 0",
        MAP,
        [at("spec.mxReplicaSpecs", {"Scheduler": map_entry(0), "Server": map_entry(0), "Worker": map_entry()})],
    ),
    ("exit codes decide", MAP, [at("spec.mxReplicaSpecs.Worker.restartPolicy", "ExitCode")]),
    (
        "tuning job",
        MAP,
        [
            at("spec.jobMode", "MXTune"),
            at("spec.mxReplicaSpecs", {t: map_entry() for t in ("TunerTracker", "TunerServer", "Tuner")}),
        ],
    ),
    ("longest name with scheduler-0", MAP, [at("metadata.name", "j" * 51)]),
]


@pytest.mark.parametrize(
    ("flavor", "edits"), [pytest.param(d, e, id=f"{d}: {name}") for name, flavors, e in GOOD for d in flavors]
)
def test_accepted(flavor: str, edits: list[Edit], jobs: Jobs, validation_error: Callable[[Job], str]) -> None:
    job = jobs[flavor]
    for edit in edits:
        edit(job)
    assert validation_error(job) == ""


@pytest.mark.parametrize("flavor", FLAVORS)
def test_replicas_default_to_one(flavor: str, jobs: Jobs, submit: Callable[..., Job]) -> None:
    path = f"{entry(flavor, 1)}.replicas"
    at(path, ABSENT)(jobs[flavor])
    assert stands_at(path, submit(jobs[flavor])) == 1


@pytest.mark.parametrize("flavor", LISTS)
def test_type_and_chief_default_to_the_first_scheduler(flavor: str, jobs: Jobs, submit: Callable[..., Job]) -> None:
    job = jobs[flavor]
    at("spec.replicaSpecs.0.mxReplicaType", ABSENT)(job)
    at("spec.terminationPolicy.chief", {"replicaName": "SCHEDULER"})(job)
    held = submit(job)
    assert stands_at("spec.replicaSpecs.0.mxReplicaType", held) == "SCHEDULER"
    assert stands_at("spec.terminationPolicy.chief.replicaIndex", held) == 0


NO_MXNET = "requires a container named mxnet"
# test id, the invalid field and value, and the expected parts of the error
BAD_IN_EVERY_DIALECT = [
    ("negative replicas", 2, "replicas", -1, ["replicas", "greater than or equal to 0"]),
    ("replicas in words", 2, "replicas", "two", ["replicas", "integer"]),
    ("two replicas of the scheduler", 0, "replicas", 2, ["SCHEDULER", "1"]),
    ("no replica of the scheduler", 0, "replicas", 0, ["SCHEDULER", "1"]),
    ("no template", 1, "template", ABSENT, ["template: Required value"]),
    ("no pod spec", 1, "template.spec", ABSENT, ["template.spec: Required value"]),
    ("misspelt template field", 1, "template.sepc", {}, ["unknown field", "template.sepc"]),
    ("no containers", 1, "template.spec.containers", ABSENT, ["template.spec.containers: Required value"]),
    ("empty containers", 1, "template.spec.containers", [], ["template.spec.containers", NO_MXNET]),
    (
        "no container mxnet",
        1,
        "template.spec.containers.0.name",
        "trainer",
        [NO_MXNET, "trainer", "rename or add one"],
    ),
    (
        "container without image",
        1,
        "template.spec.containers.0.image",
        ABSENT,
        ["containers[0].image: Required value"],
    ),
    (
        "upper-case container name",
        1,
        "template.spec.containers.1",
        {"name": "Logs", "image": "a"},
        ["containers[1].name", "lower-case letters"],
    ),
    (
        "invalid restart policy of the pod",
        1,
        "template.spec.restartPolicy",
        "ExitCode",
        ["restartPolicy", "OnFailure"],
    ),
    ("unknown field of an entry", 1, "replica", 1, ["unknown field", "replica"]),
]


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    ("number", "field", "value", "expected"),
    [pytest.param(*case[1:], id=case[0]) for case in BAD_IN_EVERY_DIALECT],
)
def test_refused_in_every_flavor(
    flavor: str,
    number: int,
    field: str,
    value: Any,
    expected: list[str],
    jobs: Jobs,
    validation_error: Callable[[Job], str],
) -> None:
    if (number, field, value) == (0, "replicas", 0) and flavor in MAP:
        return  # there the workers decide
    at(f"{entry(flavor, number)}.{field}", value)(jobs[flavor])
    answer = validation_error(jobs[flavor])
    for part in expected:
        assert part.casefold() in answer.casefold()


EXACTLY_ONE = ["exactly one entry must have", "SCHEDULER", "add the missing one or remove the others"]
# test id, API flavors, the edits, and the expected parts of the error
BAD: list[tuple[str, tuple[str, ...], list[Edit], list[str]]] = [
    ("no spec", FLAVORS, [at("spec", ABSENT)], ["spec: Required value"]),
    ("name of 64 characters", FLAVORS, [at("metadata.name", "j" * 64)], ["metadata.name", "64", "shorten"]),
    # the bare list
    ("no scheduler", BARE, [at("spec.0", ABSENT)], [*EXACTLY_ONE, "spec", "0 have"]),
    ("two schedulers", BARE, [at("spec.3", spec_of("replicaType", "SCHEDULER"))], [*EXACTLY_ONE, "2 have"]),
    ("empty list", BARE, [at("spec", [])], EXACTLY_ONE),
    ("no list", BARE, [at("spec", {})], ["spec", "must be of type array"]),
    ("no type", BARE, [at("spec.1.replicaType", ABSENT)], ["spec[1].replicaType: Required value"]),
    ("misspelt type", BARE, [at("spec.1.replicaType", "SERVRE")], ["spec[1].replicaType", "SERVRE", "WORKER"]),
    ("type twice", BARE, [at("spec.1.replicaType", "WORKER")], ["WORKER occurs more than once", "one entry"]),
    # replicaSpecs
    ("no replicas", FIORAVANZO, [at("spec.replicaSpecs", ABSENT)], ["spec.replicaSpecs: Required value"]),
    ("no scheduler", LISTS, [at("spec.replicaSpecs.0", ABSENT)], [*EXACTLY_ONE, "spec.replicaSpecs", "local"]),
    (
        "two schedulers",
        LISTS,
        [at("spec.replicaSpecs.3", spec_of("mxReplicaType", "SCHEDULER"))],
        [*EXACTLY_ONE, "spec.replicaSpecs", "2 have"],
    ),
    (
        "type forgotten beside a scheduler",
        LISTS,
        [at("spec.replicaSpecs.1.mxReplicaType", ABSENT)],
        [*EXACTLY_ONE, "mxReplicaType", "2 have"],
    ),
    (
        "misspelt type",
        LISTS,
        [at("spec.replicaSpecs.2.mxReplicaType", "WROKER")],
        ["spec.replicaSpecs[2].mxReplicaType", "WROKER", "SCHEDULER", "SERVER", "WORKER"],
    ),
    (
        "type twice",
        LISTS,
        [at("spec.replicaSpecs.1.mxReplicaType", "WORKER")],
        ["spec.replicaSpecs", "mxReplicaType WORKER occurs more than once", "one entry"],
    ),
    (
        "two schedulers of a local job",
        LISTS,
        [at("spec.jobMode", "local"), at("spec.replicaSpecs.3", spec_of("mxReplicaType", "SCHEDULER"))],
        ["SCHEDULER occurs more than once"],
    ),
    (
        "local job without replicas",
        LISTS,
        [at("spec.jobMode", "local"), at("spec.replicaSpecs", [spec_of("mxReplicaType", "WORKER", 0)])],
        ["spec.replicaSpecs", "no entry has a replica", "set replicas of at least one entry to 1"],
    ),
    *(
        (
            f"{field} of {port}",
            flavors,
            [at(f"spec.replicaSpecs.0.{field}", port)],
            [f"spec.replicaSpecs[0].{field}", bound],
        )
        for field, flavors in (("PsRootPort", LISTS), ("mxPort", FIORAVANZO))
        for port, bound in ((0, "greater than or equal to 1"), (70000, "less than or equal to 65535"))
    ),
    (
        "two ports",
        FIORAVANZO,
        [at("spec.replicaSpecs.0.mxPort", 1), at("spec.replicaSpecs.0.PsRootPort", 2)],
        ["spec.replicaSpecs[0].mxPort", "PsRootPort", "remove one"],
    ),
    ("mode of the map", LISTS, [at("spec.jobMode", "MXTrain")], ["spec.jobMode", "local", "dist"]),
    ("misspelt field", LISTS, [at("spec.replicaSpec", [])], ["unknown field", "spec.replicaSpec"]),
    # mxReplicaSpecs
    (
        "both forms",
        MAP,
        [at("spec.replicaSpecs", [spec_of("mxReplicaType", "SCHEDULER")]), at("spec.jobMode", ABSENT)],
        ["exactly one of replicaSpecs", "mxReplicaSpecs", "add or remove one"],
    ),
    (
        "neither form",
        MAP,
        [at("spec.mxReplicaSpecs", ABSENT)],
        ["exactly one of replicaSpecs", "mxReplicaSpecs", "add or remove one"],
    ),
    (
        "neither scheduler nor worker",
        MAP,
        [at("spec.mxReplicaSpecs.Scheduler", ABSENT), at("spec.mxReplicaSpecs.Worker.replicas", 0)],
        ["spec.mxReplicaSpecs", "at least one replica of Scheduler, Worker", "add it"],
    ),
    (
        "empty map",
        MAP,
        [at("spec.mxReplicaSpecs", {})],
        ["spec.mxReplicaSpecs", "at least one replica of Scheduler, Worker"],
    ),
    (
        "misspelt type",
        MAP,
        [at("spec.mxReplicaSpecs.Workers", map_entry())],
        ["spec.mxReplicaSpecs", "unknown replica type", "Workers", "Worker, TunerTracker"],
    ),
    (
        "type twice",
        MAP,
        [at("spec.mxReplicaSpecs.worker", map_entry())],
        ["spec.mxReplicaSpecs", "occurs twice", "one entry"],
    ),
    (
        "tuning without a Tuner",
        MAP,
        [at("spec.jobMode", "MXTune")],
        ["spec.mxReplicaSpecs", "at least one replica of Tuner", "add it"],
    ),
    (
        "tuning with two schedulers",
        MAP,
        [
            at("spec.jobMode", "MXTune"),
            at("spec.mxReplicaSpecs.Tuner", map_entry()),
            at("spec.mxReplicaSpecs.Scheduler.replicas", 2),
        ],
        ["spec.mxReplicaSpecs", "at most one Scheduler"],
    ),
    ("mode of the list", MAP, [at("spec.jobMode", "dist")], ["spec.jobMode", "MXTrain or MXTune"]),
    (
        "unknown restart policy",
        MAP,
        [at("spec.mxReplicaSpecs.Worker.restartPolicy", "Sometimes")],
        ["spec.mxReplicaSpecs.Worker.restartPolicy", "ExitCode"],
    ),
    (
        "name of 63 characters",
        MAP,
        [at("metadata.name", "j" * 63)],
        ["metadata.name", "63 characters", "at most 51", "shorten"],
    ),
    (
        "name too long for the thousandth worker",
        MAP,
        [
            at("metadata.name", "j" * 52),
            at("spec.mxReplicaSpecs.Worker.replicas", 1001),
            at("spec.jobMode", "MXTune"),
            at("spec.mxReplicaSpecs.Tuner", map_entry()),
            at("spec.mxReplicaSpecs.Scheduler", ABSENT),
        ],
        ["metadata.name", "52 characters", "at most 51", "shorten"],
    ),
    ("name that starts with a digit", MAP, [at("metadata.name", "9-lives")], ["metadata.name", "begin with a letter"]),
    ("name with a dot", MAP, [at("metadata.name", "my.job")], ["metadata.name", "lower-case letters"]),
    # options
    ("unknown mode", OBJECTS, [at("spec.jobMode", "distributed")], ["spec.jobMode", "distributed", "dist"]),
    ("long RuntimeId", OBJECTS, [at("spec.RuntimeId", "a" * 17)], ["spec.RuntimeId", "16"]),
    ("upper-case RuntimeId", OBJECTS, [at("spec.RuntimeId", "Ab")], ["spec.RuntimeId", "lower-case letters"]),
    ("RuntimeId with a final dash", OBJECTS, [at("spec.RuntimeId", "a-")], ["spec.RuntimeId", "both ends"]),
    (
        "chief of no such type",
        OBJECTS,
        [at("spec.terminationPolicy.chief", {"replicaName": "MASTER"})],
        ["spec.terminationPolicy.chief", "MASTER 0", "eplicaSpecs has no such replica", "name a type"],
    ),
    (
        "chief beyond the last",
        OBJECTS,
        [at("spec.terminationPolicy.chief", {"replicaName": "WORKER", "replicaIndex": 2})],
        ["spec.terminationPolicy.chief", "WORKER 2", "an index below"],
    ),
    (
        "chief before the first",
        OBJECTS,
        [at("spec.terminationPolicy.chief", {"replicaName": "WORKER", "replicaIndex": -1})],
        ["spec.terminationPolicy.chief.replicaIndex", "greater than or equal to 0"],
    ),
    (
        "chief without a name",
        OBJECTS,
        [at("spec.terminationPolicy.chief", {"replicaIndex": 0})],
        ["spec.terminationPolicy.chief.replicaName: Required value"],
    ),
    *(
        (f"unknown {field}", OBJECTS, [at(f"spec.{field}", "Most")], [f"spec.{field}", "Running"])
        for field in ("cleanPodPolicy", "cleanupPodPolicy", "runPolicy.cleanPodPolicy")
    ),
    (
        "two cleanup policies",
        OBJECTS,
        [at("spec.cleanupPodPolicy", "All"), at("spec.runPolicy.cleanPodPolicy", "All")],
        ["cleanupPodPolicy", "runPolicy.cleanPodPolicy", "keep one"],
    ),
    *(
        (
            f"{field} below {least}",
            OBJECTS,
            [at(f"spec.runPolicy.{field}", least - 1)],
            [f"spec.runPolicy.{field}", f"greater than or equal to {least}"],
        )
        for field, least in (
            ("ttlSecondsAfterFinished", 0),
            ("activeDeadlineSeconds", 1),
            ("backoffLimit", 0),
            ("schedulingPolicy.minAvailable", 0),
            ("schedulingPolicy.scheduleTimeoutSeconds", 0),
        )
    ),
    (
        "unknown manager",
        OBJECTS,
        [at("spec.runPolicy.managedBy", "me")],
        ["spec.runPolicy.managedBy", "kubeflow.org/training-operator"],
    ),
    (
        "unknown restart scope",
        OBJECTS,
        [at("spec.runPolicy.restartScope", "Group")],
        ["spec.runPolicy.restartScope", "Replica", "Job"],
    ),
    *(
        (
            "restartScope Job with restartPolicy Always",
            flavors,
            [at("spec.runPolicy.restartScope", "Job"), at(f"spec.{where}.restartPolicy", "Always")],
            ["restartPolicy Always", "use OnFailure or ExitCode"],
        )
        for flavors, where in ((MAP, "mxReplicaSpecs.Worker"), (LISTS, "replicaSpecs.2.template.spec"))
    ),
    (
        "misspelt policy",
        OBJECTS,
        [at("spec.runPolicy.backofLimit", 1)],
        ["unknown field", "spec.runPolicy.backofLimit"],
    ),
]


@pytest.mark.parametrize(
    ("flavor", "edits", "expected"),
    [pytest.param(d, e, x, id=f"{d}: {name}") for name, flavors, e, x in BAD for d in flavors],
)
def test_refused(
    flavor: str, edits: list[Edit], expected: list[str], jobs: Jobs, validation_error: Callable[[Job], str]
) -> None:
    job = jobs[flavor]
    for edit in edits:
        edit(job)
    answer = validation_error(job)
    for part in expected:
        assert part in answer


@pytest.mark.parametrize("flavor", FLAVORS)
def test_template_survives_verbatim(flavor: str, jobs: Jobs, submit: Callable[..., Job]) -> None:
    """The template keeps its fields, nulls, and Jinja syntax."""
    wild = template()
    wild["metadata"] = {
        "creationTimestamp": None,
        "labels": {"a": "b"},
        "annotations": {"x/y": "{{ lookup('env', 'HOME') }}"},
    }
    wild["spec"] |= {
        "initContainers": [{"name": "fetch", "image": "fetch"}],
        "volumes": [{"name": "v", "azureFile": {"secretName": "s", "shareName": "n", "readOnly": False}}],
        "nodeSelector": None,
    }
    wild["spec"]["containers"][0] |= {
        "args": ["{{ 7 * 7 }}", "{% raw %}", ""],
        "env": [{"name": "A", "value": "$(B)"}],
        "resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}, "requests": {}},
    }
    at(f"{entry(flavor, 2)}.template", copy.deepcopy(wild))(jobs[flavor])
    assert stands_at(f"{entry(flavor, 2)}.template", submit(jobs[flavor])) == wild
