"""The counts of users' changes, in memory that processes share."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ANY_JOB, GROUPS, ChangeCounter


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
    each = [counter.count(key) for key in keys]
    assert min(each) >= 1
    assert max(each) < 100, "they are spread evenly"


def test_a_forked_process_sees_what_is_counted_later() -> None:
    counter = ChangeCounter.create()
    go_read, go_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(go_read, 1)
        os._exit(10 * counter.count() + counter.count("a"))
    counter.increment("a")
    os.write(go_write, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 11
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
