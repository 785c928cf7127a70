"""Installing definitions: what is applied, and where another operator has one of the same name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from integration.engine.support import GROUP, ROOT, crd, remove_crd

from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.crds import CRDS, install_crds


class Recorded(KubeApi):
    """Records the writes."""

    def __init__(self, api: KubeApi) -> None:
        self.__dict__.update(api.__dict__)
        self.writes: list[str] = []

    def request(self, method: str, path: str, body: object = None, **more: Any) -> dict[str, Any]:
        if method != "GET":
            self.writes.append(method)
        return super().request(method, path, body, **more)


KEPT, OURS = f"keptjobs.{GROUP}", f"nextjobs.{GROUP}"


def with_an_old_version(definition: dict[str, Any]) -> dict[str, Any]:
    """Its objects are stored as v0."""
    (version,) = definition["spec"]["versions"]
    versions = [{**version, "storage": False}, {**version, "name": "v0"}]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


@pytest.mark.parametrize("mark", ["", "test"])
def test_a_definition_with_stored_versions_of_its_own_stays(
    kube: KubeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture, mark: str
) -> None:
    remove_crd(kube, KEPT)
    kube.request("POST", CRDS.collection(), with_an_old_version(crd("KeptJob")))
    (tmp_path / "kept.yaml").write_text(yaml.safe_dump(crd("KeptJob")))
    (tmp_path / "next.yaml").write_text(yaml.safe_dump(crd("NextJob")))
    try:
        assert [one.name for one in install_crds(kube, tmp_path, mark)] == [OURS]
        assert "another definition of this name stays" in caplog.text
        assert [v["name"] for v in kube.get(CRDS.item("", KEPT))["spec"]["versions"]] == ["v1", "v0"]
    finally:
        remove_crd(kube, KEPT)
        remove_crd(kube, OURS)


def test_the_definitions_of_this_project_are_applied_once(kube: KubeApi, crds: None) -> None:
    """The API server returns them exactly as the fixture sent them, so the next start has nothing to apply."""
    again = Recorded(kube)
    assert len(install_crds(again, ROOT / "crds")) == len([*(ROOT / "crds").glob("*.yaml")])
    assert again.writes == []


def described(definition: dict[str, Any]) -> dict[str, Any]:
    """The versions of a definition, with a text of a user's own in the schema."""
    (version,) = copy.deepcopy(definition["spec"]["versions"])
    version["schema"]["openAPIV3Schema"]["description"] = "of a user"
    return {"versions": [version]}


@pytest.mark.parametrize(
    "edit",
    [
        lambda definition: {"spec": described(definition)},
        lambda _: {"spec": {"names": {"shortNames": ["mine"]}}},
        lambda _: {"spec": {"names": {"categories": None}}},
        lambda _: {"metadata": {"labels": {"app.kubernetes.io/part-of": None}}},
        lambda _: {"metadata": {"labels": {"app.kubernetes.io/part-of": "something-else"}}},
    ],
    ids=["schema", "names", "no category", "no label", "label"],
)
def test_an_edit_of_a_user_is_repaired_at_the_next_start(
    kube: KubeApi, tmp_path: Path, edit: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    definition = crd("EditedJob")
    definition["metadata"]["labels"] = {"app.kubernetes.io/part-of": "dljob-operator"}
    definition["spec"]["names"] |= {"shortNames": ["edited"], "categories": ["edits"]}
    definition["spec"]["conversion"] = {"strategy": "None"}  # the API server's default
    (tmp_path / "edited.yaml").write_text(yaml.safe_dump(definition))
    path = CRDS.item("", definition["metadata"]["name"])
    try:
        install_crds(kube, tmp_path)
        before = kube.get(path)
        kube.request("PATCH", path, edit(definition), content_type=MERGE_PATCH)
        start = Recorded(kube)
        install_crds(start, tmp_path)
        assert start.writes == ["PATCH"]
        after = kube.get(path)
        assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])
    finally:
        remove_crd(kube, definition["metadata"]["name"])
