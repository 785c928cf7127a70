from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dljob_operator.watches import (
    GVK,
    ProcessState,
    Watch,
    WatchesError,
    crds_directory,
    default_watches_file,
    load_watches,
)

_ENTRY = "- {group: kubeflow.org, version: v1, kind: MXJob, role: mxnet"


@pytest.fixture
def process(tmp_path: Path) -> ProcessState:
    """A working directory with the role `mxnet`, and nothing else that could be found."""
    (tmp_path / "roles" / "mxnet").mkdir(parents=True)
    return ProcessState({"HOME": str(tmp_path / "home")}, tmp_path, ())


def _load(process: ProcessState, text: str) -> tuple[Watch, ...]:
    path = process.cwd / "watches.yaml"
    path.write_text(text)
    return load_watches(path, process)


def _problem(process: ProcessState, text: str) -> str:
    with pytest.raises(WatchesError) as caught:
        _load(process, text)
    assert len(caught.value.problems) == 1, caught.value.problems
    return caught.value.problems[0]


def test_an_entry_has_ansible_operators_defaults(process: ProcessState) -> None:
    (watch,) = _load(process, _ENTRY + "}")
    assert watch == Watch(GVK("kubeflow.org", "v1", "MXJob"), role=process.cwd / "roles" / "mxnet")
    assert (watch.manage_status, watch.snake_case_parameters, watch.mark_unsafe) == (True, True, False)
    assert (watch.max_runner_artifacts, watch.watch_dependent_resources) == (20, True)
    assert not watch.batchable


def test_every_key_of_ansible_operators_is_read(process: ProcessState) -> None:
    (process.cwd / "end.yml").touch()
    (watch,) = _load(
        process,
        """
- version: v1
  kind: Database
  group: example.com
  role: mxnet
  vars: {state: present, dljob_batchable: true}
  maxRunnerArtifacts: 5
  reconcilePeriod: 1m30s
  manageStatus: false
  watchDependentResources: false
  watchClusterScopedResources: true
  snakeCaseParameters: false
  watchAnnotationsChanges: true
  markUnsafe: true
  blacklist: [{group: "", version: v1, kind: Pod}]
  finalizer: {name: example.com/end, playbook: end.yml, vars: {state: absent}}
  selector:
    matchLabels: {app: a}
    matchExpressions:
      - {key: tier, operator: In, values: [x, y]}
      - {key: old, operator: DoesNotExist}
""",
    )
    assert watch.batchable
    assert (watch.max_runner_artifacts, watch.reconcile_period) == (5, 90.0)
    assert watch.watch_cluster_scoped_resources
    assert watch.watch_annotations_changes
    assert watch.mark_unsafe
    assert not (watch.manage_status or watch.watch_dependent_resources or watch.snake_case_parameters)
    assert watch.blacklist == (GVK("", "v1", "Pod"),)
    assert watch.selector == "app=a,tier in (x,y),!old"
    assert watch.finalizer is not None
    assert watch.finalizer.playbook == process.cwd / "end.yml"
    assert watch.finalizer.vars == {"state": "absent"}


@pytest.mark.parametrize(
    ("rest", "named", "said"),
    [
        (", markUnsave: true}", "markUnsave", "did you mean 'markUnsafe'"),
        (", markunsafe: true}", "markunsafe", "did you mean 'markUnsafe'"),
        (", nonsense: 1}", "nonsense", "unknown key"),
        (", reconcilePeriod: 5}", "reconcilePeriod", "Go duration"),
        (", reconcilePeriod: soon}", "reconcilePeriod", "Go duration"),
        (", manageStatus: 'false'}", "manageStatus", "true or false"),
        (", vars: [a]}", "vars", "a list"),
        (", vars: {dljob_owns: Secret}}", "vars.dljob_owns", "must be a list of kinds"),
        (", vars: {dljob_owns: [Secret, Ingress]}}", "vars.dljob_owns", "'Ingress' is no kind that a job may own"),
        (", maxRunnerArtifacts: -1}", "maxRunnerArtifacts", "-1"),
        (", playbook: p.yml}", "role", "both given"),
        (", blacklist: Pod}", "blacklist", "a list of"),
        (", selector: {matchLabel: {}}}", "selector.matchLabel", "did you mean 'matchLabels'"),
        (
            ", selector: {matchExpressions: [{key: a, operator: Is}]}}",
            "selector.matchExpressions[0].operator",
            "'Is'",
        ),
        (", finalizer: {name: x/y}}", "finalizer", "has no effect"),
        (", finalizer: {vars: {a: 1}}}", "finalizer.name", "qualified name"),
        (", finalizer: {name: x/y, role: nowhere}}", "finalizer.role", "nowhere"),
    ],
)
def test_a_broken_key_is_named_with_its_entry(process: ProcessState, rest: str, named: str, said: str) -> None:
    problem = _problem(process, _ENTRY + rest)
    assert problem.startswith(f"entry 1 (kubeflow.org/v1 MXJob): {named}: ")
    assert said in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be a list"),
        ("group: a", "must be a list"),
        ("- just text", "entry 1: must be a mapping"),
        ("- [", "is not YAML"),
        (_ENTRY + ", role: other}", "'role' is given twice"),
        ("- {group: a.b, kind: X, role: mxnet}", "entry 1 (a.b X): version: is missing"),
        ("- {group: a.b, version: v1, role: mxnet}", "entry 1: kind: is missing"),
        ("- {group: a.b, version: V1, kind: X, role: mxnet}", "'V1' is no API version"),
        ("- {group: a.b, version: v1, kind: X/Y, role: mxnet}", "'X/Y' is no API kind"),
        ("- {group: a.b, version: v1, kind: X}", "entry 1 (a.b/v1 X): role: is missing"),
        (f"{_ENTRY}}}\n{_ENTRY}}}", "entry 2 (kubeflow.org/v1 MXJob): the same kind as entry 1"),
        (f"{_ENTRY}}}\n{_ENTRY.replace('v1', 'v1alpha1')}}}", "the same objects as entry 1"),
        ("- {group: a.b, version: v1, kind: X, playbook: no.yml}", "the playbook 'no.yml' was not found"),
    ],
)
def test_a_broken_file_is_refused_and_says_why(process: ProcessState, text: str, said: str) -> None:
    assert said in _problem(process, text)


def test_all_problems_are_reported_together(process: ProcessState) -> None:
    with pytest.raises(WatchesError) as caught:
        _load(process, _ENTRY + ", x: 1, reconcilePeriod: y}\n- {}")
    assert len(caught.value.problems) == 5
    assert all(str(process.cwd / "watches.yaml") in line for line in str(caught.value).splitlines())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WatchesError, match=r"nowhere\.yaml: cannot be read.*--watches-file"):
        load_watches(tmp_path / "nowhere.yaml")


def test_the_environment_is_filled_in_and_what_it_lacks_stays(process: ProcessState) -> None:
    process = ProcessState({"ROLE": "mxnet", "PERIOD": "5m"}, process.cwd, ())
    (watch,) = _load(
        process,
        "- {group: a.b, version: v1, kind: X, role: $ROLE, reconcilePeriod: '${PERIOD}', vars: {a: '${UNSET}'}}",
    )
    assert (watch.reconcile_period, watch.vars) == (300.0, {"a": "${UNSET}"})


class TestWhereARoleIsFound:
    """The order is ansible-operator's; each place is taken away in turn, and the next one is found."""

    def test_in_order(self, tmp_path: Path) -> None:
        collections, roles, cluster_info = tmp_path / "c", tmp_path / "r", tmp_path / "cluster_info"
        cwd, beside = tmp_path / "cwd", tmp_path / "file"
        places = [
            collections / "ansible_collections" / "dljob" / "operator" / "roles" / "mxnet",
            cluster_info / "ansible_collections" / "dljob" / "operator" / "roles" / "mxnet",
            roles / "dljob.operator.mxnet",
            roles / "roles" / "dljob.operator.mxnet",
            cwd / "roles" / "dljob.operator.mxnet",
            beside / "roles" / "dljob.operator.mxnet",
        ]
        for place in places:
            place.mkdir(parents=True)
        process = ProcessState(
            {"ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_ROLES_PATH": f"{tmp_path}/none:{roles}"},
            cwd,
            ("", str(cluster_info)),
        )
        path = beside / "watches.yaml"
        path.write_text("- {group: a.b, version: v1, kind: X, role: dljob.operator.mxnet}")
        for place in places:
            assert load_watches(path, process)[0].role == place
            place.rmdir()
        with pytest.raises(WatchesError) as caught:
            load_watches(path, process)
        assert "'dljob.operator.mxnet' was not found" in str(caught.value)
        assert all(str(place) in str(caught.value) for place in places)

    def test_an_absolute_path_is_the_place(self, process: ProcessState, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (watch,) = _load(process, f"- {{group: a.b, version: v1, kind: X, role: {tmp_path}/mine}}")
        assert watch.role == tmp_path / "mine"


def test_the_projects_own_watches_file_is_good(tmp_path: Path) -> None:
    root = Path(__file__).parents[4]
    (tmp_path / "ansible_collections" / "dljob").mkdir(parents=True)
    (tmp_path / "ansible_collections" / "dljob" / "operator").symlink_to(root)
    process = ProcessState({"ANSIBLE_COLLECTIONS_PATH": str(tmp_path)}, tmp_path, ())
    kinds = {str(watch.gvk) for watch in load_watches(root / "watches.yaml", process)}
    assert kinds >= {"fioravanzo.org/v1alpha1 MXJob", "mpba.fbk.eu/v1 MXJob", "kubeflow.org/v1 MXJob"}


def _installed(cluster_info: Path) -> Path:
    """Our collection where pip puts it, with a watches file and definitions."""
    collection = cluster_info / "ansible_collections" / "dljob" / "operator"
    (collection / "crds").mkdir(parents=True)
    (collection / "watches.yaml").touch()
    return collection


def test_the_working_directorys_watches_file_comes_first(process: ProcessState, tmp_path: Path) -> None:
    process = replace(process, python_path=(str(tmp_path / "cluster_info"),))
    installed = _installed(tmp_path / "cluster_info")
    assert default_watches_file(process) == installed / "watches.yaml"
    (process.cwd / "watches.yaml").touch()
    assert default_watches_file(process) == Path("watches.yaml")


def test_without_any_watches_file_the_working_directorys_is_the_one_that_is_missing(
    process: ProcessState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(process.cwd)
    with pytest.raises(WatchesError, match=r"^watches\.yaml: cannot be read.*--watches-file"):
        load_watches(default_watches_file(process), process)


def test_of_several_collections_the_watches_file_is_beside_the_roles_that_are_used(
    process: ProcessState, tmp_path: Path
) -> None:
    found = {}
    for place in ("configured", "cluster_info"):
        found[place] = _installed(tmp_path / place)
        (found[place] / "roles" / "mxnet").mkdir(parents=True)
    environ = {**process.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "configured")}
    process = replace(process, environ=environ, python_path=("", str(tmp_path / "cluster_info")))
    assert default_watches_file(process) == found["configured"] / "watches.yaml"
    (watch,) = _load(process, "[{group: a.b, version: v1, kind: X, role: dljob.operator.mxnet}]")
    assert watch.role == found["configured"] / "roles" / "mxnet"


def test_definitions_are_beside_the_watches_file_or_those_of_the_collection(
    process: ProcessState, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert crds_directory(own / "watches.yaml", process) == own / "crds"
    process = replace(process, python_path=(str(tmp_path / "cluster_info"),))
    installed = _installed(tmp_path / "cluster_info")
    assert crds_directory(installed / "watches.yaml", process) == installed / "crds"
    assert crds_directory(own / "watches.yaml", process) == installed / "crds"
    (own / "crds").mkdir()
    assert crds_directory(own / "watches.yaml", process) == own / "crds"
