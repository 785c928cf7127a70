"""A process whose wall clock is wrong, as those of the chaos run's operators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from devtools.lab.chaos.clock.sitecustomize import OFFSET_FILE
from devtools.lab.chaos.operators import CLOCK, Operator

READ_CLOCKS = """
import datetime, json, logging, time
begin = time.monotonic()
time.sleep(0.01)
aware = datetime.datetime.now(datetime.timezone.utc)
record = logging.LogRecord("", 0, "", 0, "", (), None)
print(json.dumps({
    "time": time.time(), "nanoseconds": time.time_ns() / 1e9, "aware": aware.timestamp(),
    "naive": datetime.datetime.now().timestamp(), "logged": record.created, "given": time.gmtime(0).tm_year,
    "gmtime": __import__("calendar").timegm(time.gmtime()),
    "formatted": logging.Formatter("%(asctime)s").format(record) != "",
    "instance": isinstance(aware - datetime.timedelta(1), datetime.datetime), "slept": time.monotonic() - begin,
}))
"""


def read_clocks(clock: Path) -> dict[str, float]:
    environment = {**os.environ, OFFSET_FILE: str(clock), "PYTHONPATH": str(CLOCK)}
    done = subprocess.run(
        [sys.executable, "-c", READ_CLOCKS], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("offset", [600.0, -600.0, 0.0])
def test_every_wall_clock_is_wrong_and_no_other_clock(tmp_path: Path, offset: float) -> None:
    now = tmp_path.stat().st_mtime
    operator = Operator("a", tmp_path / "kubeconfig", tmp_path, (), 0)
    operator.set_clock(offset)
    found = read_clocks(tmp_path / "clock-a")
    for name in ("time", "nanoseconds", "aware", "naive", "logged", "gmtime"):
        assert abs(found[name] - now - offset) < 60, name
    assert found["given"] == 1970
    assert found["instance"]
    assert found["formatted"]
    assert 0 < found["slept"] < 30


def test_the_clock_is_right_before_it_is_set(tmp_path: Path) -> None:
    assert abs(read_clocks(tmp_path / "none")["time"] - tmp_path.stat().st_mtime) < 60


def test_an_offset_that_changes_reaches_a_process_that_runs(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    program = "import time\nwhile abs(time.time() - float(input())) < 60: print('right', flush=True)\nprint('ahead')"
    environment = {**os.environ, OFFSET_FILE: str(clock), "PYTHONPATH": str(CLOCK)}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        now = tmp_path.stat().st_mtime
        answers = []
        for _ in range(100_000):
            child.stdin.write(f"{now}\n")
            child.stdin.flush()
            answers.append(child.stdout.readline())
            if len(answers) == 1:
                clock.write_text("600")
            if answers[-1] == "ahead\n":
                break
        child.kill()
    assert answers[0] == "right\n"
    assert answers[-1] == "ahead\n"
