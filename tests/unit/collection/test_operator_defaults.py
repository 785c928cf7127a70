"""What the engine tells the action plugin by environment variables."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.dljob.operator.plugins.action import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import FORCE_DELETE_VARIABLE
from support.builders import declaration


@pytest.mark.parametrize(("text", "seconds"), [(None, None), ("", None), ("0", 0), ("300", 300)])
def test_the_time_of_a_deletion_by_force(
    monkeypatch: pytest.MonkeyPatch, text: str | None, seconds: int | None
) -> None:
    monkeypatch.delenv(FORCE_DELETE_VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(FORCE_DELETE_VARIABLE, text)
    assert reconcile._force_delete_after() == seconds


@pytest.mark.parametrize("text", ["-1", "5m", "1.5"])
def test_a_time_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(FORCE_DELETE_VARIABLE, text)
    with pytest.raises(AnsibleActionFail, match=f"{FORCE_DELETE_VARIABLE}: '{text}' is not a number of seconds"):
        reconcile._force_delete_after()


def test_it_is_part_of_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_DELETE_VARIABLE, "60")
    framework = reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")
    assert framework.force_delete_after_seconds == 60
