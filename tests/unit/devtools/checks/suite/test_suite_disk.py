"""What a run says of the disk, and of results that a full disk has cut."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from devtools.checks.suite import disk, results

GIB = disk.GIB


def watch(folder: Path, free: list[int], said: list[str]) -> disk.Watch:
    return disk.Watch(folder, said.append, lambda _: free.pop(0) if len(free) > 1 else free[0])


def test_the_least_room_is_kept(tmp_path: Path) -> None:
    said: list[str] = []
    watched = watch(tmp_path, [50 * GIB, 20 * GIB, 40 * GIB], said)
    watched.look()
    watched.look()
    assert watched.line == "disk: 50.0 GiB free at the start, 20.0 GiB at the least"
    assert not said


def test_a_disk_that_fills_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    watched = watch(tmp_path, [50 * GIB, 2 * GIB, GIB // 2, GIB // 4, 30 * GIB], said)
    for _ in range(4):
        watched.look()
    assert [line.split(" are free")[0] for line in said] == ["warning: 512 MiB"]
    assert str(tmp_path) in said[0]
    assert watched.line.endswith("0.2 GiB at the least: the disk was nearly full, and tests fail for that")


def test_the_thread_looks_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PERIOD", 0.001)
    free = [9 * GIB, 3 * GIB, 8 * GIB]
    with watch(tmp_path, free, []) as watched:
        while len(free) > 1:
            pass
    assert watched.least == 3 * GIB
    assert not [thread for thread in threading.enumerate() if thread.name == disk.THREAD]


@pytest.mark.parametrize("text", ["", '<testsuites><testsuite><testcase name="t"'])
def test_a_cut_file_of_results_does_not_hide_the_others(tmp_path: Path, text: str) -> None:
    (tmp_path / "cut.xml").write_text(text)
    whole = '<testsuite><testcase file="tests/unit/a.py" classname="a" name="t" time="1"/></testsuite>'
    (tmp_path / "whole.xml").write_text(whole)
    found = results.read([tmp_path / "cut.xml", tmp_path / "absent.xml", tmp_path / "whole.xml"])
    assert [case.name for case in found] == ["tests/unit/a.py::t"]
