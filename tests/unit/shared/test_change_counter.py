"""The counts of users' changes, in memory that processes share."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import (
    ANY_JOB,
    CONTENTION,
    GROUPS,
    ChangeCounter,
    ChangesSince,
)


def test_it_counts() -> None:
    counter = ChangeCounter.create()
    before = counter.counts(["a", "b"])
    counter.increment("a")
    counter.increment("a")
    assert (before, counter.counts(["a", "b"])) == ({ANY_JOB: 0, "a": 0, "b": 0}, {ANY_JOB: 2, "a": 2, "b": 0})


def test_jobs_share_a_limited_number_of_counts() -> None:
    counter = ChangeCounter.create()
    keys = [f"job-{number}" for number in range(20 * GROUPS)]
    for key in keys:
        counter.increment(key)
    assert counter.count() == len(keys)
    assert max(map(counter.count, keys)) < 100, "they are spread evenly"


def test_what_has_changed_since() -> None:
    counter = ChangeCounter.create()
    counter.increment("a")
    since = ChangesSince(counter, counter.counts(["a", "b"]))
    assert (since.of("a"), since.of("b"), since.of_any()) == (False, False, False)
    counter.increment("a")
    assert (since.of("a"), since.of("b"), since.of_any()) == (True, False, True)


def test_a_job_whose_count_before_is_not_known_may_have_changed() -> None:
    counter = ChangeCounter.create()
    since = ChangesSince(counter, counter.counts([]))
    assert (since.of("a"), since.of_any()) == (True, False)


def test_a_change_is_recent_for_some_seconds() -> None:
    now = 1.0
    counter = ChangeCounter.create(lambda: now)
    since = ChangesSince(counter, counter.counts([]))
    assert not since.are_recent(), "there was none"
    counter.increment("a")
    now += CONTENTION - 0.01
    assert since.are_recent()
    now += 0.01
    assert not since.are_recent()
    counter.increment("b")
    assert since.are_recent()


def test_a_forked_process_sees_what_is_counted_later() -> None:
    counter = ChangeCounter.create(lambda: 1.0)
    go_read, go_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(go_read, 1)
        os._exit(100 * counter.is_recent() + 10 * counter.count() + counter.count("a"))
    counter.increment("a")
    os.write(go_write, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 111
    os.close(go_read)
    os.close(go_write)


def test_another_program_gets_it_by_its_descriptor() -> None:
    counter = ChangeCounter.create()
    counter.increment("a")
    program = f"from {ChangeCounter.__module__} import *; print(ChangeCounter({counter.fd}).counts(['a', 'b']))"
    done = subprocess.run(
        [sys.executable, "-c", program], pass_fds=[counter.fd], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'': 1, 'a': 1, 'b': 0}\n"


def test_its_descriptor_is_closed_with_it() -> None:
    counter = ChangeCounter.create()
    fd = counter.fd
    del counter
    try:
        os.fstat(fd)
    except OSError:
        return
    raise AssertionError("still open")
