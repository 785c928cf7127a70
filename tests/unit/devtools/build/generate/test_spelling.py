"""Other spellings of the fields of the early operators."""

from __future__ import annotations

import pytest
from devtools.build.generate.spelling import other_spellings, spelled
from devtools.definitions import definitions


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("tensorboard", {"tensorBoard", "TensorBoard"}),
        ("tfReplicaType", {"TfReplicaType", "TFReplicaType"}),
        ("RuntimeId", {"runtimeId", "RuntimeID"}),
        ("IsDefaultPS", {"isDefaultPS", "isDefaultPs"}),
        ("PsRootPort", {"psRootPort", "PSRootPort"}),
        ("mxImage", {"mximage", "MXImage"}),
    ],
)
def test_what_people_write(name: str, others: set[str]) -> None:
    found = other_spellings(name)
    assert others <= set(found)
    assert {one.casefold() for one in found} == {name.casefold()}
    assert name not in found and len(found) == len(set(found))


def test_a_rule_names_the_right_one() -> None:
    made = spelled({"type": "object", "required": ["need"], "properties": {"a": {"type": "integer"}, "need": {}}})
    assert made["properties"]["A"] == {"type": "integer"}
    assert "Need" not in made["properties"], "the API server says that need is missing"
    (rule,) = made["x-kubernetes-validations"]
    assert rule["rule"] == "!has(self.A)"
    assert rule["messageExpression"] == "'%s is not known in this spelling: write %s'.format(['A', 'a'])"


def test_fields_in_lists_and_objects_have_them_too_and_templates_do_not() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}}
    made = spelled(
        {
            "type": "object",
            "properties": {"l": {"type": "array", "items": inner}, "o": inner, "template": inner},
        }
    )["properties"]
    assert "B" in made["l"]["items"]["properties"] and "B" in made["o"]["properties"]
    assert made["L"] == {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    assert made["template"] == inner and "Template" not in made


@pytest.mark.parametrize(
    ("name", "version", "has"),
    [
        ("tfjobs.tensorflow.org", "v1alpha1", True),
        ("tfjobs.kubeflow.org", "v1alpha1", True),
        ("tfjobs.kubeflow.org", "v1", False),
        ("mxjobs.kubeflow.org", "v1alpha1", True),
        ("mxjobs.fioravanzo.org", "v1alpha1", True),
        ("mxjobs.mpba.fbk.eu", "v1", True),
        ("caffe2jobs.kubeflow.org", "v1alpha1", True),
        ("pytorchjobs.kubeflow.org", "v1", False),
        ("mpijobs.kubeflow.org", "v2beta1", False),
    ],
)
def test_the_kinds_of_early_operators_have_them(name: str, version: str, has: bool) -> None:
    (found,) = [one for one in definitions()[name]["spec"]["versions"] if one["name"] == version]
    assert ("is not known in this spelling" in str(found)) is has
