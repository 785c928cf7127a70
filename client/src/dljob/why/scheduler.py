"""Reads the message of a pod that fits no node: ``0/5 nodes are available: 2 Insufficient cpu, 3 ... preemption: ...``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"(\d+)/(\d+) nodes are available: ?", re.ASCII)
_ITEM = re.compile(r"(\d+) (.*)", re.ASCII | re.DOTALL)
_BETWEEN = re.compile(r", (?=\d+ )", re.ASCII)
_PREEMPTION = re.compile(r"(?:^|(?<=[.,]) )(?:no new claims to deallocate, |still not schedulable, )?preemption: ")


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why so many nodes do not fit; ``nodes`` is ``None`` where the reason is not about single nodes."""

    nodes: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the scheduler says of a pod."""

    total: int
    """The nodes that it has looked at; 0 where it does not say."""
    rejections: tuple[Rejection, ...]
    preemption: str = ""
    """Why no other pod gives way."""


def parse(message: str) -> Verdict:
    """The parts of the message; one that has another form is a single rejection."""
    text = " ".join(message.split())
    head = _HEAD.match(text)
    if not head:
        return Verdict(0, (Rejection(None, text),) if text else ())
    rest = text[head.end() :]
    preemption = ""
    if cut := _PREEMPTION.search(rest):
        rest, preemption = rest[: cut.start()], rest[cut.end() :]
    rest = rest.strip().removesuffix("no new claims to deallocate").strip(" ,.")
    rejections = tuple(_rejection(one) for one in _BETWEEN.split(rest) if one.strip(" ,."))
    return Verdict(int(head[2]), rejections, preemption.strip())


def _rejection(text: str) -> Rejection:
    match = _ITEM.fullmatch(text.strip(" ,."))
    return Rejection(int(match[1]), match[2]) if match else Rejection(None, text.strip(" ,."))
