"""The two watches files: for `dljob-operator`, and for ansible-operator alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OF_EVERY_JOB

from dljob_operator.watches import ProcessState, Watch, load_watches

ROOT = Path(__file__).resolve().parents[5]
ALL, PLAIN = ROOT / "watches.yaml", ROOT / "watches.ansible-operator.yaml"


def load(path: Path) -> tuple[Watch, ...]:
    return load_watches(path, ProcessState.of_this_process())


def names(path: Path) -> list[tuple[str, str]]:
    """What ansible-operator names its controllers by; it exits where two have the same."""
    return [(watch.gvk.kind.lower(), watch.gvk.version.lower()) for watch in load(path)]


def test_ansible_operator_alone_gets_no_kind_of_a_version_twice() -> None:
    assert [name for name, count in Counter(names(PLAIN)).items() if count > 1] == []
    assert [name for name, count in Counter(names(ALL)).items() if count > 1] == [("mxjob", "v1")]


def test_it_gets_every_other_kind_and_says_which_it_does_not_get() -> None:
    missing = {watch.gvk for watch in load(ALL)} - {watch.gvk for watch in load(PLAIN)}
    assert [str(gvk) for gvk in missing] == ["mpba.fbk.eu/v1 MXJob"]
    assert set(names(PLAIN)) == set(names(ALL))
    assert "left out: mpba.fbk.eu/v1 MXJob\n" in PLAIN.read_text(encoding="utf-8")


@pytest.mark.parametrize("watch", load(PLAIN), ids=lambda watch: str(watch.gvk))
def test_its_entries_reconcile_often_and_read_what_jobs_own_from_the_api_server(watch: Watch) -> None:
    together = next(one for one in load(ALL) if one.gvk == watch.gvk)
    assert watch.role == together.role
    assert (watch.reconcile_period, watch.max_runner_artifacts) == (30, 3)
    assert (watch.manage_status, watch.snake_case_parameters, watch.mark_unsafe) == (False, False, True)
    assert {*OF_EVERY_JOB, *together.owns} <= {gvk.kind for gvk in watch.blacklist}
    assert watch.vars == {}


def test_its_entries_have_only_keys_of_ansible_operator() -> None:
    known = {"group", "version", "kind", "role", "reconcilePeriod", "blacklist", "manageStatus", "snakeCaseParameters"}
    known |= {"markUnsafe", "watchDependentResources", "maxRunnerArtifacts"}
    for entry in yaml.safe_load(PLAIN.read_text(encoding="utf-8")):
        assert set(entry) == known
