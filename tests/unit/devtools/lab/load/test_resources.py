from __future__ import annotations

import os
import threading

from devtools.lab.load.resources import ProcessUse, Use, sizes, use_of

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
