"""Which entries of watches.yaml ansible-operator can take: it wants one of a kind and version, whatever the group.

It names its controllers by kind and version alone (`internal/ansible/controller/controller.go`), and the library
under it refuses a name that was used before; so of `mpba.fbk.eu/v1 MXJob` and `kubeflow.org/v1 MXJob` it takes
either, and ends at the other. The embedded engine takes what it cannot, in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from dljob_operator.watches import GVK, Watch

_OPTION = "--watches-file"


def split(watches: Sequence[Watch]) -> tuple[list[Watch], list[Watch]]:
    """Return ansible-operator's entries and the embedded engine's; of those that clash the first is the former's."""
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
