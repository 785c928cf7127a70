"""Every link within the repository leads to a file, and its anchor to a heading of that file."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from devtools.build import stamp
from support.documents import ROOT

REPOSITORY = stamp.read().urls["Repository"]
FILES = sorted(path for folder in ("", "[a-z]*/", "[a-z]*/[a-z]*/") for path in ROOT.glob(f"{folder}*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(file: Path) -> frozenset[str]:
    """The anchors that a forge makes of the headings: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    texts = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return frozenset(re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in texts)


def broken(file: Path, text: str) -> list[str]:
    """The links of a document's ``text`` without a file, or without the heading that they name."""
    found = []
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        if inside := re.match(rf"{re.escape(REPOSITORY)}/(?:blob|raw)/main/", path):
            target = ROOT / path[inside.end() :]
        elif "://" in path:
            continue
        else:
            target = file.parent / path if path else file
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target.resolve())):
            found.append(link)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(file: Path) -> None:
    assert broken(file, file.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_found() -> None:
    text = (
        f"[a](gone.md) [b](#gone) [c]({REPOSITORY}/blob/main/README.md#gone) [d](README.md#install) [e](https://x.y/#z)"
        f"![f]({REPOSITORY}/raw/main/docs/gone.svg) ![g]({REPOSITORY}/raw/main/docs/demo.svg)"
    )
    assert broken(ROOT / "CONTRIBUTING.md", text) == [
        "gone.md",
        "#gone",
        f"{REPOSITORY}/blob/main/README.md#gone",
        f"{REPOSITORY}/raw/main/docs/gone.svg",
    ]
