"""What a policy finds, before findings of several pods become one cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dljob.why.model import Cause, Evidence, Severity

_MOST_EVIDENCE = 3
_LONGEST_WORDS = 1000


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a table: words that Kubernetes or a program uses, and what they mean."""

    id: str
    pattern: re.Pattern[str]
    sentence: str
    """``{who}`` becomes the pods, and the groups of ``pattern`` are fields too."""
    fix: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that applies to one object."""

    id: str
    severity: Severity
    sentence: str
    """With ``{who}`` in place of the names of pods."""
    fix: str
    evidence: tuple[Evidence, ...] = ()
    since: datetime | None = None
    who: str = ""


def rule(id_: str, pattern: str, sentence: str, fix: str, severity: Severity = Severity.ERROR) -> Rule:
    return Rule(id_, re.compile(pattern, re.IGNORECASE), sentence, fix, severity)


def first_match(rules: Iterable[Rule], words: str) -> tuple[Rule, Mapping[str, str]] | None:
    """The first rule whose pattern is in ``words``, with its groups."""
    for one in rules:
        if found := one.pattern.search(words):
            return one, {key: _escaped(value or "") for key, value in found.groupdict().items()}
    return None


def found(one: Rule, fields: Mapping[str, Any], evidence: Evidence, since: datetime | None, who: str) -> Finding:
    """The finding of a rule; ``fields`` are those of its sentence and its fix."""
    texts = {key: _escaped(str(value)) for key, value in fields.items()}
    sentence = one.sentence.replace("{who}", "{{who}}").format(**texts)
    return Finding(one.id, one.severity, sentence, one.fix.format(**texts, who=who), (evidence,), since, who)


def causes(findings: Iterable[Finding]) -> tuple[Cause, ...]:
    """One cause for all findings of the same sentence, the worst and oldest first."""
    same: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        same.setdefault((one.id, one.sentence), []).append(one)
    merged = [_merged(group) for group in same.values()]
    order = list(Severity)
    return tuple(sorted(merged, key=lambda one: (order.index(one.severity), one.since is None, one.since)))


def _merged(group: Sequence[Finding]) -> Cause:
    names = sorted({one.who for one in group if one.who})
    first = group[0]
    who = f"pod {names[0]}" if names else "the job"
    if len(names) > 1:
        who = f"pod {names[0]} and {len(names) - 1} more"
    sentence = first.sentence.replace("{who}", who).replace(_OPEN, "{").replace(_CLOSE, "}")
    since = min((one.since for one in group if one.since), default=None)
    fix = first.fix.replace(_OPEN, "{").replace(_CLOSE, "}")
    return Cause(first.id, first.severity, sentence[:1].upper() + sentence[1:], tuple(_evidence(group)), since, fix)


def _evidence(group: Sequence[Finding]) -> Iterator[Evidence]:
    """Few, of different words first."""
    every = list(dict.fromkeys(one for finding in group for one in finding.evidence))
    different = {one.words: one for one in reversed(every)}
    chosen = sorted(different.values(), key=every.index)[:_MOST_EVIDENCE]
    for one in chosen:
        yield replace(one, words=one.words if len(one.words) <= _LONGEST_WORDS else f"{one.words[:_LONGEST_WORDS]}...")


_OPEN, _CLOSE = "\ue000", "\ue001"
"""Stand for braces of quoted words until the sentence is complete."""


def _escaped(text: str) -> str:
    return text.replace("{", _OPEN).replace("}", _CLOSE)
