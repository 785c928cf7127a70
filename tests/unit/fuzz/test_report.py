"""The report of a fuzz run, and the record of each violation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from devtools.fuzz import report
from devtools.fuzz.beside import Times, delays, summary
from devtools.fuzz.cases import case
from devtools.fuzz.run import Memory, Result, Violation, identity
from devtools.load.kinds import read_kinds

KINDS = read_kinds()
TITLE = KINDS[0].title


def result() -> Result:
    found = Result(
        sent=Counter({TITLE: 5}),
        refused=Counter({TITLE: 2}),
        accepted=Counter({TITLE: 3}),
        outcomes={TITLE: Counter({"status": 2, "refused by the operator": 1})},
    )
    found.undisturbed = summary([Times(0.1, 0.2, 0.3, 0.4)])
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
    assert (lines[0], lines[-1], len(lines)) == ("0: 100 MiB, 50 MiB", "10000: 300 MiB, 250 MiB", 10)
    found.memory = found.memory[:2]
    assert "  0: 100 MiB, 50 MiB\n  50: 101 MiB, 51 MiB\n" in report.table(found, 7)


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
    undisturbed = summary([Times(0.1, 0.2, 0.3, 1.0), Times(0.1, 0.4, 0.5, 2.0), Times(0.2, 0.6, 0.7, 9.0)])
    assert undisturbed.median == Times(0.1, 0.4, 0.5, 2.0)
    assert undisturbed.longest.running == 9.0
    late = delays(Times(0.1, 1.5, 1.5, 1.5), undisturbed)
    assert (round(late.first_pod, 6), round(late.running, 6)) == (1.1, -0.5)
