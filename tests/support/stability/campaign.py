"""The exploration of all scenarios, and its figures by family."""

from __future__ import annotations

from collections.abc import Mapping

from support.stability.explorer import Explorer, Figures
from support.stability.scenarios import SCENARIOS


def explore(states: int, seed: int = 0, only: str = "") -> dict[str, list[Figures]]:
    """Visit ``states`` states or more, the same number of each scenario whose name contains ``only``; the figures by
    family. A scenario with fewer states leaves the rest to those after it. Raises :class:`Violation`."""
    chosen = [scenario for scenario in SCENARIOS if only in scenario.name]
    found: dict[str, list[Figures]] = {}
    left = states
    for number, scenario in enumerate(chosen):
        share = -(-left // (len(chosen) - number))
        figures = Explorer(scenario).explore(share, seed)
        left -= min(figures.states, share)
        found.setdefault(scenario.family, []).append(figures)
    return found


def table(found: Mapping[str, list[Figures]]) -> str:
    """The figures as a Markdown table."""
    rows = [_row(family, figures) for family, figures in found.items()]
    rows.append(_row("all", [one for figures in found.values() for one in figures]))
    head = "| family | jobs | states | expanded | transitions | longest path | longest convergence | CPU seconds |"
    return "\n".join([head, "|" + " --- |" * 8, *rows])


def _row(family: str, figures: list[Figures]) -> str:
    return (
        f"| {family} | {len(figures)} | {sum(f.states for f in figures):,} | {sum(f.expanded for f in figures):,} | "
        f"{sum(f.transitions for f in figures):,} | {max(f.deepest for f in figures)} | "
        f"{max(f.longest for f in figures)} | {sum(f.seconds for f in figures):.0f} |"
    )
