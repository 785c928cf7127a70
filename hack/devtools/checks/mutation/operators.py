"""The mutation operators: those of cosmic-ray that fit this code, and some that it lacks.

Of cosmic-ray's replacements of one comparison or arithmetic operator by each other one, only those are here that a
person could have written by mistake: the boundary and the negation. The rest would only multiply the cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider

Span = tuple[tuple[int, int], tuple[int, int]]

_COMPARISONS = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt")
_IDENTITIES = ("Is_IsNot", "IsNot_Is")
_BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "BitOr_BitAnd", "BitAnd_BitOr")
_OTHERS = (
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "ZeroIterationForLoop",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
)


class _Custom(Operator):
    """An operator that replaces a whole node, once."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        if self.fits(node):
            yield node.start_pos, node.end_pos

    def fits(self, node: Any) -> bool:
        raise NotImplementedError

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class DropCall(_Custom):
    """A call whose result is not used becomes ``pass``."""

    def fits(self, node: Any) -> bool:
        if node.type not in ("atom_expr", "power") or node.parent.type != "simple_stmt":
            return False
        return node.children[-1].type == "trailer" and node.children[-1].children[0] == "("

    def mutate(self, node: Any, index: int) -> Any:
        return _parsed("pass", node)


class ReturnNone(_Custom):
    """``return x`` becomes ``return None``."""

    def fits(self, node: Any) -> bool:
        return node.type == "return_stmt" and node.children[1].get_code().strip() != "None"

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = _parsed("None", node.children[1])
        return node


class NegateIn(_Custom):
    """``in`` becomes ``not in``, and the other way round."""

    def fits(self, node: Any) -> bool:
        return node.type == "comparison" and _word(node.children[1]) in ("in", "not in")

    def mutate(self, node: Any, index: int) -> Any:
        other = "not in" if _word(node.children[1]) == "in" else "in"
        node.children[1] = _parsed(other, node.children[1])
        return node


class NegateFilter(_Custom):
    """``... for x in y if condition`` takes what the condition leaves out."""

    def fits(self, node: Any) -> bool:
        return node.type == "comp_if"

    def mutate(self, node: Any, index: int) -> Any:
        condition = node.children[1]
        node.children[1] = _parsed(f"not ({condition.get_code().strip()})", condition)
        return node


class DropKeyword(_Custom):
    """``f(x, key=value)`` becomes ``f(x, )``."""

    def fits(self, node: Any) -> bool:
        return node.type == "argument" and node.children[1] == "=" and node.parent.type in ("arglist", "trailer")

    def mutate(self, node: Any, index: int) -> Any:
        return _parsed("**{}", node)


class DropEntry(Operator):
    """``{key: value, ...}`` loses an entry: it gets another key, since ``**`` entries may follow."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        if node.type == "dictorsetmaker":
            for colon in _colons(node):
                key = node.children[colon - 1]
                yield key.start_pos, key.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        at = _colons(node)[index] - 1
        node.children[at] = _parsed('"<dropped>"', node.children[at])
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


def _colons(node: Any) -> list[int]:
    return [i for i, child in enumerate(node.children) if child.type == "operator" and child.value == ":"]


def _word(operator: Any) -> str:
    return " ".join(operator.get_code().split())


def _parsed(code: str, replaced: Any) -> Any:
    """A leaf of ``code`` with the space or line break that stood before the node it replaces."""
    leaf = parso.python.tree.Name(code, replaced.start_pos, replaced.get_first_leaf().prefix)
    leaf.parent = replaced.parent
    return leaf


def load() -> dict[str, Operator]:
    """All operators by name."""
    provider = OperatorProvider()
    names = [f"ReplaceComparisonOperator_{name}" for name in (*_COMPARISONS, *_IDENTITIES)]
    names += [f"ReplaceBinaryOperator_{name}" for name in _BINARY]
    found = {name: provider[name]() for name in (*names, *_OTHERS)}
    custom = (DropCall, ReturnNone, NegateIn, NegateFilter, DropKeyword, DropEntry)
    return {**found, **{operator.__name__: operator() for operator in custom}}
