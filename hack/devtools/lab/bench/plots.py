"""Plots of measurements as SVG; matplotlib is installed outside the project's environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.lab.bench import tools


@dataclass(frozen=True)
class Line:
    """One curve. ``label`` appears in a legend, unless it is empty."""

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""


@dataclass(frozen=True)
class Panel:
    """One plot with its title."""

    title: str
    lines: tuple[Line, ...]


def draw(panels: Sequence[Panel], xlabel: str, path: Path, marker: str = "o") -> None:
    """Draw the panels beside each other. The same data give the same file."""
    tools.ensure(tools.PLOTS)
    sys.path.append(str(tools.packages(tools.PLOTS)))
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "dljob", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(3.25 * len(panels), 3))
    for axis, panel in zip(axes, panels, strict=True):
        for line in panel.lines:
            axis.plot(line.x, line.y, marker=marker, label=line.label or None)
        axis.set(title=panel.title, xlabel=xlabel, xlim=(0, None), ylim=(0, None))
        axis.grid(alpha=0.3)
        if any(line.label for line in panel.lines):
            axis.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
