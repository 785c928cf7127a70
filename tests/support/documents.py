"""The documents, and the commands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/semantics").glob("*.md")})

_PROGRAM = (
    r"(?:make|kubectl|kind|helm|docker|molecule|ansible-[a-z]+|dljob-operator|python|pip|git|"
    r"\.(?= [./])|\.venv/bin/\S+|[A-Z_]+=\S+ (?:make|(?:\.venv/bin/)?python|molecule|kubectl|dljob-operator))"
)
_BLOCK = re.compile(rf"^(?: {{4,}})?(?:\$ )?({_PROGRAM} .*|make)$")
_INLINE = re.compile(rf"`({_PROGRAM} [^`\n]+|make)`")


def commands(path: Path) -> Iterator[str]:
    """Every command of a document: lines of a code block, and code within a sentence that begins with a program."""
    fenced = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            found = _BLOCK.match(line)
            if found:
                # a comment follows after a "#" or several blanks
                yield re.split(r" {2,}|\s+#", found[1])[0]
        else:
            yield from _INLINE.findall(line)
