"""Classification of exit codes in each of MXNet's flavors."""

from __future__ import annotations

import re

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.exit_codes import (
    ExitCodeClass,
    classify_exit_code,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Termination
from support.builders import ROOT, mxjob


def classify(flavor: str, code: int, reason: str = "Error") -> ExitCodeClass:
    return classify_exit_code(Termination(code, reason, "", ""), mxjob().flavor(flavor).job().flavor.exit_codes)


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo", "mpba"])
def test_zero_is_success(flavor: str) -> None:
    assert classify(flavor, 0, "Completed") is ExitCodeClass.SUCCESS


@pytest.mark.parametrize("flavor", ["fioravanzo", "mpba", "v1"])
def test_codes_of_signals_are_retryable(flavor: str) -> None:
    judged = {code: classify(flavor, code) for code in range(1, 256)}
    assert [c for c, v in judged.items() if v is ExitCodeClass.PERMANENT] == list(range(1, 128))
    assert [c for c, v in judged.items() if v is ExitCodeClass.RETRYABLE] == list(range(128, 256))


@pytest.mark.parametrize("code", [1, 2, 126, 127, 128, 139])
def test_permanent_codes_of_kubeflow_v1alpha1(code: int) -> None:
    assert classify("v1alpha1", code) is ExitCodeClass.PERMANENT


@pytest.mark.parametrize("code", [130, 137, 138, 143])
def test_retryable_codes_of_kubeflow_v1alpha1(code: int) -> None:
    assert classify("v1alpha1", code) is ExitCodeClass.RETRYABLE


@pytest.mark.parametrize("code", [3, 64, 129, 136, 140, 255])
def test_codes_of_which_kubeflow_v1alpha1_says_nothing_are_not_retried(code: int) -> None:
    assert classify("v1alpha1", code) is ExitCodeClass.PERMANENT


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [
        ("v1alpha1", ExitCodeClass.PERMANENT),
        ("fioravanzo", ExitCodeClass.PERMANENT),
        ("mpba", ExitCodeClass.PERMANENT),
        ("v1", ExitCodeClass.RETRYABLE),
    ],
)
def test_out_of_memory(flavor: str, expected: ExitCodeClass) -> None:
    assert classify(flavor, 137, "OOMKilled") is expected
    assert classify(flavor, 1, "OOMKilled") is expected, "a launcher ends with 1 where the kernel kills its worker"
    assert classify(flavor, 137) is ExitCodeClass.RETRYABLE


TABLE = re.compile(r"^\| (\d+)(?: or (\d+))? \| .* \| (.+) \|$", re.MULTILINE)


def test_the_table_of_frameworks_has_the_classes_of_v1() -> None:
    """docs/troubleshooting.md, the section on exit codes by framework."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    section = text.partition("### Exit codes by framework")[2].partition("\n## ")[0]
    rows = TABLE.findall(section)
    assert len(rows) == 18
    words = {ExitCodeClass.PERMANENT: "permanent", ExitCodeClass.RETRYABLE: "retried"}
    for first, second, described in rows:
        classes = {code: words[classify("v1", int(code))] for code in (first, second) if code}
        expected = ", ".join(f"{code} {word}" for code, word in classes.items()) if second else classes[first]
        assert described == expected
