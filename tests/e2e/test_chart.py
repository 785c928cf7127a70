"""The chart as the real Helm fills it in; the cluster is not asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import helm_chart
from support.helm_chart import DEPLOY, Objects, rendered, template

COMPONENT = DEPLOY / "kustomize" / "components" / "progress"
NAME = "x-dljob-operator-progress"

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def helm() -> Path:
    return helm_chart.program()


def container(objects: Objects) -> Manifest:
    (found,) = objects["Deployment", "x-dljob-operator"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_nothing_serves_progress_unless_it_is_asked_for(helm: Path) -> None:
    without = rendered(helm, "engine=dljob-operator")
    assert "progress" not in str(without).lower() and "POD_NAME'" not in str(without)
    assert rendered(helm, "engine=dljob-operator", "progress=off") == without
    assert "progress" not in str(rendered(helm, "progress=off")).lower()


@pytest.mark.parametrize("value", ["opt-in", "on"])
def test_the_endpoint_of_progress_is_that_of_the_component(helm: Path, value: str) -> None:
    """The same Service and rights, under the release's name, and the same changes of the Deployment."""
    without, objects = (rendered(helm, "engine=dljob-operator", *more) for more in ([], [f"progress={value}"]))
    before, after = container(without), container(objects)
    (added,) = [one for one in after["env"] if one["name"] == "DLJOB_PROGRESS"]
    assert added == {"name": "DLJOB_PROGRESS", "value": value}
    patch = [entry["value"] for entry in yaml.safe_load((COMPONENT / "deployment.yaml").read_text(encoding="utf-8"))]
    changes = [one for part in ("env", "ports") for one in after[part] if one not in before[part] and one != added]
    assert changes == [one for one in patch if one.get("name") != "DLJOB_PROGRESS"]
    assert after["args"] == [f"--progress-url=https://{NAME}.own.svc:8444"] and "args" not in before
    files = yaml.safe_load((COMPONENT / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    new = {one: objects[one] for one in objects if one not in without}
    assert len(new) == len(files) == 5
    for file in files:
        expected = yaml.safe_load((COMPONENT / file).read_text().replace("dljob-operator-progress", NAME))
        found = new[expected["kind"], NAME]
        assert "namespace" not in found["metadata"], "the release's"
        del found["metadata"], expected["metadata"]
        if "subjects" in expected:
            expected["subjects"] = [{"kind": "ServiceAccount", "name": "x-dljob-operator", "namespace": "own"}]
        if expected["kind"] == "Service":
            expected["spec"]["selector"]["app.kubernetes.io/instance"] = "x"
        assert found == expected, file


def test_rights_that_are_given_elsewhere(helm: Path) -> None:
    objects = rendered(helm, "engine=dljob-operator", "progress=on", "rbac.install=false")
    assert [kind for kind, name in objects if name == NAME] == ["Service"]


@pytest.mark.parametrize("value", ["opt-in", "on"])
@pytest.mark.parametrize("engine", ["", "ansible-operator"])
def test_only_the_embedded_engine_serves_progress(helm: Path, engine: str, value: str) -> None:
    done = template(helm, f"engine={engine}", f"progress={value}")
    assert done.returncode
    assert "progress needs engine: dljob-operator" in done.stderr


def test_another_value_is_refused(helm: Path) -> None:
    done = template(helm, "engine=dljob-operator", "progress=yes")
    assert done.returncode
    assert "at '/progress': value must be one of '', 'off', 'opt-in', 'on'" in done.stderr
