"""Which input directories of ansible-operator are deleted, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dljob_operator.ansible_operator_bridge.input_folders import ROOT, InputFolders
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.watches import GVK

TFJOB = GVK("kubeflow.org", "v1", "TFJob")


def job(name: str = "digits", namespace: str = "team") -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid of {name}", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """As ansible-operator leaves it after runs of two jobs, one with the artifacts of a failed run."""
    for name in ("digits", "other"):
        folder = tmp_path / "kubeflow.org/v1/TFJob/team" / name
        (folder / "env").mkdir(parents=True)
        (folder / "env/envvars").write_text("{}")
        (folder / "artifacts/5").mkdir(parents=True)
        (folder / "artifacts/latest").symlink_to(folder / "artifacts/5")
    return tmp_path


def left(root: Path) -> list[str]:
    return sorted(str(found.relative_to(root)) for found in root.glob("*/*/*/*/*"))


DIGITS, OTHER = "kubeflow.org/v1/TFJob/team/digits", "kubeflow.org/v1/TFJob/team/other"


def test_the_second_pass_after_the_deletion_deletes_it(root: Path) -> None:
    folders = InputFolders(root)
    folders.note(TFJOB, Change(None, job()))
    folders.note(TFJOB, Change(job(), job()))
    folders.note(TFJOB, Change(job(), None))
    folders.collect()
    assert left(root) == [DIGITS, OTHER], "a run of the job may still end"
    folders.collect()
    assert left(root) == [OTHER]
    (root / DIGITS).mkdir()
    folders.collect()
    assert left(root) == [DIGITS, OTHER], "only once"


@pytest.mark.parametrize("passes", [0, 1])
def test_a_new_job_of_that_name_keeps_it(root: Path, passes: int) -> None:
    folders = InputFolders(root)
    folders.note(TFJOB, Change(job(), None))
    for _ in range(passes):
        folders.collect()
    folders.note(TFJOB, Change(None, job()))
    for _ in range(3):
        folders.collect()
    assert left(root) == [DIGITS, OTHER]


def test_a_change_of_an_object_that_waits_for_finalizers_is_no_deletion(root: Path) -> None:
    folders = InputFolders(root)
    leaving = job()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    folders.note(TFJOB, Change(job(), leaving))
    for _ in range(3):
        folders.collect()
    assert left(root) == [DIGITS, OTHER]


def test_the_same_name_elsewhere_is_another_directory(root: Path) -> None:
    folders = InputFolders(root)
    folders.note(TFJOB, Change(job(namespace="other"), None))
    folders.note(GVK("kubeflow.org", "v1alpha1", "TFJob"), Change(job(), None))
    for _ in range(3):
        folders.collect()
    assert left(root) == [DIGITS, OTHER]


def test_cluster_scoped_objects_have_no_directory_of_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "example.com/v1/EchoJob/digits").mkdir(parents=True)
    folders = InputFolders(tmp_path)
    folders.note(GVK("example.com", "v1", "EchoJob"), Change(job(namespace=""), None))
    for _ in range(2):
        folders.collect()
    assert list(tmp_path.glob("*/*/*/*")) == []


def test_it_passes_over_what_is_not_there_and_stops(root: Path) -> None:
    folders = InputFolders(root)
    folders.note(TFJOB, Change(job("never ran"), None))
    folders.note(TFJOB, Change(job(), None))
    folders.collect()
    folders.stop()
    folders.collect()
    assert left(root) == [DIGITS, OTHER]


def test_the_root_is_that_of_ansible_operator() -> None:
    """internal/ansible/runner/runner.go of ansible-operator v1.42.3."""
    assert Path("/tmp/ansible-operator/runner") == ROOT
