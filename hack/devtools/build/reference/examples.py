"""The index of the examples, ``examples/README.md``: a row that is missing in its table is added, from the example."""

from __future__ import annotations

import re
from pathlib import Path

from devtools.definitions import documents
from devtools.paths import ROOT

FOLDER = ROOT / "examples"
INDEX = FOLDER / "README.md"
_ROW = re.compile(r"^\| \[([^]]+\.yaml)\]\(.*\|\n", re.MULTILINE)


def index(folder: Path = FOLDER) -> str:
    """The text with a row for each file; those that are there stay, since they say more than a file does."""
    text = (folder / INDEX.name).read_text(encoding="utf-8")
    rows = list(_ROW.finditer(text))
    listed = {row[1] for row in rows}
    added = "".join(_row(path) for path in sorted(folder.glob("*.yaml")) if path.name not in listed)
    return text[: rows[-1].end()] + added + text[rows[-1].end() :]


def _row(example: Path) -> str:
    """The row of a job that succeeds: its kind, and the first sentence of the comment at the top of its file."""
    job = next(one for one in documents(example) if one["kind"].endswith("Job"))
    comment = re.match(r"(?:---\n)?((?:#.*\n)+)", example.read_text(encoding="utf-8"))
    words = " ".join(line.removeprefix("#").strip() for line in comment[1].splitlines()) if comment else ""
    sentence = words.partition(". ")[0].strip(".")
    version = job["apiVersion"].rpartition("/")[2]
    return f"| [{example.name}]({example.name}) | {job['kind']}, {version} | {sentence} | Succeeded |\n"
