"""The processes of a run are found even if their parents have ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from dljob_operator.runner import process_tree


def test_programs_of_a_run_are_found_by_their_environment(tmp_path: Path) -> None:
    own, other = tmp_path / "fork_server-1", tmp_path / "fork_server-10"

    def waiting(directory: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, process_tree.RUN_DIRECTORY: f"{directory}/run-3"}
        program = ["sh", "-c", "echo up; read line"]
        process = subprocess.Popen(program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # for a moment after it was started, a program has no environment that others could see
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    with waiting(own) as mine, waiting(other) as strange:
        try:
            found = process_tree.started_below(own)
            assert [process.pid for process in found] == [mine.pid]
            assert process_tree.started_below(own / "run-3") == found
            assert not process_tree.started_below(own / "run")
            process_tree.kill(found)
            assert mine.wait(10) == -9
            assert strange.poll() is None
        finally:
            mine.kill()
            strange.kill()
