"""The watched kinds of an object, by its UID."""

from __future__ import annotations

from dljob_operator.engine.cache.kind_index import KindIndex


def test_an_object_may_be_of_several_kinds() -> None:
    index = KindIndex[str]()
    index.add("1", "TFJob")
    index.add("1", "PyTorchJob")
    index.add("2", "TFJob")
    assert (index.of("1"), index.of("2"), index.of("3")) == (("TFJob", "PyTorchJob"), ("TFJob",), ())


def test_each_change_of_an_object_adds_it() -> None:
    index = KindIndex[str]()
    for _ in range(3):
        index.add("1", "TFJob")
    assert index.of("1") == ("TFJob",)
    index.discard("1", "TFJob")
    assert index.of("1") == ()


def test_nothing_is_left_of_an_object() -> None:
    index = KindIndex[str]()
    index.add("1", "TFJob")
    index.add("1", "PyTorchJob")
    index.discard("1", "TFJob")
    assert (index.of("1"), len(index)) == (("PyTorchJob",), 1)
    index.discard("1", "PyTorchJob")
    index.discard("1", "PyTorchJob")
    assert len(index) == 0


def test_equal_kinds_are_two() -> None:
    """Two watch entries may be equal."""
    one, other = ["TFJob"], ["TFJob"]
    index = KindIndex[list[str]]()
    index.add("1", one)
    index.add("1", other)
    index.discard("1", one)
    (left,) = index.of("1")
    assert left is other
