"""deploy/olm matches its sources, and OLM's rules."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from devtools.build.olm import csv, files, sources
from support import olm_rules
from support.olm_rules import Bundle

from dljob_operator import cli

ROOT = Path(__file__).resolve().parents[5]
Grants = set[tuple[str, str, str]]


@pytest.fixture(scope="module")
def pickled() -> bytes:
    """The bundle, read once: parsing the CRDs takes longer than all rules together, and copying them a tenth of it."""
    return pickle.dumps(olm_rules.read(ROOT / "deploy/olm"))


@pytest.fixture
def bundle(pickled: bytes) -> Bundle:
    """A copy that the test may modify."""
    return cast(Bundle, pickle.loads(pickled))


def run(root: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "devtools.build.olm", *options],
        cwd=root,
        env=os.environ | {"PYTHONPATH": "hack"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_files_are_what_their_sources_say() -> None:
    assert run(ROOT, "--check") == (0, "")


def test_check_notices_a_change_a_stranger_and_a_bent_link(tmp_path: Path) -> None:
    """Runs in a copy, because tests must not change files of the tree."""
    for name in ("hack/devtools/build/olm", "hack/devtools/build/generate", "crds", "deploy", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("training"))
    (tmp_path / "build").mkdir()
    for name in (
        "README.md",
        "galaxy.yml",
        "build/bundle.Dockerfile",
        "hack/devtools/definitions.py",
        "hack/devtools/paths.py",
        "hack/devtools/build/generated.py",
    ):
        shutil.copyfile(ROOT / name, tmp_path / name)
    assert run(tmp_path, "--check") == (0, "")
    galaxy = tmp_path / "galaxy.yml"
    galaxy.write_text(re.sub(r"(?m)^version: .*$", "version: 99.0.0", galaxy.read_text()))
    (tmp_path / "deploy/olm" / "manifests" / "stranger.yaml").write_text("kind: ConfigMap\n")
    link = tmp_path / "deploy/olm" / "manifests" / "mxjobs.kubeflow.org.yaml"
    link.unlink()
    link.write_text("kind: CustomResourceDefinition\n")
    code, said = run(tmp_path, "--check")
    assert code == 1
    for name in ("clusterserviceversion.yaml", "stranger.yaml", "mxjobs.kubeflow.org.yaml"):
        assert name in said
    assert run(tmp_path)[0] == 0
    assert run(tmp_path, "--check") == (0, "")
    assert olm_rules.read(tmp_path / "deploy/olm").csv["metadata"]["name"] == "dljob-operator.v99.0.0"


def test_it_holds_to_the_rules(bundle: Bundle) -> None:
    assert olm_rules.problems(bundle) == []


def _budget(bundle: Bundle) -> dict[str, Any]:
    (found,) = (one for one in bundle.others if one["kind"] == "PodDisruptionBudget")
    return found


def _drop(bundle: Bundle, *path: Any) -> None:
    place: Any = bundle.csv
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]


BREAK: dict[str, tuple[Callable[[Bundle], object], str]] = {
    "a version that is none": (lambda b: b.csv["spec"].update(version="1.0"), "spec.version"),
    "another name": (lambda b: b.csv["metadata"].update(name="dljob"), "is not <package>.v<version>"),
    "no provider": (lambda b: b.csv["spec"].update(provider={}), "spec.provider.name"),
    "no oldest Kubernetes": (lambda b: _drop(b, "spec", "minKubeVersion"), "spec.minKubeVersion"),
    "a maintainer without address": (lambda b: b.csv["spec"].update(maintainers=[{"name": "x"}]), "spec.maintainers"),
    "no picture": (lambda b: _drop(b, "spec", "icon"), "spec.icon"),
    "an unknown level": (lambda b: b.csv["metadata"]["annotations"].update(capabilities="All"), "capabilities"),
    "an unknown category": (lambda b: b.csv["metadata"]["annotations"].update(categories="AI"), "categories"),
    "another image": (lambda b: b.csv["metadata"]["annotations"].update(containerImage="x"), "containerImage"),
    "an example of something else": (
        lambda b: b.csv["metadata"]["annotations"].update({"alm-examples": '[{"apiVersion": "a/v1", "kind": "B"}]'}),
        "is none of what is owned",
    ),
    "no example": (lambda b: b.csv["metadata"]["annotations"].update({"alm-examples": "[]"}), "none of ('fioravanzo"),
    "no way to install": (lambda b: b.csv["spec"].update(installModes=[]), "none is supported"),
    "a mode twice": (lambda b: b.csv["spec"]["installModes"].append(b.csv["spec"]["installModes"][0]), "installModes"),
    "no requests": (
        lambda b: olm_rules.deployments(b)[0]["spec"]["template"]["spec"]["containers"][0].pop("resources"),
        "requests no CPU",
    ),
    "an account that runs nothing": (lambda b: olm_rules.grants(b)[0].update(serviceAccountName="x"), "runs nothing"),
    "definitions of its own making": (
        lambda b: olm_rules.grants(b)[0]["rules"].append({"resources": ["customresourcedefinitions"], "verbs": ["*"]}),
        "OLM's to make",
    ),
    "a definition too few": (lambda b: b.definitions.pop(), "is not in the bundle"),
    "a definition too many": (lambda b: _drop(b, "spec", "customresourcedefinitions", "owned", 0), "and not owned"),
    "a budget that stops drains": (lambda b: _budget(b)["spec"].update(maxUnavailable=0), "never be drained"),
    "a budget for others": (lambda b: _budget(b)["spec"]["selector"].update(matchLabels={"a": "b"}), "none of the pods"),
    "an API that has gone": (lambda b: _budget(b).update(apiVersion="policy/v1beta1"), "no longer served"),
    "a channel of another name": (
        lambda b: b.annotations.update({f"{olm_rules.PREFIX}.channels.v1": "alpha"}),
        "the channel alpha",
    ),
    "too large": (lambda b: setattr(b, "size", 1 << 20), "more than OLM can keep"),
}  # fmt: skip


@pytest.mark.parametrize("what", BREAK)
def test_a_broken_bundle_is_noticed(bundle: Bundle, what: str) -> None:
    spoil, message = BREAK[what]
    spoil(bundle)
    assert any(message in problem for problem in olm_rules.problems(bundle)), olm_rules.problems(bundle)


def test_a_remark_before_the_mark_hides_the_document() -> None:
    """OLM reads a file this way, which is why the generated files begin with the document start."""
    assert olm_rules.first("# remark\n---\nkind: A\n") == {}
    assert olm_rules.first("---\n# remark\nkind: A\n") == {"kind": "A"}


def grants_of(rules: list[Any]) -> Grants:
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def test_the_permissions_are_those_of_the_default_overlay(bundle: Bundle) -> None:
    base = ROOT / "deploy" / "kustomize"
    granted = yaml.safe_load((base / "base" / "cluster_role.yaml").read_text())["rules"]
    default = base / "default"
    components = yaml.safe_load((default / "kustomization.yaml").read_text())["components"]
    added = [yaml.safe_load((default / component / "rules.yaml").read_text()) for component in components]
    wanted = grants_of([*granted, *(step["value"] for patch in added for step in patch)])
    assert ("", "secrets", "create") in wanted, "MPIJobs run in a default installation"
    assert grants_of([rule for grant in olm_rules.grants(bundle) for rule in grant["rules"]]) == wanted
    install = bundle.csv["spec"]["install"]["spec"]
    assert {resource for _, resource, _ in grants_of(install["clusterPermissions"][0]["rules"])} == {"nodes"}


def test_a_rule_of_both_scopes_is_refused() -> None:
    rule = {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}
    with pytest.raises(ValueError, match="split the rule"):
        csv.split([rule])


def test_what_is_granted_already_is_not_granted_twice() -> None:
    granted = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    more = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    assert csv.missing(granted, granted) == []
    assert csv.missing([*granted, more], granted) == [more]


@pytest.mark.parametrize(
    ("mode", "targets", "watched"),
    [
        ("AllNamespaces", "", ()),
        ("OwnNamespace", "dljob-system", ("dljob-system",)),
        ("SingleNamespace", "a", ("a",)),
        ("MultiNamespace", "a,b", ("a", "b")),
    ],
)
def test_the_operator_can_do_what_each_install_mode_asks(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, mode: str, targets: str, watched: tuple[str, ...]
) -> None:
    """OLM writes the namespaces to a pod annotation, which the pod passes as WATCH_NAMESPACE to the engine."""
    assert {"type": mode, "supported": True} in bundle.csv["spec"]["installModes"]
    (deployment,) = olm_rules.deployments(bundle)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (given,) = (entry for entry in container["env"] if entry["name"] == "WATCH_NAMESPACE")
    assert given["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.annotations['olm.targetNamespaces']"
    monkeypatch.setenv("WATCH_NAMESPACE", targets)
    assert cli.parse(["run"]).namespace == watched


def test_descriptors_are_of_existing_fields(bundle: Bundle) -> None:
    owned = bundle.csv["spec"]["customresourcedefinitions"]["owned"]
    shown = {path for one in owned for path in (d["path"] for d in one["specDescriptors"])}
    assert shown == set(csv.SPEC_FIELDS), "a field that no kind has"
    for one in owned:
        assert [d["path"] for d in one["statusDescriptors"]] == list(csv.STATUS_FIELDS), one["name"]


def test_the_description_has_no_links_into_the_repository() -> None:
    readme = "# Name\n\nWhat\nit is.\n\n## See it\n\nx\n\n## What it does\n\n- A [page](docs/a.md#b).\n\n## Limits\n\nL\n\nLicense: X\n"
    text = sources.description(readme)
    assert text == "What\nit is.\n\n## What it does\n\n- A page.\n\n## Limits\n\nL\n"


def test_another_image_is_in_the_deployment_and_in_the_catalog() -> None:
    made = csv.make(sources.read("registry.example.com/operator:1"))
    assert made["metadata"]["annotations"]["containerImage"] == "registry.example.com/operator:1"
    assert "\n" not in made["metadata"]["annotations"]["description"], "a catalog shows it on one line"
    (deployment,) = made["spec"]["install"]["spec"]["deployments"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/operator:1"


def test_a_catalog_leads_to_the_repository(bundle: Bundle) -> None:
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    assert bundle.csv["metadata"]["annotations"]["repository"] == galaxy["repository"]
    assert {link["url"] for link in bundle.csv["spec"]["links"]} == {galaxy["repository"], galaxy["documentation"]}


def test_the_images_labels_are_the_annotations() -> None:
    lines = (ROOT / "build" / "bundle.Dockerfile").read_text().splitlines()
    labels = dict(line.removeprefix("LABEL ").split("=", 1) for line in lines if line.startswith("LABEL "))
    assert labels == files.labels()
    for line in lines:
        if line.startswith("COPY "):
            assert list(ROOT.glob(line.split()[1])), line
