"""Which jobs users have changed lately."""

from __future__ import annotations

from dljob_operator.engine.controller_settings import LARGEST_BATCH
from dljob_operator.engine.queue.recent_changes import RecentChanges


def test_the_job_that_is_forgotten_is_the_one_whose_last_change_is_the_oldest() -> None:
    """Whatever batch asks, another job is left."""
    changes = RecentChanges(lambda: 100.0)
    names = [f"job-{number}" for number in range(LARGEST_BATCH + 1)]
    for name in [*names, names[0], "last"]:
        changes.note(name)
    assert len(changes) == len(names)
    assert changes.any_but([*names[1:], "last"]), "the first one was changed again"
    assert not changes.any_but([names[0], *names[2:], "last"]), "the second one is forgotten"
