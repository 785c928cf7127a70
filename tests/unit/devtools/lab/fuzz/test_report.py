"""The report of a fuzz run, and the record of each violation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from devtools.lab.fuzz import cli, report
from devtools.lab.fuzz.beside import Times, delays, summary
from devtools.lab.fuzz.cases import case
from devtools.lab.fuzz.run import Memory, Result, Violation, identity
from devtools.testbed.jobs import read_kinds

KINDS = read_kinds()
TITLE = KINDS[0].title


def result() -> Result:
    found = Result(
        sent=Counter({TITLE: 5}),
        refused=Counter({TITLE: 2}),
        accepted=Counter({TITLE: 3}),
        outcomes={TITLE: Counter({"status": 2, "refused by the operator": 1})},
    )
    found.undisturbed = summary([Times(0.1, 0.2, 0.3, 0.4, 0.1)])
    found.violations.append(Violation("no answer", "x", (case(KINDS, 1, 0),)))
    return found


def test_the_table_adds_up() -> None:
    text = report.table(result(), 7)
    assert "seed 7" in text
    assert f"| {TITLE} | 5 | 2 | 3 | 2 | 1 | 0 | 0 | 0 |" in text
    assert "| all | 5 | 2 | 3 | 2 | 1 | 0 | 0 | 0 |" in text
    assert "violations: 1" in text


def test_the_memory_is_that_of_some_of_the_batches() -> None:
    found = result()
    found.memory = [Memory(50 * number, (100 + number) << 20, (50 + number) << 20) for number in range(201)]
    lines = [line.strip() for line in report.table(found, 7).splitlines() if " MiB" in line]
    assert (lines[0], lines[-1], len(lines)) == ("| 0 | 100 MiB | 50 MiB |", "| 10,000 | 300 MiB | 250 MiB |", 10)
    found.memory = found.memory[:2]
    assert "| 0 | 100 MiB | 50 MiB |\n| 50 | 101 MiB | 51 MiB |\n" in report.table(found, 7)


def test_the_committed_report_has_the_machine_the_outcomes_and_the_memory() -> None:
    found = result()
    found.facts = {"machine": "two cores", "this operator": "commit abc"}
    found.seconds, found.complete, found.memory = 840.0, True, [Memory(0, 173 << 20, 60 << 20)]
    text = report.document(found, "--seed 7 --objects 5")
    assert 'Written by `make fuzz FUZZ="--seed 7 --objects 5"`.' in text
    assert "- machine: two cores\n- this operator: commit abc\n- run: 5 objects in 14 minutes\n" in text
    assert f"| {TITLE} | 5 | 2 | 3 | 2 | 1 | 0 | 0 | 0 |" in text
    assert "- healthy jobs undisturbed: 1; first pod after" in text
    assert "| 0 | 173 MiB | 60 MiB |" in text
    assert "incomplete" not in text


@pytest.mark.parametrize(
    ("details", "lines"),
    [
        ([], ["No violation."]),
        (["a\n| b `c`", "d"], ["2 violations:", "", "- **no answer**: `a | b c`", "- **no answer**: `d`"]),
    ],
)
def test_the_committed_report_has_the_violations(details: list[str], lines: list[str]) -> None:
    found = Result(violations=[Violation("no answer", detail) for detail in details])
    assert "\n\n" + "\n".join(lines) + "\n\n| kind |" in report.document(found, "")


@pytest.mark.parametrize(
    ("given", "arguments", "table"),
    [
        ([], "--seed 1 --objects 1000", cli.TABLE),
        (["--seed", "7", "--delay", "60", "--table", "x"], "--seed 7 --objects 1000 --delay 60", Path("x")),
        (["--only", "17,42"], "--seed 1 --only 17,42", None),
    ],
)
def test_a_run_of_single_cases_writes_no_committed_report(
    given: list[str], arguments: str, table: Path | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written: list[tuple[Path, str]] = []

    @contextmanager
    def prepared(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(client=None, nodes=1)

    monkeypatch.setattr(cli, "prepared", prepared)
    monkeypatch.setattr(cli, "_fuzz", lambda *_: None)
    monkeypatch.setattr(cli.machine, "facts", lambda *_: {})
    monkeypatch.setattr(Path, "write_text", lambda path, text: written.append((path, text)))
    cli.main([*given, "--output", str(tmp_path)])
    reports = [(path, text) for path, text in written if path.parent != tmp_path]
    assert [path for path, _ in reports] == ([table] if table else [])
    assert all(f'FUZZ="{arguments}"' in text for _, text in reports)


def test_a_violation_is_saved_with_its_cases_in_place_of_older_ones(tmp_path: Path) -> None:
    (tmp_path / "violations").mkdir()
    (tmp_path / "violations" / "099.json").write_text("{}")
    report.write(result(), 7, tmp_path)
    (saved,) = (tmp_path / "violations").iterdir()
    document = json.loads(saved.read_text())
    assert document["what"] == "no answer"
    assert document["cases"][0]["number"] == 0
    assert document["cases"][0]["manifest"]["kind"] == KINDS[0].kind
    whole = json.loads((tmp_path / "report.json").read_text())
    assert whole["seed"] == 7 and whole["violations"] == [{"what": "no answer", "detail": "x"}]


def test_an_object_that_is_nested_too_deeply_is_identified() -> None:
    uid = "e800b1ed-9c6c-11e8-962f-704d7b2c0a63"
    deep = "[" * 5000 + "]" * 5000
    metadata = f'"metadata":{{"generation":1,"name":"f1","namespace":"x","resourceVersion":"5","uid":"{uid}"}}'
    assert identity(f'{{"kind":"MXJob",{metadata},"spec":{{}}}}'.encode()) == ("f1", uid)
    assert identity(f'{{"kind":"MXJob",{metadata},"spec":{deep}}}'.encode()) == ("f1", uid)


def test_a_delay_is_the_difference_to_the_undisturbed_median() -> None:
    undisturbed = summary(
        [Times(0.1, 0.2, 0.3, 1.0, 0.1), Times(0.1, 0.4, 0.5, 2.0, 0.2), Times(0.2, 0.6, 0.7, 9.0, 0.3)]
    )
    assert undisturbed.median == Times(0.1, 0.4, 0.5, 2.0, 0.2)
    assert undisturbed.longest.running == 9.0
    late = delays(Times(0.1, 1.5, 1.5, 1.5, 0.1), undisturbed)
    assert (round(late.first_pod, 6), round(late.running, 6), round(late.report, 6)) == (1.1, -0.5, -0.1)
