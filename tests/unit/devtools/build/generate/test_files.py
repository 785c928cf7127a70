"""The generated files of the tree, and how a stale one is found."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools import definitions
from devtools.build.generate import __main__ as command
from devtools.build.generate import any_framework, files, rbac

ROOT = Path(__file__).resolve().parents[5]
CHART = "deploy/helm/dljob-operator"
KUSTOMIZE = "deploy/kustomize"
TABLE = "client/src/dljob/kinds_table.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what is generated and of what it is generated from: tests must not change files of the tree."""
    for name in ("roles", "crds", KUSTOMIZE, f"{CHART}/files"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
    (tmp_path / TABLE).parent.mkdir(parents=True)
    for name in ("watches.yaml", "watches.ansible-operator.yaml", TABLE):
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def run(root: Path, *arguments: str) -> int:
    return command.main([*arguments], root)


def read(path: Path) -> Any:
    return definitions.load(path.read_text(encoding="utf-8"))


def declare(tree: Path, role: str, change: dict[str, Any]) -> None:
    """Change the declaration of a role."""
    path = tree / "roles" / role / "vars" / "main.yml"
    variables = read(path)
    variables[f"{role}_framework"] |= change
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")


def test_the_files_of_this_tree_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ROOT, "--check") == 0, capsys.readouterr().out


STALE = (
    TABLE,
    "crds/Kustomization",
    "crds/mxjobs.kubeflow.org.yaml",
    "roles/caffe2/meta/argument_specs.yml",
    "roles/mxnet/tasks/main.yml",
    "roles/pytorch/meta/main.yml",
    "watches.yaml",
    "watches.ansible-operator.yaml",
    f"{KUSTOMIZE}/base/cluster_role.yaml",
    f"{KUSTOMIZE}/components/ansible-operator/rules.yaml",
)
"""One file of each sort. The generator takes a second, so one call finds them all."""


def test_stale_files_are_named_and_written_anew(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: (tree / name).read_text() for name in STALE}
    for name, text in before.items():
        changed = text.replace("mxjobs", "mxjob").replace("dljob.operator", "dljob").replace("caffe2", "caffe")
        if "pytorch" in name:
            changed = text.replace("Apache-2.0", "MIT")
        assert changed != text
        (tree / name).write_text(changed)
    assert run(tree, "--check") == 1
    said = capsys.readouterr().out.splitlines()
    assert sorted(said) == sorted(f"{name} is out of date; run `make generate`" for name in STALE)
    assert run(tree) == 0
    assert {name: (tree / name).read_text() for name in STALE} == before


def test_a_definition_that_no_role_declares_is_removed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "crds" / "stranger.yaml").write_text("{}")
    assert run(tree, "--check") == 1
    assert "crds/stranger.yaml: nothing declares it" in capsys.readouterr().out
    assert run(tree) == 0
    assert not (tree / "crds" / "stranger.yaml").exists()


def test_a_new_kind_reaches_every_file(tree: Path) -> None:
    """The agreement of these files is the generator's, and no longer that of several hands."""
    kinds = [{"group": "b.org", "kind": "TorchJob", "versions": ["v2", "v1"]}]
    declare(tree, "pytorch", {"kinds": kinds})
    assert run(tree) == 0
    made = read(tree / "crds" / "torchjobs.b.org.yaml")
    assert [(v["name"], v["storage"]) for v in made["spec"]["versions"]] == [("v2", True), ("v1", False)]
    assert not (tree / "crds" / "pytorchjobs.kubeflow.org.yaml").exists()
    assert "torchjobs.b.org.yaml" in read(tree / "crds" / "Kustomization")["resources"]
    (watch,) = [w for w in read(tree / "watches.yaml") if w["kind"] == "TorchJob"]
    assert (watch["group"], watch["version"], watch["role"]) == ("b.org", "v2", "dljob.operator.pytorch")
    assert "'torchjobs'" in (tree / TABLE).read_text()
    assert "TorchJob" in (tree / "roles" / "pytorch" / "meta" / "argument_specs.yml").read_text()
    granted = {
        (group, resource, verb)
        for rule in read(tree / KUSTOMIZE / "base" / "cluster_role.yaml")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if "torch" in resource
    }
    assert granted == {
        ("b.org", "torchjobs", "delete"),
        ("b.org", "torchjobs", "get"),
        ("b.org", "torchjobs", "list"),
        ("b.org", "torchjobs", "watch"),
        ("b.org", "torchjobs/status", "patch"),
        ("b.org", "torchjobs/finalizers", "update"),
    }
    added = [step["value"] for step in read(tree / KUSTOMIZE / "components" / "ansible-operator" / "rules.yaml")]
    assert {"apiGroups": ["b.org"], "resources": ["torchjobs"], "verbs": ["patch"]} in added


def test_the_rules_by_hand_stay(tree: Path) -> None:
    path = tree / KUSTOMIZE / "base" / "cluster_role.yaml"
    other = path.read_text().partition(rbac.END)[2]
    declare(tree, "mxnet", {"title": "MX"})
    assert run(tree) == 0
    assert path.read_text().partition(rbac.END)[2] == other
    assert "resources: [nodes]" in other


def test_a_cluster_role_without_the_marks(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / KUSTOMIZE / "base" / "cluster_role.yaml"
    path.write_text(path.read_text().replace(rbac.END, ""))
    assert run(tree) == 1
    assert "needs these two lines once each" in capsys.readouterr().out


def test_permissions_become_an_optional_component(tree: Path) -> None:
    rule = {"apiGroups": ["policy"], "resources": ["budgets"], "verbs": ["create"]}
    declare(tree, "mxnet", {"permissions": [rule]})
    assert run(tree) == 0
    folder = tree / KUSTOMIZE / "components" / "mxnet-permissions"
    assert read(folder / "rules.yaml") == [{"op": "add", "path": "/rules/-", "value": rule}]
    component = read(folder / "kustomization.yaml")
    assert component["kind"] == "Component"
    assert component["patches"] == [{"target": {"kind": "ClusterRole", "name": "dljob-operator"}, "path": "rules.yaml"}]
    link = tree / CHART / "files" / "kustomize" / "components" / "mxnet-permissions" / "rules.yaml"
    assert link.is_symlink() and link.resolve() == (folder / "rules.yaml").resolve()
    assert "budgets" not in (tree / KUSTOMIZE / "base" / "cluster_role.yaml").read_text()
    assert run(tree, "--check") == 0
    declare(tree, "mxnet", {"permissions": []})
    assert run(tree) == 0
    assert not list(folder.glob("*")) and not link.is_symlink()


def test_secrets_are_in_the_component_of_their_framework_alone(tree: Path) -> None:
    declare(tree, "mxnet", {"owns": ["Secret"]})
    assert run(tree) == 0
    components = tree / KUSTOMIZE / "components"
    (step,) = read(components / "mxnet-permissions" / "rules.yaml")
    assert step["value"] == {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get"]}
    assert "secrets" not in (tree / KUSTOMIZE / "base" / "cluster_role.yaml").read_text()
    assert not (components / "any_framework-permissions").exists(), "DLJobs need the one of their framework"


def test_a_mistake_is_reported_with_its_file(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declare(tree, "mxnet", {"nome": "x"})
    assert run(tree) == 1
    assert "roles/mxnet/vars/main.yml: unknown key 'nome' in the framework" in capsys.readouterr().out


def test_the_marks_are_in_the_tree_once() -> None:
    text = (ROOT / KUSTOMIZE / "base" / "cluster_role.yaml").read_text(encoding="utf-8")
    declared = files.frameworks(ROOT)
    assert rbac.inserted(text, [*declared, any_framework.framework(declared)]) == text


def test_a_role_outside_of_the_tree(tmp_path: Path) -> None:
    role = tmp_path / "roles" / "echo"
    (role / "vars").mkdir(parents=True)
    shutil.copyfile(ROOT / "tests/e2e/new_framework/roles/echo/vars/main.yml", role / "vars" / "main.yml")
    assert run(tmp_path, "--role", str(role), "--output", str(tmp_path)) == 0
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {
        "roles/echo/vars/main.yml",
        "roles/echo/tasks/main.yml",
        "roles/echo/meta/argument_specs.yml",
        "crds/echojobs.example.com.yaml",
        "watches.yaml",
        "cluster_role.yaml",
    }
    (watch,) = read(tmp_path / "watches.yaml")
    assert (watch["role"], watch["kind"], watch["manageStatus"], watch["markUnsafe"]) == (
        "echo",
        "EchoJob",
        False,
        True,
    )
    role_ = read(tmp_path / "cluster_role.yaml")
    assert role_["metadata"]["name"] == "dljob-operator-echo"
    assert {"apiGroups": ["example.com"], "resources": ["echojobs/status"], "verbs": ["patch"]} in role_["rules"]
    assert run(tmp_path, "--role", str(role), "--output", str(tmp_path), "--check") == 0
    elsewhere = tmp_path / "elsewhere"
    assert run(tmp_path, "--role", str(role), "--output", str(elsewhere)) == 0
    assert read(elsewhere / "watches.yaml")[0]["role"] == str(role)
