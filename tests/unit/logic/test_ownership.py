"""Ownership of objects."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import is_owned_by, owner_reference
from support.builders import UID, mxjob


def test_objects_of_the_job_are_owned() -> None:
    assert is_owned_by({"metadata": {"ownerReferences": [owner_reference(mxjob().job())]}}, UID)


@pytest.mark.parametrize(
    "metadata", [None, {}, {"ownerReferences": None}, {"ownerReferences": [{"uid": "other"}, {"name": "digits"}]}]
)
def test_objects_of_others_are_not_owned(metadata: Any) -> None:
    assert not is_owned_by({"metadata": metadata}, UID)
