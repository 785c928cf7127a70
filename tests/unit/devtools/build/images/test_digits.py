"""The shared data set: reading, splitting and sharding, without a framework."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import example_programs

digits = example_programs.load("shared/digits.py")


def write(path: Path, rows: list[list[float]]) -> Path:
    with gzip.open(path, "wt") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)
    return path


def test_pixels_are_scaled_and_labels_read(tmp_path: Path) -> None:
    data = digits.load(write(tmp_path / "d.csv.gz", [[0] * 63 + [16, 7], [8] * 64 + [0]]))
    assert len(data) == 2
    assert data.labels == (7, 0)
    assert data.images[0][-1] == 1.0
    assert data.images[1] == (0.5,) * 64
    assert data.take([1]).labels == (0,)


@pytest.mark.parametrize("row", [[0] * 64, [0] * 66, [0] * 64 + [10]])
def test_a_bad_line_is_named(tmp_path: Path, row: list[float]) -> None:
    path = write(tmp_path / "d.csv.gz", [[0] * 65, row])
    with pytest.raises(ValueError, match=r"d\.csv\.gz:2"):
        digits.load(path)


def test_a_file_that_is_named_but_missing_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(digits.PATH_VARIABLE, str(tmp_path / "none.gz"))
    with pytest.raises(FileNotFoundError, match=r"none\.gz.*DIGITS_CSV"):
        digits.find_csv()


@given(st.integers(1, 3000), st.integers(0, 5))
def test_the_split_is_a_partition_that_every_process_agrees_on(count: int, seed: int) -> None:
    train, test = digits.split(count, seed=seed)
    assert sorted(train + test) == list(range(count))
    assert len(test) == round(count * 0.2)
    assert (train, test) == digits.split(count, seed=seed)


@given(st.integers(1, 200), st.data())
def test_shards_are_a_partition_of_nearly_equal_parts(count: int, data: st.DataObject) -> None:
    workers = data.draw(st.integers(1, count))
    shards = [digits.shard(range(count), rank, workers) for rank in range(workers)]
    assert sorted(index for part in shards for index in part) == list(range(count))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize(("rank", "workers"), [(2, 2), (-1, 2), (0, 0), (0, 11)])
def test_impossible_shards_are_refused(rank: int, workers: int) -> None:
    with pytest.raises(ValueError, match="worker"):
        digits.shard(range(10), rank, workers)


@given(st.integers(1, 500), st.integers(1, 64), st.data())
def test_every_worker_makes_the_same_steps_over_all_its_samples(samples: int, size: int, data: st.DataObject) -> None:
    workers = data.draw(st.integers(1, min(samples, 8)))
    steps = digits.steps_per_epoch(samples, workers, size)
    for rank in range(workers):
        own = digits.shard(range(samples), rank, workers)
        made = digits.batches(own, steps, size, seed=1)
        assert [len(batch) for batch in made] == [size] * steps
        assert {i for batch in made for i in batch} == set(own)


def test_the_order_changes_with_the_seed() -> None:
    assert digits.batches(range(50), 5, 10, seed=1) != digits.batches(range(50), 5, 10, seed=2)
