from __future__ import annotations

import pytest
from devtools.lab.bench.measures import Sample, Spread, known, percentile, spread


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([1.0], 0.5, 1.0), ([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0], 0.5, 1.0), (list(range(1, 101)), 0.99, 99), ([1.0, 9.0], 1.0, 9.0), ([1.0, 9.0], 0.0, 1.0)],
)  # fmt: skip
def test_percentile_is_a_value_that_was_measured(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_percentile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_spread() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)
    assert spread([]) is None
    assert known([1.0, None, 2.0]) == [1.0, 2.0]


def test_a_sample_survives_json() -> None:
    sample = Sample("one job", "baseline", 1, 2, 8, first_pod=(0.1, None), all_pods=(0.2, None), extra={"x": 1.0})
    assert Sample.from_json(sample.to_json()) == sample


@pytest.mark.parametrize(
    ("wall", "made", "least"),
    [(2.0, 8, 2.0), (None, 4, 20.0), (None, 0, None)],
    ids=["whole", "cut off half-way: twice the time", "nothing done: nothing known"],
)
def test_what_a_cut_off_sample_would_have_taken(wall: float | None, made: int, least: float | None) -> None:
    assert Sample("w", "p", 1, 2, 8, wall=wall, pods_made=made, seconds=10.0).least == least
