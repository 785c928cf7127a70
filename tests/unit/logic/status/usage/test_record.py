"""The account in the status: what was written is read again, and nonsense is nothing."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage import record
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import (
    CAUSES,
    COUNTED,
    IDLE,
    PHASES,
    Account,
    Interruptions,
)
from hypothesis import given
from hypothesis import strategies as st

T0 = 1_767_225_600
GPU = "nvidia.com/gpu"
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "example.com/x"]), st.integers(1, 10**15))


@st.composite
def accounts(draw: st.DrawFn) -> Account:
    since = T0 + draw(st.integers(0, 10**6))
    settled = since + draw(st.integers(0, 1000))
    phase = draw(st.sampled_from(PHASES))
    is_idle = phase in IDLE
    watch = draw(st.sampled_from(["", "3f2a", "3f2a.17"]))
    return Account(
        as_of=settled + draw(st.integers(0, 1000)),
        phase=phase,
        since=since,
        settled=settled,
        seconds=draw(st.dictionaries(st.sampled_from(COUNTED), st.integers(1, 10**6))),
        total=draw(amounts),
        held=draw(amounts),
        gone=draw(amounts),
        interruptions=draw(
            st.dictionaries(
                st.sampled_from(CAUSES),
                st.builds(Interruptions, st.integers(1, 99), st.integers(1, 10**6), amounts),
            )
        ),
        cause=draw(st.sampled_from(CAUSES)) if is_idle else "",
        began_with=draw(amounts) if is_idle else {},
        needed=draw(st.integers(0, 100)),
        watch=watch,
        number=draw(st.integers(0, 10**9)) if watch else 0,
    )


@given(accounts())
def test_what_was_written_is_read(account: Account) -> None:
    assert record.read(record.write(account)) == account


def test_what_a_user_reads() -> None:
    hour = 3600
    account = Account(
        as_of=T0 + hour,
        phase="Running",
        since=T0 + 600,
        settled=T0 + 600,
        seconds={"Queued": 100, "Starting": 500},
        total={"cpu": 1_500_000 * hour, GPU: 8_000_000 * hour, "nvidia.com/mig-1g.10gb": 1_000_000 * hour},
        held={GPU: 8_000_000},
        interruptions={"Startup": Interruptions(1, 500, {GPU: 4_000_000_000})},
        needed=3,
        watch="3f2a",
        number=17,
    )
    assert record.write(account) == {
        "asOf": "2026-01-01T01:00:00Z",
        "phase": "Running",
        "since": "2026-01-01T00:10:00Z",
        "seconds": {"queued": 100, "starting": 500, "running": 3000},
        "resourceSeconds": {"cpu": 5400, GPU: 28800, "nvidia.com/mig-1g.10gb": 3600},
        "gpuHours": 9.0,
        "held": {GPU: 8},
        "interruptions": [{"cause": "Startup", "count": 1, "seconds": 500, "resourceSeconds": {GPU: 4000}}],
        "settled": "2026-01-01T00:10:00Z",
        "needed": 3,
        "counted": "3f2a/17",
    }


def test_fractions_are_exact() -> None:
    account = Account(T0, "Running", T0, T0, total={"cpu": 100_001, "memory": 3})
    assert record.write(account)["resourceSeconds"] == {"cpu": 0.100001, "memory": 3e-06}


@pytest.mark.parametrize(
    "nonsense",
    [
        None, [], "x", {}, {"asOf": 5, "since": "2026-01-01T00:00:00Z", "phase": "Running"},
        {"asOf": "2026-01-01T00:00:00Z", "since": "2026-01-01T00:00:00Z", "phase": "Flying"},
        {"asOf": "2026-01-01T00:00:00Z", "since": "x", "phase": "Running"},
    ],
)  # fmt: skip
def test_nonsense_is_no_account(nonsense: Any) -> None:
    assert record.read(nonsense) is None


def test_nonsense_in_an_account_counts_for_nothing() -> None:
    time = "2026-01-01T00:00:00Z"
    found = record.read(
        {
            "asOf": time, "since": "2027-01-01T00:00:00Z", "phase": "Running", "settled": {},
            "seconds": {"queued": -1, "running": "x", "starting": True},
            "resourceSeconds": {"cpu": float("inf"), "memory": "9", GPU: 1e300, "a/b": -1},
            "interruptions": [1, {"cause": "Magic", "count": 1}, {"cause": "Failure", "count": -3}],
            "cause": [], "needed": 1.5, "counted": "a/b/c",
        }
    )  # fmt: skip
    assert found == Account(T0, "Running", T0, T0, interruptions={"Failure": Interruptions()})
