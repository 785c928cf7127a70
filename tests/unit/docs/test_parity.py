"""docs/parity.csv has no promise without a verdict, a part per early operator, and names existing tests."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from devtools.build.images.manifests import folders
from support.named_tests import exists

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "parity.md").read_text(encoding="utf-8")
COLUMNS = ["project", "api", "promise", "section", "verdict", "remark", "why", "tests"]
EARLY_OPERATORS = (
    ("mx-operator", "fioravanzo.org/v1alpha1"),
    ("mx-operator", "kubeflow.org/v1alpha1"),
    ("dl-operator", "mpba.fbk.eu/v1"),
    ("tensorflow/k8s", "tensorflow.org/v1alpha1"),
    ("caffe2-operator", "kubeflow.org/v1alpha1"),
)
VERDICTS = ("same", "better", "different", "not yet", "not here")

with (ROOT / "docs" / "parity.csv").open(encoding="utf-8", newline="") as file:
    TABLE = list(csv.reader(file))
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in TABLE[1:]]


@pytest.mark.parametrize("operator", EARLY_OPERATORS, ids=" ".join)
def test_every_early_operator_has_its_promises(operator: tuple[str, str]) -> None:
    assert [row for row in ROWS if (row["project"], row["api"]) == operator]


def test_every_promise_has_a_verdict() -> None:
    assert TABLE[0] == COLUMNS
    for row in ROWS:
        assert row["promise"], row
        assert row["verdict"] in VERDICTS, row
        assert row["remark"] or row["verdict"] == "same" or row["why"], row


def test_every_test_that_is_named_exists() -> None:
    named = {name for row in ROWS for name in row["tests"].split()}
    assert sorted(name for name in named if not exists(name)) == []


def test_what_no_test_shows_says_why() -> None:
    for row in ROWS:
        if not row["tests"]:
            assert row["verdict"] in ("not yet", "not here", "different"), row
            assert len(row["why"]) > 20, (row, "say why no test shows it")


def test_the_page_has_the_number_of_each_verdict() -> None:
    counts = Counter((row["api"], row["project"], row["verdict"]) for row in ROWS)
    printed = re.findall(r"^\| ([\w/-]+)[^|]* \| `(\S+)` \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE)
    assert {(project, api): numbers.split(" | ") for project, api, numbers in printed} == {
        (row["project"], row["api"]): [str(counts[row["api"], row["project"], one]) for one in VERDICTS] for row in ROWS
    }


def test_every_manifest_of_theirs_is_applied_by_an_end_to_end_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "e2e").glob("test_*.py"))
    names = {path.name for folder in folders() for path in folder.glob("*.yaml")}
    assert len(names) >= 10
    assert sorted(name for name in names if f'"{name}"' not in tests) == []
