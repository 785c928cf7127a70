"""The number of arenas of the C library's allocator, in a process of its own."""

from __future__ import annotations

import _ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dljob_operator import allocator

THREADS = 12
PROGRAM = f"""
import ctypes, tempfile, threading
{{}}
libc = ctypes.CDLL(None)
barrier = threading.Barrier({THREADS})

def allocate():
    barrier.wait()
    libc.malloc(1000)
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr"))
"""
FREED = 64 * 2**20
TRIMMED = f"""
import ctypes, os, time
from dljob_operator.allocator import start_trimming
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

blocks = [libc.malloc(8192) for _ in range({FREED} // 8192)]
for block in blocks:
    ctypes.memset(block, 1, 8192)
end_of_the_arena = libc.malloc(8192)
for block in blocks:
    libc.free(block)
before = resident()
end = time.monotonic() + 30
{{}}
while before - resident() < {FREED} // 2 and time.monotonic() < end:
    time.sleep(0.01)
print(before - resident())
"""
LIMITED = "from dljob_operator.allocator import limit_arenas; limit_arenas()"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc")


def arenas(setting: str, **environ: str) -> int:
    """The number of arenas after all threads have allocated something at the same time."""
    return number(PROGRAM.format(setting), **environ)


def number(program: str, **environ: str) -> int:
    """What the program prints."""
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**paths, **environ}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_all_threads_allocate_from_two_arenas() -> None:
    assert arenas("") > 2, "what the limit is for"
    assert arenas(LIMITED) == 2


def test_a_limit_in_the_environment_takes_precedence() -> None:
    assert arenas(LIMITED, MALLOC_ARENA_MAX="3") == 3
    assert arenas(LIMITED, GLIBC_TUNABLES="glibc.malloc.arena_max=4") == 4


def test_without_glibc_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert not allocator.limit_arenas()


def test_free_memory_in_the_middle_of_an_arena_is_returned() -> None:
    assert number(TRIMMED.format("end = 0")) < FREED // 2, "what the trimming is for"
    assert number(TRIMMED.format("assert start_trimming(0.05)")) > FREED // 2


def test_without_glibc_nothing_is_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert not allocator.start_trimming()


@pytest.mark.skipif(sys.platform != "linux", reason="the advice is Linux's")
def test_the_code_of_a_library_that_nothing_calls_is_dropped_and_returns(tmp_path: Path) -> None:
    library = tmp_path / "unused.so"
    shutil.copy(_ctypes.__file__, library)
    with library.open("rb") as file:
        os.fsync(file.fileno())  # what is not on the disk yet cannot be dropped
    if subprocess.run(["stat", "-fc", "%T", tmp_path], capture_output=True, check=False).stdout.strip() == b"tmpfs":
        pytest.skip("a file in memory has no other place")
    program = f"""
import ctypes
from dljob_operator.allocator import drop_unused_code

def resident(path={str(library)!r}):
    with open("/proc/self/smaps") as maps:
        blocks = maps.read().split("VmFlags")
    return sum(int(b.split("Rss:")[1].split()[0]) for b in blocks if path in b and "r-xp" in b)

library = ctypes.CDLL({str(library)!r})
start = ctypes.cast(library.PyInit__ctypes, ctypes.c_void_p).value
read = lambda: ctypes.string_at(start, 16_000)
code = read()
before = resident()
drop_unused_code()
after = resident()
print(before > 0, after < before / 2, read() == code, resident() > after)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["True"] * 4
