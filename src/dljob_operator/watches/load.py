"""Parse watches.yaml as ansible-operator does, and report errors with the entry and the key.

Both engines use the same file, so all keys of ansible-operator are supported with its defaults. Keys that only affect
ansible-operator (`maxRunnerArtifacts`, `watchDependentResources` ...) are validated and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from dljob_operator.watches.entry import EntryReader
from dljob_operator.watches.lookup import ProcessState, expand_variables
from dljob_operator.watches.model import Watch, WatchesError


def load_watches(path: Path, process: ProcessState | None = None) -> tuple[Watch, ...]:
    """Read and check the watches file at `path`.

    Raises WatchesError with all problems.
    """
    process = process or ProcessState.of_this_process()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise WatchesError(path, [f"cannot be read: {error.strerror}; name it with --watches-file"]) from None
    try:
        document = yaml.load(expand_variables(text, process.environ), Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise WatchesError(path, [f"is not YAML: {error}"]) from None
    if not isinstance(document, list) or not document:
        raise WatchesError(path, ["must be a list with at least one entry of group, version, kind and role"])
    problems: list[str] = []
    watches = []
    for number, entry in enumerate(document, start=1):
        reader = EntryReader(number, entry, process, path.resolve().parent)
        watch = reader.read()
        problems += reader.problems
        if watch is not None:
            watches.append((reader.title, watch))
    problems += _clashes(watches)
    if problems:
        raise WatchesError(path, problems)
    return tuple(watch for _, watch in watches)


def _clashes(watches: Sequence[tuple[str, Watch]]) -> Iterator[str]:
    seen: dict[tuple[str, str], tuple[str, Watch]] = {}
    for title, watch in watches:
        key = (watch.gvk.group, watch.gvk.kind)
        if key not in seen:
            seen[key] = (title, watch)
            continue
        first_title, first = seen[key]
        if first.gvk == watch.gvk:
            yield f"{title}: the same kind as {first_title}; keep one of the two"
        else:
            yield (
                f"{title}: the same objects as {first_title}, which names version {first.gvk.version}; every "
                "object can be read in each served version, so keep one entry, with the stored version"
            )


class _StrictLoader(yaml.SafeLoader):
    """A SafeLoader that rejects duplicate keys, of which PyYAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)
