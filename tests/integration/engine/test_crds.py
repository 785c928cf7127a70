"""Installing definitions where another operator has one of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.engine.support import GROUP, crd, remove_crd

from dljob_operator.engine.crds import CRDS, install_crds
from dljob_operator.engine.kube import KubeApi

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
