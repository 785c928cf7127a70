"""The plugins of k9s: every kind has them, and their commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from dljob import cli
from dljob.kinds import ALL

PLUGINS = yaml.safe_load((Path(__file__).resolve().parents[3] / "client/k9s.yaml").read_text())["plugins"]
REQUIRED = {"shortCut", "description", "scopes", "command"}
KNOWN = {*REQUIRED, "args", "background", "confirm", "dangerous"}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin(name: str) -> None:
    plugin = PLUGINS[name]
    assert REQUIRED <= plugin.keys() <= KNOWN
    assert set(plugin["scopes"]) == {kind.plural for kind in ALL}
    (line,) = plugin["args"][1:]
    assert set(re.findall(r"\$\w+", line)) == {"$RESOURCE_NAME", "$RESOURCE_GROUP", "$NAME", "$NAMESPACE", "$CONTEXT"}
    kubectl, dljob, *words = shlex.split(line.partition(" | ")[0].replace("$", ""))
    assert (kubectl, dljob) == ("kubectl", "dljob")
    given = cli.parser().parse_args(words)
    assert given.command == name.removeprefix("dljob-")
    changes = given.command in ("suspend", "resume", "restart", "delete")
    assert bool(plugin.get("confirm")) is changes


def test_no_shortcut_twice() -> None:
    shortcuts = [plugin["shortCut"] for plugin in PLUGINS.values()]
    assert len(set(shortcuts)) == len(shortcuts)
