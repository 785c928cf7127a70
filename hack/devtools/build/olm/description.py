"""The parts of the README that are relevant in a catalog of operators."""

from __future__ import annotations

import re

_SECTIONS = ("What it does", "Limits")
_LINK = re.compile(r"\[([^]]*)\]\((?!https?://)[^)]*\)")


def of(readme: str) -> str:
    """The text before the first heading, then the sections on features and limits.

    The sections on building and testing are omitted. Links to files of the repository are replaced by their text,
    because their targets are not in the catalog.
    """
    head, *sections = readme.split("\n## ")
    title, _, opening = head.partition("\n")
    if not title.startswith("# "):
        raise ValueError("README.md does not begin with its title")
    by_title = {section.partition("\n")[0]: section for section in sections}
    parts = [opening.strip(), *(f"## {by_title[name].strip()}" for name in _SECTIONS)]
    # the README's last line is the licence and not part of the section
    text = re.sub(r"\n+License: .*\Z", "", "\n\n".join(parts))
    return _LINK.sub(r"\1", text) + "\n"


def summary(text: str) -> str:
    """The first paragraph on one line."""
    return " ".join(text.partition("\n\n")[0].split())
