"""What the engine tells the action plugin by environment variables."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.dljob.operator.plugins.action import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared import operator_defaults
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    FORCE_DELETE_VARIABLE,
    MAX_REPLICAS,
    TERMINATION_MESSAGE_POLICY_VARIABLE,
)
from support.builders import declaration


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (operator_defaults.force_delete_after, "", None),
        (operator_defaults.force_delete_after, "0", 0),
        (operator_defaults.force_delete_after, "300", 300),
        (operator_defaults.max_replicas, "", MAX_REPLICAS),
        (operator_defaults.max_replicas, "7", 7),
        (operator_defaults.termination_message_policy, "", "FallbackToLogsOnError"),
        (operator_defaults.termination_message_policy, "File", "File"),
        (operator_defaults.cloud, "", ""),
        (operator_defaults.cloud, "gke", "gke"),
    ],
)
def test_a_value(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        *((operator_defaults.force_delete_after, text, "a number of seconds") for text in ("-1", "5m", "1.5")),
        *((operator_defaults.max_replicas, text, "a number of 1 or more") for text in ("0", "-1", "many", "1e3")),
        (operator_defaults.termination_message_policy, "file", "neither FallbackToLogsOnError nor File"),
        (operator_defaults.cloud, "aws", "neither gke nor azure"),
    ],
)
def test_a_value_that_is_none(read: Callable[[str], object], text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        read(text)
    assert str(caught.value).startswith(repr(text))


def test_the_action_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_DELETE_VARIABLE, "5m")
    with pytest.raises(AnsibleActionFail, match=f"{FORCE_DELETE_VARIABLE}: '5m'"):
        reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")


def test_it_is_part_of_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_DELETE_VARIABLE, "60")
    framework = reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")
    assert framework.force_delete_after_seconds == 60


def test_whether_logs_are_quoted_is_part_of_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TERMINATION_MESSAGE_POLICY_VARIABLE, "File")
    framework = reconcile._framework({"framework": declaration("mxnet")}, lambda name: "")
    assert framework.termination_message_policy == "File"
