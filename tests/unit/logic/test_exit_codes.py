"""What an exit code means, in each of MXNet's dialects."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.exit_codes import Verdict, judge
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Termination
from support.builders import mxjob


def verdict(dialect: str, code: int, reason: str = "Error") -> Verdict:
    return judge(Termination(code, reason, "", ""), mxjob().dialect(dialect).job().dialect.exit_codes)


@pytest.mark.parametrize("dialect", ["v1", "v1alpha1", "fioravanzo", "mpba"])
def test_zero_is_success(dialect: str) -> None:
    assert verdict(dialect, 0, "Completed") is Verdict.SUCCESS


@pytest.mark.parametrize("dialect", ["fioravanzo", "mpba", "v1"])
def test_codes_of_signals_are_retryable(dialect: str) -> None:
    judged = {code: verdict(dialect, code) for code in range(1, 256)}
    assert [c for c, v in judged.items() if v is Verdict.PERMANENT] == list(range(1, 128))
    assert [c for c, v in judged.items() if v is Verdict.RETRYABLE] == list(range(128, 256))


@pytest.mark.parametrize("code", [1, 2, 126, 127, 128, 139])
def test_permanent_codes_of_kubeflow_v1alpha1(code: int) -> None:
    assert verdict("v1alpha1", code) is Verdict.PERMANENT


@pytest.mark.parametrize("code", [130, 137, 138, 143])
def test_retryable_codes_of_kubeflow_v1alpha1(code: int) -> None:
    assert verdict("v1alpha1", code) is Verdict.RETRYABLE


@pytest.mark.parametrize("code", [3, 64, 129, 136, 140, 255])
def test_codes_of_which_kubeflow_v1alpha1_says_nothing_are_not_retried(code: int) -> None:
    assert verdict("v1alpha1", code) is Verdict.PERMANENT


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("v1alpha1", Verdict.PERMANENT),
        ("fioravanzo", Verdict.PERMANENT),
        ("mpba", Verdict.PERMANENT),
        ("v1", Verdict.RETRYABLE),
    ],
)
def test_out_of_memory(dialect: str, expected: Verdict) -> None:
    assert verdict(dialect, 137, "OOMKilled") is expected
    assert verdict(dialect, 137) is Verdict.RETRYABLE
