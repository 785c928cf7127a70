"""How the cache packs objects."""

from __future__ import annotations

import random
import uuid
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.json_codec import dumps
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.engine.cache.packing import SAMPLES, Packing

OBJECTS = st.lists(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text())))


def pod(number: int, **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": f"j{number}", "uid": str(uuid.UUID(int=number))}
    labels = {"training.kubeflow.org/job-name": f"j{number}", "training.kubeflow.org/replica-type": "worker"}
    conditions = [{"type": type_, "status": "True"} for type_ in ("PodScheduled", "Initialized", "ContainersReady")]
    return {"metadata": {"labels": labels, "ownerReferences": [owner]}, "status": {"conditions": conditions}, **more}


@given(OBJECTS)
def test_an_object_is_unpacked_as_it_was_whatever_was_packed_since(objects: list[Any]) -> None:
    packing = Packing()
    packed = [packing.pack(one) for one in objects]
    assert [packing.unpack(one) for one in packed] == objects
    assert packing.unpack_all(packed) == objects


def test_objects_that_resemble_earlier_ones_take_a_fraction() -> None:
    packing = Packing()
    for number in range(SAMPLES):
        packing.pack(pod(number))
    size = len(packing.pack(pod(1000)).data)
    assert size * 4 < len(dumps(pod(1000)))


def test_what_resembles_nothing_costs_a_bounded_number_of_dictionaries() -> None:
    """A tenant may write random texts into each object."""
    packing, noise = Packing(), random.Random(1)
    packed = [packing.pack({"message": noise.randbytes(20_000).hex()}) for _ in range(5 * SAMPLES)]
    dictionaries = {id(one.dictionary): one.dictionary for one in packed}
    assert len(dictionaries) <= SAMPLES + 1
    assert max(map(len, dictionaries.values())) <= 8 * 1024


def test_one_long_object_does_not_replace_what_was_learnt() -> None:
    packing = Packing()
    packing.pack(pod(1))
    packing.pack({"message": random.Random(1).randbytes(50_000).hex()})
    assert len(packing.pack(pod(2)).data) * 3 < len(dumps(pod(2)))


def test_a_large_spec_is_kept_below_its_size() -> None:
    spec = {f"field-{number}": {"name": f"n{number}", "value": number} for number in range(30_000)}
    packed = Packing().pack({"spec": spec})
    assert len(packed.data) + len(packed.dictionary) < len(dumps(spec)) / 2
