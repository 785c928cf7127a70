"""The page of the operator's settings, from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.dljob.operator.plugins.module_utils.shared import settings
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import Setting

from devtools.build.reference.pages import NOTE, code, table
from dljob_operator import options

_INTRODUCTION = """\
An option precedes its variable, and an empty variable counts as none.
The arguments of the image are options of its engine: beside ansible-operator only variables reach `dljob-operator`.
The chart has `extraArgs` and `extraEnv` for what has no value of its own.
"""
_PARTS = {
    "Of all jobs": (*settings.OPTIONS, *settings.VARIABLES),
    "Of the process": options.COMMON,
    "Of the image": options.IMAGE,
    "Of the embedded engine (`dljob-operator run`)": options.RUN,
}


def pages() -> dict[str, str]:
    """File name to text."""
    text = f"{NOTE}# Settings of the operator\n\n{_INTRODUCTION}"
    for title, rows in _PARTS.items():
        head = ["option", "variable", "value of the chart", "default", "meaning"]
        text += f"\n## {title}\n\n" + table(head, _rows(rows))
    return {"settings.md": text}


def _rows(rows: Iterable[Setting[object]]) -> Iterator[list[str]]:
    for setting in rows:
        default = code(setting.default) if setting.default else setting.unset or ("off" if setting.is_flag else "")
        more = f" See [{setting.page}](../{setting.page})." if setting.page else ""
        yield [
            *(code(name) if name else "" for name in (setting.option, setting.variable, setting.chart)),
            default,
            f"{setting.description}.{more}",
        ]
