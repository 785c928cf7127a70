from __future__ import annotations

import os
import subprocess
import sys
import threading

from devtools.testbed import usage
from devtools.testbed.usage import ProcessUse, Use, sizes, use_of

ROLLUP = "55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:                1024 kB\nPss:                 512 kB\nPss_Anon: 9 kB\n"


def test_sizes_are_bytes() -> None:
    assert sizes(ROLLUP) == (1024 * 1024, 512 * 1024)


def test_a_tree_is_the_sum_of_its_processes() -> None:
    use = Use((ProcessUse(1, 10, 5, 3, 2), ProcessUse(2, 20, 6, 4, 1)))
    assert (use.pss, use.descriptors, use.threads) == (11, 7, 3)


def test_this_process_comes_first_and_its_threads_count() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        use = use_of(os.getpid())
    finally:
        ended.set()
        thread.join()
    assert use.processes[0].pid == os.getpid()
    assert use.processes[0].threads >= 2
    assert use.pss > 2**20
    assert use.descriptors >= 3


def test_stat_of_a_process_with_an_awkward_name() -> None:
    line = "7 (a) b) (c) S 3 7 7 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7"
    assert usage.parse_stat(line) == (3, 100)


def test_the_tree_counts_children_and_those_that_have_ended() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))']); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        assert usage.cpu_seconds(process.pid) > 0.02
        assert process.pid in usage.tree(os.getpid())
        assert usage.use_of(process.pid).pss > 2**20
        process.stdin.close()
    assert usage.tree(process.pid) == {}
