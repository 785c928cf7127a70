"""Ownership of objects."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import (
    Owner,
    is_owned_by,
    owner_reference,
)
from support.builders import UID, mxjob

OWNER = Owner("default", UID)
REFERENCE = owner_reference(mxjob().job())


@pytest.mark.parametrize("metadata", [{}, {"namespace": "default"}])
def test_objects_of_the_job_are_owned(metadata: Any) -> None:
    assert is_owned_by({"metadata": {**metadata, "ownerReferences": [REFERENCE]}}, OWNER)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"ownerReferences": None},
        {"ownerReferences": [{"uid": "other", "controller": True}, {"name": "digits"}]},
        pytest.param({"ownerReferences": [{**REFERENCE, "controller": False}]}, id="an owner that is no controller"),
        pytest.param({"ownerReferences": [{"uid": UID}]}, id="no controller field"),
        pytest.param(
            {"namespace": "victim", "ownerReferences": [REFERENCE]}, id="a forged reference in another namespace"
        ),
    ],
)
def test_objects_of_others_are_not_owned(metadata: Any) -> None:
    assert not is_owned_by({"metadata": metadata}, OWNER)
