"""The README's words, as far as they are for somebody who looks at a catalog of operators."""

from __future__ import annotations

import re

_SECTIONS = ("What it does", "Limits")
_LINK = re.compile(r"\[([^]]*)\]\((?!https?://)[^)]*\)")


def of(readme: str) -> str:
    """What comes before the first heading, then the sections that tell what it does and what it does not.

    How to build and test it is for whoever has the repository, and so is what a link within the repository leads to:
    of such a link only the text is left.
    """
    head, *sections = readme.split("\n## ")
    title, _, opening = head.partition("\n")
    if not title.startswith("# "):
        raise ValueError("README.md does not begin with its title")
    by_title = {section.partition("\n")[0]: section for section in sections}
    told = [opening.strip(), *(f"## {by_title[name].strip()}" for name in _SECTIONS)]
    # the licence is the README's last line, not a limit
    text = re.sub(r"\n+License: .*\Z", "", "\n\n".join(told))
    return _LINK.sub(r"\1", text) + "\n"


def summary(text: str) -> str:
    """The first paragraph on one line."""
    return " ".join(text.partition("\n\n")[0].split())
