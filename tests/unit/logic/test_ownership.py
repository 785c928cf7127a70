"""Whose an object is."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import is_owned_by, owner_reference
from support.builders import UID, mxjob


def test_what_we_make_is_ours() -> None:
    assert is_owned_by({"metadata": {"ownerReferences": [owner_reference(mxjob().job())]}}, UID)


@pytest.mark.parametrize(
    "metadata", [None, {}, {"ownerReferences": None}, {"ownerReferences": [{"uid": "other"}, {"name": "digits"}]}]
)
def test_a_strangers_is_not(metadata: Any) -> None:
    assert not is_owned_by({"metadata": metadata}, UID)
