"""Where own engines keep images and pushed content: numbered folders in the cache, each used by one engine at a time.

A clone of the repository that is made tomorrow finds what today's has built. The lock is inherited by the engine's
processes, so it is held exactly as long as one of them lives; the owner's name holds the slot for a cluster whose
engine was killed, because its containers lie there.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devtools.cluster.errors import ClusterError

COUNT = 16


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
        """What was pushed into the local registry."""
        return self.path / "registry"

    @property
    def owner_file(self) -> Path:
        return self.path / "owner"

    def owner(self) -> Path | None:
        """The state folder of the cluster whose containers may lie here."""
        try:
            return Path(self.owner_file.read_text())
        except OSError:
            return None

    def release(self) -> None:
        """Nothing of the owner's is left here but images and pushed content."""
        self.owner_file.unlink(missing_ok=True)


def slot(cache: Path, number: int) -> Slot:
    return Slot(cache / "engines" / str(number))


def still_claims(state_dir: Path, number: int) -> bool:
    """Whether the cluster of this folder is recorded as living in the slot: its engine may come back."""
    try:
        recorded = json.loads((state_dir / "state.json").read_text())
        return bool(recorded["engine"] == "own" and recorded["slot"] == number)
    except (OSError, ValueError, KeyError, TypeError):
        return False


@dataclass(frozen=True)
class Claim:
    """A slot held by this process, to be passed on to the engine."""

    number: int
    slot: Slot
    lock: IO[str]
    inherited: bool
    """Whether an earlier cluster, whose engine was killed, may have left containers here."""


def claim(
    cache: Path, state_dir: Path, preferred: int | None, claims: Callable[[Path, int], bool] = still_claims
) -> Claim:
    """Take the ``preferred`` slot, which this cluster had before, or the first that no other cluster holds."""
    numbers = range(COUNT) if preferred is None else [preferred]
    for number in numbers:
        candidate = slot(cache, number)
        candidate.path.mkdir(parents=True, exist_ok=True)
        lock = (candidate.path / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        owner = candidate.owner()
        if owner is not None and owner != state_dir and claims(owner, number):
            lock.close()
            continue
        candidate.owner_file.write_text(str(state_dir))
        return Claim(number, candidate, lock, inherited=owner is not None and preferred is None)
    if preferred is not None:
        raise ClusterError(
            f"another engine uses {slot(cache, preferred).path}, where this cluster's containers are",
            "end that cluster; or run cluster-down here, and cluster again",
        )
    raise ClusterError(
        f"all {COUNT} engines' folders in {cache / 'engines'} are in use", "end clusters you no longer need"
    )
