"""Numbered folders in the cache for private engines' images and pushed content, each used by one engine at a time.

Clones of the repository reuse each other's builds this way. The engine's processes inherit the lock, so it is held
exactly as long as one of them runs (filelock hands out no descriptor to inherit); the owner file reserves the slot for
a cluster whose engine was killed, because its containers are still in the folder. A cluster that takes a slot removes
all containers and networks from it.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devtools.testbed.base.errors import ClusterError

COUNT = 16
ROOM = 20 * 2**30
"""Bytes that must be free on the cache's disk before an engine starts: an engine with all images, pushed ones included,
takes 17 GiB, of which a slot that was used before has most already."""


@dataclass(frozen=True)
class Slot:
    """One slot's folders."""

    path: Path

    @property
    def docker(self) -> Path:
        """The engine's data root."""
        return self.path / "docker"

    @property
    def registry(self) -> Path:
        """Images that were pushed into the local registry."""
        return self.path / "registry"

    @property
    def owner_file(self) -> Path:
        return self.path / "owner"

    @property
    def _foreign_file(self) -> Path:
        return self.path / "foreign"

    def owner(self) -> Path | None:
        """The state folder of the cluster that may have containers here."""
        try:
            return Path(self.owner_file.read_text())
        except OSError:
            return None

    def is_foreign(self) -> bool:
        """Whether the containers and networks here are an earlier cluster's."""
        return self._foreign_file.exists()

    def set_foreign(self) -> None:
        self._foreign_file.touch()

    def set_clean(self) -> None:
        """Record that the earlier cluster's containers and networks are removed."""
        self._foreign_file.unlink(missing_ok=True)

    def release(self) -> None:
        """Remove the owner file, once only images and pushed content are left in the slot."""
        self.owner_file.unlink(missing_ok=True)

    def lock(self, state_dir: Path | None = None) -> IO[str] | None:
        """The lock, held while it is open; None if the slot is in use.

        It is while an engine holds its lock, and while another cluster than that of ``state_dir`` may restart a killed
        engine here.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = (self.path / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        owner = self.owner()
        if owner is not None and owner != state_dir and still_claims(owner, int(self.path.name)):
            lock.close()
            return None
        return lock


def slot(cache: Path, number: int) -> Slot:
    return Slot(cache / "engines" / str(number))


def still_claims(state_dir: Path, number: int) -> bool:
    """Whether the cluster of ``state_dir`` has recorded this slot, so that its engine may be restarted there."""
    try:
        recorded = json.loads((state_dir / "state.json").read_text())
        return bool(recorded["engine"] == "own" and recorded["slot"] == number)
    except (OSError, ValueError, KeyError, TypeError):
        return False


@dataclass(frozen=True)
class Claim:
    """A slot whose lock this process holds and passes on to the engine."""

    number: int
    slot: Slot
    lock: IO[str]


def claim(cache: Path, state_dir: Path, preferred: int | None) -> Claim:
    """Claim the ``preferred`` slot, which this cluster had before, or the first that no other cluster holds."""
    for number in range(COUNT) if preferred is None else [preferred]:
        candidate = slot(cache, number)
        lock = candidate.lock(state_dir)
        if lock is None:
            continue
        if preferred is None:
            # not only where an owner file is left: `down` removes it also where Docker refused to remove a container or
            # a network. In a file, because this `up` may be interrupted before it has removed them
            candidate.set_foreign()
        candidate.owner_file.write_text(str(state_dir))
        return Claim(number, candidate, lock)
    if preferred is not None:
        raise ClusterError(
            f"another engine uses {slot(cache, preferred).path}, where this cluster's containers are",
            "stop that cluster; or run cluster-down here, and cluster again",
        )
    raise ClusterError(
        f"all {COUNT} engines' folders in {cache / 'engines'} are in use", "stop clusters that you no longer need"
    )


def make_room(cache: Path, room: int = ROOM) -> list[int]:
    """Empty unused slots, the highest number first, until ``room`` bytes are free; returns the emptied slots' numbers.

    Low numbers are claimed first, so high ones hold what a few clusters at the same time left behind.
    """
    emptied = []
    for number in reversed(range(COUNT)):
        if free_bytes(cache) >= room:
            break
        candidate = slot(cache, number)
        lock = candidate.lock() if candidate.path.is_dir() else None
        if lock is not None:
            with lock:
                if _empty(candidate):
                    emptied.append(number)
    return emptied


def free_bytes(cache: Path) -> int:
    """Bytes that this user may still write to the disk of ``cache``."""
    cache.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(cache).free


def _empty(unused: Slot) -> bool:
    """Remove the content; the lock file stays, because another process may wait for it. Whether there was any."""
    folders = [folder for folder in (unused.docker, unused.registry) if folder.exists()]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    unused.release()  # with the containers gone, the next engine has none to remove
    return bool(folders)
