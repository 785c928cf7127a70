"""The controller among the owners of an object."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of

OWNER = {"uid": "owner"}
CONTROLLER = {"uid": "controller", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"ownerReferences": [OWNER, CONTROLLER]}, CONTROLLER),
        ({"ownerReferences": [OWNER]}, None),
        ({"ownerReferences": [{**CONTROLLER, "controller": False}]}, None),
        ({"ownerReferences": []}, None),
        ({"ownerReferences": None}, None),
        ({}, None),
        (None, None),
        ({"ownerReferences": [None, "x", CONTROLLER]}, CONTROLLER),
        ({"ownerReferences": True}, None),
        ({"ownerReferences": CONTROLLER}, None),
        ({"ownerReferences": [{**CONTROLLER, "controller": "true"}]}, None),
    ],
)
def test_an_owner_that_does_not_control_an_object_is_passed_over(metadata: Any, found: Any) -> None:
    assert controller_of({"metadata": metadata}) == found
