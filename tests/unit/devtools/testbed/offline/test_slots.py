"""Slots: one engine per folder, no containers of another cluster, images kept between clusters."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import engine, slots
from devtools.testbed.offline.slots import Claim


def claim(cache: Path, cluster: str, preferred: int | None = None) -> Claim:
    return slots.claim(cache, cache / cluster, preferred)


def record(cache: Path, cluster: str, number: int) -> None:
    """Write the cluster's state file as it is while the cluster is up or after its engine was killed."""
    (cache / cluster).mkdir(exist_ok=True)
    (cache / cluster / "state.json").write_text(json.dumps({"engine": "own", "slot": number}))


def test_clusters_side_by_side_have_different_folders(tmp_path: Path) -> None:
    first, second = claim(tmp_path, "a"), claim(tmp_path, "b")
    assert (first.number, second.number) == (0, 1)
    assert first.slot.docker != second.slot.docker and first.slot.registry != second.slot.registry


def test_the_next_cluster_reuses_the_slot(tmp_path: Path) -> None:
    first = claim(tmp_path, "a")
    first.slot.release()
    first.lock.close()
    second = claim(tmp_path, "b")
    assert second.slot == first.slot and second.slot.is_foreign(), "what Docker did not remove there is removed now"


def test_a_killed_engines_containers_are_not_given_to_another_cluster(tmp_path: Path) -> None:
    first = claim(tmp_path, "a")
    record(tmp_path, "a", first.number)
    first.slot.set_clean()
    first.lock.close()
    assert claim(tmp_path, "b").number == 1
    again = claim(tmp_path, "a", preferred=0)
    assert again.number == 0 and not again.slot.is_foreign(), "its own containers stay"


def test_an_interrupted_removal_of_containers_is_repeated(tmp_path: Path) -> None:
    first = claim(tmp_path, "a")
    record(tmp_path, "a", first.number)
    first.lock.close()
    assert claim(tmp_path, "a", preferred=0).slot.is_foreign()


@pytest.mark.parametrize("cluster", ["a", "b"])
def test_a_forgotten_slot_has_foreign_containers_for_every_cluster(tmp_path: Path, cluster: str) -> None:
    claim(tmp_path, "a").lock.close()
    assert claim(tmp_path, cluster).slot.is_foreign()


def test_the_folder_that_holds_our_containers_is_not_exchanged_for_another(tmp_path: Path) -> None:
    other = claim(tmp_path, "b")
    with pytest.raises(ClusterError, match=str(other.slot.path)):
        claim(tmp_path, "a", preferred=other.number)


def test_the_lock_lives_as_long_as_the_engine(tmp_path: Path) -> None:
    held = claim(tmp_path, "a")
    child = subprocess.Popen(["sleep", "600"], pass_fds=(held.lock.fileno(),))
    try:
        held.lock.close()
        assert claim(tmp_path, "b").number == 1
    finally:
        child.kill()
        child.wait()
    with (held.slot.path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_no_folder_left_is_an_error(tmp_path: Path) -> None:
    held = [claim(tmp_path, str(i)) for i in range(slots.COUNT)]
    with pytest.raises(ClusterError, match="in use"):
        claim(tmp_path, "one more")
    assert len({c.number for c in held}) == slots.COUNT


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"engine": "user", "slot": 0}', '{"engine": "own", "slot": 1}'])
def test_only_a_record_of_that_slot_claims_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    assert not slots.still_claims(tmp_path, 0)
    assert not slots.still_claims(tmp_path / "nowhere", 0)


def test_leftover_containers_do_not_start_again(tmp_path: Path) -> None:
    container = tmp_path / "containers" / "0123"
    container.mkdir(parents=True)
    (container / "hostconfig.json").write_text('{"RestartPolicy": {"Name": "always"}, "Privileged": true}')
    (tmp_path / "network" / "files").mkdir(parents=True)
    engine.disarm(tmp_path)
    config = json.loads((container / "hostconfig.json").read_text())
    assert config == {"RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}, "Privileged": True}
    assert not (tmp_path / "network").exists()
    engine.disarm(tmp_path / "empty")


def fill(cache: Path, number: int) -> None:
    """Give a slot content, as an engine leaves it."""
    for folder in (slots.slot(cache, number).docker, slots.slot(cache, number).registry):
        (folder / "data").mkdir(parents=True)


def filled(cache: Path) -> list[int]:
    return [
        n for n in range(slots.COUNT) if slots.slot(cache, n).docker.exists() or slots.slot(cache, n).registry.exists()
    ]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk on which each filled slot takes 10 bytes of 50."""
    monkeypatch.setattr(slots, "free_bytes", lambda cache: 50 - 10 * len(filled(cache)))
    return tmp_path


def test_a_nearly_full_disk_loses_unused_slots_the_last_first(disk: Path) -> None:
    for number in range(5):
        fill(disk, number)
    assert slots.make_room(disk, room=20) == [4, 3]
    assert filled(disk) == [0, 1, 2]
    assert slots.make_room(disk, room=20) == []


def test_room_is_not_made_from_slots_in_use(disk: Path) -> None:
    running, killed, forgotten = claim(disk, "a"), claim(disk, "b"), claim(disk, "c")
    for number in range(3):
        fill(disk, number)
    record(disk, "b", killed.number)
    killed.lock.close()
    forgotten.lock.close()
    assert slots.make_room(disk, room=50) == [forgotten.number]
    assert filled(disk) == [running.number, killed.number]
    assert forgotten.slot.owner() is None
    again = claim(disk, "d")
    assert (again.number, again.slot.is_foreign()) == (forgotten.number, True)


def test_an_empty_slot_makes_no_room(disk: Path) -> None:
    claim(disk, "a").lock.close()
    assert slots.make_room(disk, room=60) == []
