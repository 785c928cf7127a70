"""Split watches.yaml: ansible-operator supports one entry per kind and version, regardless of the group.

It names controllers by kind and version only (`internal/ansible/controller/controller.go`), and controller-runtime
rejects a name that is in use. With both `mpba.fbk.eu/v1 MXJob` and `kubeflow.org/v1 MXJob` it would exit. The embedded
engine reconciles the other kinds in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from dljob_operator.watches import GVK, Watch

_OPTION = "--watches-file"


def split(watches: Sequence[Watch]) -> tuple[list[Watch], list[Watch]]:
    """Return the entries for ansible-operator, which gets the first of a conflicting pair, and for the engine."""
    taken: set[str] = set()
    theirs: list[Watch] = []
    ours: list[Watch] = []
    for watch in watches:
        name = f"{watch.gvk.kind}-{watch.gvk.version}".lower()
        (ours if name in taken else theirs).append(watch)
        taken.add(name)
    return theirs, ours


def write_without(source: Path, left_out: Sequence[Watch], target: Path) -> None:
    """Write the watches file `source` to `target` without the entries of `left_out`."""
    kinds = {watch.gvk for watch in left_out}
    entries = yaml.safe_load(source.read_text(encoding="utf-8"))
    kept = [e for e in entries if GVK(str(e.get("group", "")), str(e["version"]), str(e["kind"])) not in kinds]
    target.write_text(yaml.safe_dump(kept, sort_keys=False), encoding="utf-8")


def with_watches_file(command: Sequence[str], path: Path) -> list[str]:
    """Return ansible-operator's command line with another watches file."""
    words, skip = [], False
    for word in command:
        if skip:
            skip = False
        elif word == _OPTION:
            skip = True
        elif not word.startswith(f"{_OPTION}="):
            words.append(word)
    return [*words, f"{_OPTION}={path}"]
