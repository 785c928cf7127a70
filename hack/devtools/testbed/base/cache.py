"""The cache: keys that depend on the content of the inputs, and entries that are never seen half-made."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from devtools.testbed.base import process

LENGTH = 16


def content_key(*parts: str, trees: Iterable[Path] = ()) -> str:
    """16 hex digits, hashed from the strings and from the files of each tree (relative name, executable bit, content).

    A tree may be a single file. The order of the parts matters, the order of the files on disk does not, nor time or
    place.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part.encode())}:{part}\n".encode())
    for tree in trees:
        files = [tree] if tree.is_file() else sorted(p for p in tree.rglob("*") if p.is_file())
        for file in files:
            name = file.name if file == tree else file.relative_to(tree).as_posix()
            if "__pycache__" in file.parts:
                continue
            data = file.read_bytes()
            executable = bool(file.stat().st_mode & 0o100)
            digest.update(f"{tree.name}/{name} {executable} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()[:LENGTH]


def cache_entry(
    target: Path, make: Callable[[Path], object], is_complete: Callable[[Path], bool] = Path.exists
) -> Path:
    """Return the file or folder ``target``, which ``make`` has created at the path that it is given.

    That path has the name of ``target`` behind a prefix, so its suffix too, and does not exist. What exists without
    being complete is replaced.
    """
    if is_complete(target):
        return target
    with locked(target):
        if not is_complete(target):
            partial = target.with_name(f".partial-{target.name}")
            _remove(partial)  # of a process that was killed
            make(partial)
            _remove(target)
            partial.rename(target)
    return target


def locked(target: Path) -> AbstractContextManager[None]:
    """Keep other processes from creating ``target``; waits for one that does. The folder of ``target`` exists then."""
    return process.locked(target.with_name(f".{target.name}.lock"))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
