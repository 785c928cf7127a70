"""Find roles and the watches file, and expand environment variables in a watches file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

WATCHES_FILE = "watches.yaml"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class ProcessState:
    """The process state that lookups depend on, as an argument, so that tests need not change it."""

    environ: Mapping[str, str]
    cwd: Path
    python_path: tuple[str, ...]

    @classmethod
    def of_this_process(cls) -> ProcessState:
        return cls(os.environ, Path.cwd(), tuple(sys.path))


def expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """Replace `${NAME}` and `$NAME` by the values of environment variables; unset ones become `${NAME}`."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return environ.get(name, "${" + name + "}")

    return _VARIABLE.sub(value, text)


def default_watches_file(process: ProcessState) -> Path:
    """Return `watches.yaml` of the working directory or, where there is none, that of our installed collection.

    Of several collections it is the one in which roles are found. Without any, it is the name in the working directory.
    """
    here = Path(WATCHES_FILE)
    if (process.cwd / here).exists():
        return here
    installed = (collection / WATCHES_FILE for collection in _collection_candidates("dljob", "operator", process))
    return next(filter(Path.is_file, installed), here)


def crds_directory(watches_file: Path, process: ProcessState) -> Path:
    """Return the `crds` beside a watches file or, where there is none, those of our installed collection."""
    beside = watches_file.resolve().parent / "crds"
    if beside.is_dir():
        return beside
    installed = (collection / "crds" for collection in _collection_candidates("dljob", "operator", process))
    return next(filter(Path.is_dir, installed), beside)


def _collection_candidates(namespace: str, name: str, process: ProcessState) -> Iterator[Path]:
    """Yield the possible directories of a collection, in ansible-operator's order and then on Python's path."""
    configured = process.environ.get("ANSIBLE_COLLECTIONS_PATH", "")
    home = Path(process.environ.get("HOME", "~")).expanduser()
    defaults = ["/usr/share/ansible/collections", f"{home}/.ansible/collections"]
    roots = configured.split(":") if configured else defaults
    for root in filter(None, [*roots, *process.python_path]):
        yield process.cwd / root / "ansible_collections" / namespace / name


def role_candidates(name: str, process: ProcessState, beside: Path) -> Iterator[Path]:
    """Yield the possible directories of the role `name`, in ansible-operator's order.

    Two places are additional, each the last of its kind: collections on Python's path, where Ansible finds them too,
    and the directory of the watches file (`beside`), so that the engine can run in another working directory.
    """
    if Path(name).is_absolute():
        yield Path(name)
        return
    parts = name.split(".")
    if len(parts) == 3:
        for collection in _collection_candidates(parts[0], parts[1], process):
            yield collection / "roles" / parts[2]
    for root in filter(None, process.environ.get("ANSIBLE_ROLES_PATH", "").split(":")):
        yield process.cwd / root / name
        yield process.cwd / root / "roles" / name
    yield process.cwd / "roles" / name
    yield beside / "roles" / name
