"""The mutants of a module, and a seeded sample of those of several."""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from devtools.checks.mutation import operators

OPERATORS = operators.load()


@dataclass(frozen=True)
class Mutant:
    """One small change of one module. ``first`` to ``last`` are the lines of the statement that it is in."""

    module: str
    """The path of the module, relative to the root."""
    operator: str
    occurrence: int
    first: int
    last: int
    line: int


@dataclass(frozen=True)
class Change:
    """What a mutant changes, as text: this finds a survivor again after lines have moved."""

    before: str
    after: str


def of_module(root: Path, module: str) -> Iterator[Mutant]:
    """All mutants of a module, in the order of the operators."""
    source = (root / module).read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    statements = _statements(source)
    for name, operator in OPERATORS.items():
        occurrence = 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not _is_passive(node):
                    first, last = statements.get(start[0], (start[0], start[0]))
                    yield Mutant(module, name, occurrence, first, last, start[0])
                occurrence += 1


def mutated(source: str, mutant: Mutant) -> str | None:
    """The module with the change, or ``None`` where the result means the same or is no Python.

    It is also ``None`` where Cosmic Ray cannot make the change: of several exceptions it replaces no dotted name.
    """
    try:
        code = mutate_code(source, OPERATORS[mutant.operator], mutant.occurrence)
    except AttributeError:
        return None
    if code is None:
        return None
    try:
        if ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    return str(code)


def digest(source: str) -> str:
    """Identifies the text of a module."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def change(source: str, code: str) -> Change:
    """The lines that differ, without indentation."""
    old, new = source.splitlines(), code.splitlines()
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return Change(*(" ".join(" ".join(x[start : len(x) - end]).split()) for x in (old, new)))


def sample(mutants: Iterable[Mutant], size: int | None, seed: int) -> list[Mutant]:
    """``size`` of the mutants, or all of them, in a random order, so that an interrupted run is a sample too."""
    found = list(mutants)
    return random.Random(seed).sample(found, len(found) if size is None else min(size, len(found)))


def _statements(source: str) -> dict[int, tuple[int, int]]:
    """The first and last line of the innermost statement on each line; of a compound one, of its header."""
    found: dict[int, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(source)):  # outer statements first, so that inner ones replace them
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            last = max(last, node.lineno)
            found.update(dict.fromkeys(range(node.lineno, last + 1), (node.lineno, last)))
    return found


def _is_passive(node: Any) -> bool:
    """Whether a node is part of an annotation, which nothing evaluates, or of a decorator, such as ``frozen=True``.

    So is the ``*`` before parameters that have to be named: it is no multiplication.
    """
    if node.type == "operator" and node.parent.type in ("parameters", "lambdef"):
        return True
    while node.parent is not None:
        parent = node.parent
        if parent.type == "decorator":
            return True
        if parent.type == "annassign":
            return node is parent.children[1]
        if parent.type == "tfpdef" or (parent.type == "funcdef" and parent.annotation is node):
            return True
        if parent.type == "param":
            return parent.annotation is node
        node = parent
    return False
