"""The linter of prose: each rule finds what it is for, and nothing in what follows the rules."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from devtools.checks.prose.__main__ import TABLE, main
from devtools.checks.prose.rules import Rules, problems
from devtools.paths import ROOT

TABLE_OF_RULES = tomllib.loads(TABLE.read_text(encoding="utf-8"))
RULES = Rules(TABLE_OF_RULES["words_of_a_sentence"], TABLE_OF_RULES["instead"], TABLE_OF_RULES["diary"])
LONG = "one " * 26


def found(document: str) -> list[tuple[int, str]]:
    return [(number, message.partition(":")[0]) for number, message in problems(document, RULES)]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (f"{LONG}.\n", [(1, "26 words in a sentence, at most 25")]),
        (f"| a | b |\n| --- | --- |\n| x | {LONG} |\n", [(3, "26 words in a sentence, at most 25")]),
        (f"- item\n- {LONG}.\n", [(2, "26 words in a sentence, at most 25")]),
        ("A pod ends. A job ends.\n", [(1, "one sentence a line")]),
        ("\nA pod ends `now`. `kubectl` sees it.\n", [(2, "one sentence a line")]),
        ("A pod\nends.\n", [(1, "one sentence a line")]),
        ("- A pod ends.\nA job ends.\n", [(2, "no blank line before it, so it belongs to what is above")]),
        ("1. A pod:\n   - ends.\nA job ends.\n", [(3, "no blank line before it, so it belongs to what is above")]),
        (
            "| a | b |\n| --- | --- |\n| x | y |\nA pod.\n",
            [(4, "no blank line before it, so it belongs to what is above")],
        ),
        ("It is a Dialect.\n", [(1, "'Dialect'")]),
        ("The error was fixed.\n", [(1, "'was fixed'")]),
        ("It works, but for pods.\n", [(1, "'but for'")]),
    ],
)
def test_a_violation(document: str, expected: list[tuple[int, str]]) -> None:
    assert found(document) == expected


@pytest.mark.parametrize(
    "document",
    [
        "# A heading. Another sentence of a heading\n",
        f"```\n{LONG}. A. B\nwhoever\n```\n",
        f"    {LONG}. It goes\n",
        f"`{LONG}` is code.\n",
        f"[A link](https://example.com/{'a' * 20}).\n",
        "A pod ends.\nA job ends:\n\n- an item without a full stop\n- `a`\n",
        "| a |\n| --- |\n| A pod ends. A job ends. |\n\nA pod ends.\n",
        "- A pod ends:\n  1. A job ends.\n     A replica ends.\n\n  Now.\n\nA pod ends.\n",
        "A pod, e.g. a launcher, ends.\n",
        "It has the residential and the built-in.\n",
    ],
)
def test_what_follows_the_rules(document: str) -> None:
    assert found(document) == []


def test_every_file_that_is_held_to_the_rules_exists_once() -> None:
    names = TABLE_OF_RULES["files"]
    assert names == sorted(set(names))
    assert [name for name in names if not (ROOT / name).is_file()] == []


def test_the_program_names_file_and_line_and_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("Good.\n\nWhoever reads.\n")
    assert main([str(file)]) == 1
    assert capsys.readouterr().out == f"{file}:3: 'Whoever': the caller, who\n"


def test_the_documents_follow_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out
