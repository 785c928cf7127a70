"""The count of users' changes, in memory that processes share."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter


def test_it_counts() -> None:
    counter = ChangeCounter.create()
    before = counter.value
    counter.increment()
    counter.increment()
    assert (before, counter.value) == (0, 2)


def test_a_forked_process_sees_what_is_counted_later() -> None:
    counter = ChangeCounter.create()
    go_read, go_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(go_read, 1)
        os._exit(counter.value)
    counter.increment()
    os.write(go_write, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    os.close(go_read)
    os.close(go_write)


def test_another_program_gets_it_by_its_descriptor() -> None:
    counter = ChangeCounter.create()
    counter.increment()
    program = f"from {ChangeCounter.__module__} import *; print(ChangeCounter({counter.fd}).value)"
    done = subprocess.run(
        [sys.executable, "-c", program], pass_fds=[counter.fd], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_its_descriptor_is_closed_with_it() -> None:
    counter = ChangeCounter.create()
    fd = counter.fd
    del counter
    try:
        os.fstat(fd)
    except OSError:
        return
    raise AssertionError("still open")
