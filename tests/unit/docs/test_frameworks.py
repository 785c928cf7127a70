"""docs/frameworks.md sums up what benchmarks/matrix.csv has, and each framework has its part."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from support import kinds

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
with (ROOT / "benchmarks" / "matrix.csv").open(encoding="utf-8", newline="") as file:
    CELLS = list(csv.DictReader(file))


def test_the_table_has_the_versions_the_cells_and_the_hangs_of_the_data() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\d+) \| (\d+) \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    cells = Counter((one["framework"], one["version"]) for one in CELLS)
    hangs = Counter(one["framework"] for one in CELLS if one["result"].startswith("hangs"))
    assert {(name, version): (int(count), int(hung)) for name, version, count, hung in rows} == {
        (name, version): (count, hangs[name]) for (name, version), count in cells.items()
    }
    assert f"each of the {len(CELLS)} cells" in PAGE


def test_every_framework_with_data_has_its_part() -> None:
    parts = " ".join(re.findall(r"^## (.+)$", PAGE, re.MULTILINE))
    measured = " ".join({one["framework"] for one in CELLS})
    titles = [declared["title"] for declared in kinds.DECLARED.values() if declared["title"] in measured]
    assert len(titles) > 6
    assert [title for title in titles if title not in parts] == []


def test_every_part_says_what_it_needs_how_it_fails_and_what_helps() -> None:
    for part in PAGE.split("\n## ")[3:-1]:
        for head in ("**Needs.**", "**A failure", "**What helps.**"):
            assert head in part, (part.splitlines()[0], head)
