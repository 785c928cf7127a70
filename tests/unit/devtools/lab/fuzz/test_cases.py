"""The cases of the fuzz run follow from seed and number, and stay on simulated nodes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from devtools.lab.fuzz import cases, mutations, values
from devtools.lab.fuzz.cases import MUTATED, POD, STATUS, UID, case, forged_pod, nonsense_status, with_uid
from devtools.lab.fuzz.judge import levels
from devtools.testbed.jobs import kind_of, read_kinds

KINDS = read_kinds()
CASES = [case(KINDS, 7, number) for number in range(400)]


def test_a_case_follows_from_seed_and_number() -> None:
    assert [one.to_json() for one in CASES[:50]] == [case(KINDS, 7, number).to_json() for number in range(50)]
    assert [one.body() for one in CASES[:50]] != [case(KINDS, 8, number).body() for number in range(50)]


def test_all_kinds_origins_and_mutations_occur() -> None:
    assert {one.kind.title for one in CASES} == {kind.title for kind in KINDS}
    assert {one.origin for one in CASES} == {name for name, _ in cases._ORIGINS}  # noqa: SLF001 - the weights of the draw
    assert {name for one in CASES for name in one.mutations} == set(mutations.MUTATIONS)
    assert {step.kind for one in CASES for step in one.steps} == {cases.STATUS, cases.EDIT, POD}


def test_every_case_is_json_as_it_is_saved() -> None:
    for one in CASES:
        json.dumps(one.to_json())


def test_no_pod_leaves_the_simulated_nodes() -> None:
    for one in CASES:
        for template in mutations.templates(one.manifest):
            assert template["spec"].get("nodeName"), one.to_json()


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_a_mutation_changes_the_job(name: str) -> None:
    mutation, _ = mutations.MUTATIONS[name]
    changed = 0
    for number in range(20):
        manifest = kind_of("kubeflow.org/v1", "MXJob").small_job("x", run_policy={"suspend": False})
        before = json.dumps(manifest)
        mutation(random.Random(number), manifest)
        changed += json.dumps(manifest) != before
    assert changed >= 15


def test_mutations_leave_the_tables_of_values_alone() -> None:
    before = json.dumps([values.OF_OTHER_TYPES, values.QUANTITIES])
    for number in range(300):
        rng = random.Random(number)
        mutations.mutate(rng, kind_of("kubeflow.org/v1", "TFJob").small_job("x"), 5)
    assert json.dumps([values.OF_OTHER_TYPES, values.QUANTITIES]) == before


def test_deep_objects_are_on_both_sides_of_the_limit() -> None:
    found = set()
    for number in range(60):
        manifest = kind_of("kubeflow.org/v1", "MXJob").small_job("x")
        mutations.deep(random.Random(number), manifest)
        found.add(levels(manifest) > 100)
    assert found == {True, False}


def test_the_deepest_objects_can_be_copied_and_sent() -> None:
    deepest = values.nested(max(values.LEVELS), random.Random(1))
    assert json.dumps(values.copied({"template": deepest})) == json.dumps({"template": deepest})


def test_large_objects_are_on_both_sides_of_etcds_limit() -> None:
    found = set()
    for number in range(40):
        manifest = kind_of("kubeflow.org/v1", "MXJob").small_job("x")
        mutations.large(random.Random(number), manifest)
        found.add(len(json.dumps(manifest)) > 1.5 * 2**20)
    assert found == {True, False}


def test_a_forged_pod_refers_to_the_job() -> None:
    manifest = kind_of("kubeflow.org/v1", "MXJob").small_job("x")
    pods = [with_uid(forged_pod(random.Random(number), manifest), "u1") for number in range(30)]
    assert UID not in json.dumps(pods)
    owners = [reference for pod in pods for reference in pod["metadata"].get("ownerReferences", [])]
    assert owners and all(owner["uid"] == "u1" for owner in owners)
    assert any(pod["metadata"]["labels"].get("dljob.operator/job-uid") == "u1" for pod in pods)


def test_nonsense_of_every_sort_becomes_a_status() -> None:
    statuses = [nonsense_status(random.Random(number), KINDS[0]) for number in range(1000)]
    json.dumps(statuses)
    assert any(not isinstance(status, dict) for status in statuses)
    assert any(isinstance(status, dict) and status.get("state") == "Succeeded" for status in statuses)


def test_a_status_is_followed_by_a_change_that_is_reconciled() -> None:
    for one in CASES:
        kinds = [step.kind for step in one.steps]
        if STATUS in kinds:
            assert kinds[kinds.index(STATUS) + 1] == cases.EDIT


def test_mutated_cases_name_their_mutations() -> None:
    assert all(bool(one.mutations) == (one.origin == MUTATED) for one in CASES)


def test_the_uid_is_put_into_a_body_of_any_depth() -> None:
    body: Any = {"uid": UID, "other": [UID, "x"]}
    for _ in range(5000):
        body = {"n": body}
    changed = with_uid(body, "7")
    for _ in range(5000):
        body, changed = body["n"], changed["n"]
    assert changed == {"uid": "7", "other": ["7", "x"]}
    assert body["uid"] == UID, "the original stays"
