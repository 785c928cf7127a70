"""The rules for commit subjects, as pure functions.

gitlint and commitlint were considered. Neither checks for the imperative mood, which is required here; gitlint has had
no release since 2023, and commitlint needs Node. The word list of ruff's D401 accepts "Supports" and "Bumping".
"""

from __future__ import annotations

import re

LIMIT = 72
"""`git log` indents by four columns: a longer subject does not fit on a terminal with 80 columns."""

_MADE_BY_GIT = re.compile(r"Merge |Revert \"|Reapply \"|(fixup|squash|amend)! ")
_AREA = re.compile(r"[A-Za-z0-9][\w./*-]*(, ?[A-Za-z0-9][\w./*-]*)*: ")
"""`docs: `, `hack/devtools/testbed/cluster: `, `crds, bundle: `."""
_WORD = re.compile(r"[A-Za-z]+")
_VOWEL = re.compile(r"[aeiouy]")

_BASE_FORMS = frozenset(["alias", "atlas", "bias", "canvas", "embed", "focus", "imbed", "rebias"])
"""Base forms that end like a past or third-person form."""

_PAST_FORMS = frozenset(  # as text: a list of strings would be formatted to a line a word
    """
    became began begun bought broke broken brought built came caught chose chosen did done drew driven drove fallen fell
    felt forgot forgotten fought found froze frozen gave given gone got gotten grew grown had held hid hidden kept knew
    known led left lost made meant met overrode overridden paid rebuilt redid redone rewritten rewrote said sent shown
    sold sought spent spoke spoken stood stuck swept taken taught thought threw thrown told took understood undid undone
    went withdrawn withdrew woke won wrote written
    """.split()  # noqa: SIM905
)

_NOT_VERBS = frozenset(
    """
    a all also an and another are as at because by each every for from has here how i if in is it its my new no not now
    of on one only or our some that the their there these they this those to two was we were what when where which who
    why with without you your
    """.split()  # noqa: SIM905
)


def problems(subject: str) -> list[str]:
    """The violated rules, each with its fix; empty if the subject is valid."""
    if _MADE_BY_GIT.match(subject):
        return []
    if not subject.strip():
        return ["the subject is empty: describe the change in the imperative mood (Add, Fix, Remove)"]
    found = []
    if len(subject) > LIMIT:
        found.append(f"{len(subject)} characters: shorten it to {LIMIT} and move the rest to the body")
    if subject != subject.strip():
        found.append("blanks around it: remove them")
    if subject.rstrip().endswith("."):
        found.append("a period at its end: remove it")
    area = _AREA.match(subject)
    rest = subject[area.end() :] if area else subject
    if not area and rest[:1].islower():
        found.append("it starts with neither a capital letter nor 'area: ': write Fix ... or docs: fix ...")
    found += _mood(rest)
    return found


def _mood(text: str) -> list[str]:
    match = _WORD.match(text)
    if match is None:
        return ["it does not start with a verb: describe the change in the imperative mood (Add, Fix, Remove)"]
    word = match[0]
    # "I/O", "README.md", "dmlc_tracker": names, whose spelling gives no information
    if re.match(r"[\w/.(]", text[match.end() :]):
        return [f"{text.split()[0]!r} is a name, not a verb: start with what the commit does to it (Add, Fix, Remove)"]
    form = _form(word.lower())
    return [f"{word!r} is {form}: use the base form of the verb (Add, not Added, Adds or Adding)"] if form else []


def _form(word: str) -> str | None:
    """What the word is instead of a verb in its base form, judged by its spelling; None if it may be one."""
    if word in _BASE_FORMS:
        return None
    if word in _NOT_VERBS:
        return "not a verb"
    if word in _PAST_FORMS or (_stem(word, "ed") and not word.endswith("eed")) or word in ("agreed", "freed"):
        return "a past form"
    if _stem(word, "ing"):
        return "an -ing form"
    if word.endswith("s") and not word.endswith(("ss", "us")):
        return "a third-person or plural form"
    return None


def _stem(word: str, ending: str) -> bool:
    """Whether the word is a stem with this ending: "adding" is, "bring" and "shed" are not."""
    return word.endswith(ending) and bool(_VOWEL.search(word.removesuffix(ending)))
