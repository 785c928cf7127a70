"""Entries of the cache: one process of the machine at a time creates one, and none is seen half-written."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path


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


@contextlib.contextmanager
def locked(target: Path) -> Iterator[None]:
    """Keep other processes from creating ``target``; waits for one that does, and is woken if the kernel ends that one.

    The folder of ``target`` exists then.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
