"""Properties of arbitrary jobs and of arbitrary sequences of events."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.builders import MXNET, NOW, Resource, environment_of, grouped, manifest_of, mxjob, observed
from support.fake_cluster import DNS_LABEL, FakeCluster, is_quiet

SPEC_HASH = "dljob.operator/spec-hash"
FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")
PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 3, 1.5, 70000, 2**40]),
    st.sampled_from(["", "x", "All", "Never", "dist", "local", "SCHEDULER", "Worker", "mxnet", "{{ x }}", "a\n"]),
    PRINTABLE,
)
keys = st.sampled_from(
    [
        *("mxReplicaSpecs", "replicaSpecs", "Scheduler", "Worker", "replicas", "template", "restartPolicy", "x"),
        *("spec", "metadata", "containers", "name", "env", "ports", "labels", "annotations"),
        *("groups", "name"),
        *("chief", "replicaName", "replicaIndex", "runPolicy", "cleanPodPolicy", "suspend", "restartScope"),
    ]
)
jsonish = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*here, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*here, index))


@st.composite
def valid_jobs(draw: st.DrawFn) -> Resource:
    """A valid job in any flavor, with some of all parsed fields."""
    made = mxjob(draw(st.from_regex(r"[a-z][a-z0-9]{0,20}", fullmatch=True))).flavor(draw(st.sampled_from(FLAVORS)))
    made.servers(draw(st.integers(0, 3))).workers(draw(st.integers(0, 4)))
    made.restart(draw(st.sampled_from(["Always", "OnFailure", "Never"])))
    made.container("Worker", env=[{"name": "A", "value": "b"}], ports=[{"name": "p", "containerPort": 80}])
    made.template_metadata("Worker", labels={"a": "b"}, annotations={"c": "d"})
    made.pod("Server", hostNetwork=draw(st.booleans()), dnsConfig={"searches": ["a"]})
    if draw(st.booleans()):
        made.option(RuntimeId=draw(st.from_regex(r"[a-z0-9]{1,16}", fullmatch=True)), jobMode="dist")
        made.run_policy(backoffLimit=draw(st.integers(0, 3)), suspend=draw(st.booleans()), cleanPodPolicy="All")
        made.chief("Scheduler")
    resource = made.resource()
    if "mxReplicaSpecs" in resource["spec"]:
        sizes = draw(st.lists(st.integers(0, 2), max_size=2))
        workers = resource["spec"]["mxReplicaSpecs"]["Worker"]
        workers["replicas"] += sum(sizes)
        grouped(resource, "Worker", **{f"g{n}": (size, {"image": f"g{n}:1"}) for n, size in enumerate(sizes)})
    return resource


@st.composite
def spoilt_jobs(draw: st.DrawFn) -> Resource:
    """A valid job in which some values were replaced by arbitrary ones."""
    resource = draw(valid_jobs())
    for _ in range(draw(st.integers(1, 3))):
        # the API server guarantees the identity of the object
        where = draw(st.sampled_from([p for p in paths(resource) if p and p[0] in ("spec", "status")]))
        holder = resource
        for step in where[:-1]:
            holder = holder[step]
        if draw(st.booleans()) or not isinstance(holder, dict) or len(where) == 1:
            holder[where[-1]] = draw(jsonish)
        else:
            del holder[where[-1]]
    return resource


# --- the parser


@given(
    st.sampled_from(["kubeflow.org/v1", "fioravanzo.org/v1alpha1", "mpba.fbk.eu/v1", "x/v1", ""]),
    jsonish,
    jsonish,
    jsonish,
)
def test_any_manifest_is_parsed_or_invalid(api: str, metadata: Any, spec: Any, status: Any) -> None:
    resource = {"apiVersion": api, "kind": "MXJob", "metadata": metadata, "spec": spec, "status": status}
    before = copy.deepcopy(resource)
    try:
        parse_job(resource, MXNET)
    except InvalidJob as e:
        assert e.problems
        assert all(isinstance(text, str) and text for text in e.problems)
    assert resource == before


@settings(max_examples=150)
@given(spoilt_jobs())
def test_a_mutated_job_is_reported_or_planned(resource: Resource) -> None:
    """The planner accepts every job that the parser accepts."""
    with contextlib.suppress(InvalidJob):
        assume(parse_job(resource, MXNET).total < 50)
    fake_cluster = FakeCluster(resource)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    json.dumps(fake_cluster.status)


@given(
    st.sampled_from(FLAVORS),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.integers(1, 65535),
)
def test_a_valid_job_is_parsed_correctly(flavor: str, servers: int, workers: int, port: int) -> None:
    made = mxjob().flavor(flavor).servers(servers).workers(workers)
    if flavor == "v1":
        made.container("Scheduler", ports=[{"name": "mxjob-port", "containerPort": port}])
    elif flavor != "mpba":
        made.entry("Scheduler", PsRootPort=port)
    job = made.job()
    assert [(g.type, g.replicas) for g in job.groups] == [("Scheduler", 1), ("Server", servers), ("Worker", workers)]
    assert job.groups[0].port == (9000 if flavor == "mpba" else port)
    assert job.total == servers + workers + 1 == len(list(job.tasks()))


@given(valid_jobs())
def test_flavors_agree(resource: Resource) -> None:
    """A list and a map with the same content give the same job."""
    job = parse_job(resource, MXNET)
    assert {g.type for g in job.groups} == {"Scheduler", "Server", "Worker"}
    assert all(g.template["spec"]["containers"][0]["name"] == "mxnet" for g in job.groups)


# --- names


@given(
    flavor=st.sampled_from(FLAVORS),
    name=st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?", fullmatch=True),
    runtime_id=st.from_regex(r"[-a-z0-9]{1,70}", fullmatch=True),
    workers=st.integers(1, 12),
)
def test_names_are_valid_or_the_job_is_rejected(flavor: str, name: str, runtime_id: str, workers: int) -> None:
    made = mxjob(name).flavor(flavor).workers(workers)
    if flavor != "mpba":
        made.option(RuntimeId=runtime_id)
    try:
        made.job()
    except InvalidJob as e:
        assert all(text.startswith(("metadata.name", "spec.RuntimeId")) for text in e.problems)
        return
    fake_cluster = FakeCluster(made)
    fake_cluster.step()  # it checks the names of all that it creates
    for pod in fake_cluster.pods.values():
        assert DNS_LABEL.fullmatch(pod["spec"]["hostname"])
        assert DNS_LABEL.fullmatch(pod["spec"]["subdomain"])
        assert all(len(value) <= 63 for value in pod["metadata"]["labels"].values())


# --- templates


@given(
    st.sampled_from(FLAVORS),
    st.lists(
        st.one_of(
            st.sampled_from(
                ["{{ 6 * 7 }}", "{% if x %}", "{# c #}", "{index}", "{job}", "{nope}", "$(DMLC_ROLE)", "!unsafe"]
            ),
            PRINTABLE,
        ),
        max_size=4,
    ),
)
def test_strings_of_a_template_come_out_as_they_went_in(flavor: str, texts: list[str]) -> None:
    text = "".join(texts)
    job = mxjob().flavor(flavor).container("Scheduler", args=texts, env=[{"name": "X", "value": text}])
    job.template_metadata("Scheduler", annotations={"note": text}).pod("Scheduler", nodeSelector={text: text})
    pod = manifest_of(job.job(), "scheduler")
    assert pod["spec"]["containers"][0]["args"] == texts
    assert environment_of(pod)["X"] == text
    assert pod["metadata"]["annotations"]["note"] == text
    assert pod["spec"]["nodeSelector"] == {text: text}


# --- life cycles

steps = st.one_of(
    st.just(("run",)),
    st.tuples(st.just("exit"), st.integers(0, 9), st.sampled_from([0, 0, 1, 137, 143])),
    st.tuples(st.just("evict"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("advance"), st.sampled_from([0.5, 1, 10, 400])),
    st.tuples(st.just("scale"), st.integers(0, 3)),
    st.tuples(st.just("suspend"), st.booleans()),
    st.just(("crash",)),
    st.just(("lag",)),
)


def live(fake_cluster: FakeCluster, step: tuple[Any, ...]) -> None:
    kind, *what = step
    running = sorted(n for n, p in fake_cluster.pods.items() if p["status"]["phase"] == "Running")
    if kind == "run":
        fake_cluster.run_all()
    elif kind == "exit" and running:
        labels = fake_cluster.pods[running[what[0] % len(running)]]["metadata"]["labels"]
        fake_cluster.exit(labels["dljob.operator/replica-type"], int(labels["dljob.operator/replica-index"]), what[1])
    elif kind == "evict" and running:
        labels = fake_cluster.pods[running[what[0] % len(running)]]["metadata"]["labels"]
        fake_cluster.evict(labels["dljob.operator/replica-type"], int(labels["dljob.operator/replica-index"]))
    elif kind == "delete" and fake_cluster.pods:
        fake_cluster.user_deletes(sorted(fake_cluster.pods)[what[0] % len(fake_cluster.pods)])
    elif kind == "advance":
        fake_cluster.advance(what[0])
    elif kind == "scale":
        fake_cluster.edit(lambda spec: _worker(spec).update(replicas=what[0]))
    elif kind == "suspend" and isinstance(fake_cluster.resource["spec"], dict):
        fake_cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=what[0]))
    elif kind == "crash":
        fake_cluster.step(status_gets_lost=True)
    elif kind == "lag":
        late, read = fake_cluster.planned(), fake_cluster.version
        fake_cluster.step()
        fake_cluster.carry_out(late, read=read)


def _worker(spec: Any) -> dict[str, Any]:
    if isinstance(spec, dict) and "mxReplicaSpecs" in spec:
        found: dict[str, Any] = spec["mxReplicaSpecs"]["Worker"]
        return found
    entries = spec if isinstance(spec, list) else spec["replicaSpecs"]
    return next(e for e in entries if "WORKER" in (e.get("mxReplicaType"), e.get("replicaType")))


@given(
    st.sampled_from(FLAVORS),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from(["All", "Running", "None"]),
    st.one_of(st.none(), st.integers(0, 2)),
    st.lists(steps, max_size=12),
)
def test_every_sequence_of_events_converges(
    flavor: str, policy: str, clean: str, limit: int | None, happenings: list[tuple[Any, ...]]
) -> None:
    made = mxjob().flavor(flavor).servers(1).workers(2).restart(policy)
    if flavor != "mpba":
        made.run_policy(cleanPodPolicy=clean, backoffLimit=limit)
    fake_cluster = FakeCluster(made)
    ended = None
    for happening in [*happenings, ("advance", 400), ("run",)]:
        live(fake_cluster, happening)
        last = fake_cluster.settle()[-1]
        assert last.requeue_after is None or last.requeue_after > 0, "at rest, and yet in a hurry"
        assert is_quiet(fake_cluster.step())
        # a finished job stays finished and creates no pods
        outcome = fake_cluster.status["state"] if fake_cluster.status["state"] in ("Succeeded", "Failed") else None
        assert ended is None or outcome == ended
        ended = outcome
        if ended and clean == "All" and flavor != "mpba":
            assert not fake_cluster.pods
        if not ended and not _suspended(fake_cluster):
            wanted = parse_job(fake_cluster.resource, MXNET).total
            done = sum(len(_indexes(text)) for text in fake_cluster.status.get("completed", {}).values())
            assert wanted - done <= len(fake_cluster.pods) <= wanted


@given(
    st.sampled_from([d for d in FLAVORS if d != "mpba"]),
    st.sampled_from(["OnFailure", "Never"]),
    st.lists(steps, max_size=12),
)
def test_a_job_restarted_as_one_never_mixes_attempts(
    flavor: str, policy: str, happenings: list[tuple[Any, ...]]
) -> None:
    made = mxjob().flavor(flavor).servers(1).workers(2).restart(policy).run_policy(restartScope="Job")
    fake_cluster = FakeCluster(made)
    for happening in happenings:
        live(fake_cluster, happening)
        fake_cluster.settle()
        held = [p["metadata"] for p in fake_cluster.pods.values()]
        assert len({(m["labels"]["dljob.operator/attempt"], m["annotations"][SPEC_HASH]) for m in held}) <= 1
    fake_cluster.advance(400)
    fake_cluster.settle()
    if fake_cluster.status["state"] not in ("Succeeded", "Failed") and not _suspended(fake_cluster):
        wanted = parse_job(fake_cluster.resource, MXNET).total
        done = sum(len(_indexes(text)) for text in fake_cluster.status.get("completed", {}).values())
        assert wanted - done <= len(fake_cluster.pods) <= wanted


def _suspended(fake_cluster: FakeCluster) -> bool:
    spec = fake_cluster.resource["spec"]
    return isinstance(spec, dict) and bool((spec.get("runPolicy") or {}).get("suspend"))


def _indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_plan_is_deterministic_and_changes_no_argument(flavor: str) -> None:
    """The planner does not modify its arguments and returns the same plan again."""
    fake_cluster = FakeCluster(mxjob().flavor(flavor).workers(3))
    before = copy.deepcopy((fake_cluster.resource, fake_cluster.pods, fake_cluster.services))
    assert fake_cluster.planned() == fake_cluster.planned()
    fake_cluster.step()
    after = copy.deepcopy((fake_cluster.resource, fake_cluster.pods, fake_cluster.services))
    assert fake_cluster.planned() == fake_cluster.planned()
    assert (fake_cluster.resource, fake_cluster.pods, fake_cluster.services) == after != before
    job = parse_job(fake_cluster.resource, MXNET)
    assert observed(job, ()).pods == ()
    assert fake_cluster.now == NOW
