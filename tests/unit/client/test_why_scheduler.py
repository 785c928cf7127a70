"""The scheduler's message, which is text for people: whatever it says, its numbers and reasons are kept."""

from __future__ import annotations

import pytest
from dljob import quantity
from dljob.why import scheduler
from dljob.why.scheduler import Rejection
from hypothesis import given
from hypothesis import strategies as st

REASONS = (
    "Insufficient cpu",
    "Insufficient nvidia.com/gpu",
    "Too many pods",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) had untolerated taint(s)",
    "node(s) had untolerated taint {node.kubernetes.io/unschedulable: }",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    "cannot allocate all claims",
)
TAILS = (
    "",
    " preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling.",
    " no new claims to deallocate, preemption: 0/9 nodes are available: 9 No preemption victims found for incoming pod.",
)
counted = st.lists(st.tuples(st.integers(1, 9999), st.sampled_from(REASONS)), min_size=1, max_size=6)


@given(counted, st.sampled_from(TAILS))
def test_all_counts_and_reasons_are_read(rejections: list[tuple[int, str]], tail: str) -> None:
    total = sum(nodes for nodes, _ in rejections)
    listed = ", ".join(f"{nodes} {why}" for nodes, why in rejections)
    verdict = scheduler.parse(f"0/{total} nodes are available: {listed}.{tail}")
    assert verdict.total == total
    assert [(one.nodes, one.why) for one in verdict.rejections] == rejections
    assert verdict.preemption == tail.partition("preemption: ")[2]


@given(st.text())
def test_any_text_is_read(message: str) -> None:
    verdict = scheduler.parse(message)
    assert bool(verdict.rejections) == bool(message.strip()) or message.lstrip()[:1].isdigit()


@given(st.text(alphabet="0123456789/ nodesarvilb:,.pmt"), st.sampled_from(TAILS))
def test_what_comes_after_the_head_never_fails(rest: str, tail: str) -> None:
    scheduler.parse(f"0/3 nodes are available: {rest}{tail}")


@pytest.mark.parametrize(
    ("message", "rejections"),
    [
        ("", ()),
        ("no nodes available to schedule pods", (Rejection(None, "no nodes available to schedule pods"),)),
        (
            '0/47 nodes are available: persistentvolumeclaim "a" not found. not found',
            (Rejection(None, 'persistentvolumeclaim "a" not found. not found'),),
        ),
    ],
)
def test_other_forms_are_one_reason(message: str, rejections: tuple[Rejection, ...]) -> None:
    assert scheduler.parse(message).rejections == rejections


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("100m", "0.1"),
        ("4Gi", str(4 * 2**30)),
        ("1e3", "1000"),
        ("2k", "2000"),
        (".5", "0.5"),
        ("-1", "-1"),
        ("x", "0"),
    ],
)
def test_quantities(text: str, amount: str) -> None:
    assert str(quantity.parse(text).normalize()) == str(quantity.parse(amount).normalize())


@given(st.text())
def test_any_quantity_is_read(text: str) -> None:
    quantity.parse(text)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [("cpu", "1.5", "1.5 cpu"), ("memory", "1536Mi", "1.5 GiB of memory"), ("nvidia.com/gpu", "2", "2 nvidia.com/gpu")],
)
def test_amounts_for_people(resource: str, amount: str, text: str) -> None:
    assert quantity.text(resource, quantity.parse(amount)) == text
