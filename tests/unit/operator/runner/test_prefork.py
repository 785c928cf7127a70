"""The first fork server is a fork of the engine's process, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PRELUDE = """
import gc, json, os, signal, sys, time
from pathlib import Path
from dljob_operator.runner.prefork import prefork
preforked = prefork()
from dljob_operator.runner import RunnerClient, RunRequest, Target

def smaps(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split()[0]: 1024 * int(line.split()[1]) for line in lines}
def fds(pid):
    links = (os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir())
    return sorted(link for link in links if not link.startswith(("pipe:", "anon_inode:")))
def client(**options):
    environ = {**os.environ, "WORD": "hello"}
    made = RunnerClient([Target("echo", playbook=Path(sys.argv[1]))], 1, environ, preforked=preforked, **options)
    made.start()
    made.wait_ready(60)
    return made
def shown(made):
    result = made.run(RunRequest("echo", {}))
    return result.ok, result.message
"""
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.assert:
        that: lookup('env', 'WORD') == 'hello' and lookup('env', 'PYTHONSAFEPATH') == '1'
"""


def run(script: str, folder: Path) -> str:
    """What the script prints in a process that has forked its fork server."""
    playbook = folder / "echo.yaml"
    playbook.write_text(PLAYBOOK)
    (folder / "jmespath.py").write_text("raise RuntimeError('imported from the working directory')")
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script), str(playbook)],
        cwd=folder,
        input="",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


def test_it_serves_runs_and_shares_the_memory_of_the_libraries(tmp_path: Path) -> None:
    """14 MiB of the 25 that the Kubernetes client takes; without gc.freeze it is 9."""
    said = run(
        """
        made = client()
        assert made.pid == preforked.pid, made.pid
        assert shown(made) == (True, "")
        gc.collect()  # without gc.freeze it writes to all containers, and their pages are shared no longer
        print(smaps(made.pid)["Shared_Dirty:"] // 2**20)
        made.close()
        assert preforked.wait(10) == 0
        """,
        tmp_path,
    )
    assert int(said) >= 11


def test_it_keeps_nothing_of_the_engines_session(tmp_path: Path) -> None:
    said = run(
        """
        made = client()
        streams = [os.readlink(f"/proc/{made.pid}/fd/{number}") for number in (0, 1, 2)]
        while any("/ansible/" in one for one in fds(made.pid)):  # a folder whose plugins it is finding
            time.sleep(0.05)
        print(json.dumps([os.getsid(made.pid) == made.pid, streams, *fds(made.pid)]))
        made.close()
        """,
        tmp_path,
    )
    has_own_session, streams, *links = json.loads(said)
    assert has_own_session
    assert (streams[0], streams[1]) == ("/dev/null", streams[2]), "its output is part of the log"
    names = [link.partition(":")[0] for link in links if link != "/dev/null"]
    assert set(names) == {"/memfd", "socket"}, "the counter of changes and the socket to the engine"
    assert names.count("socket") == 1


@pytest.mark.parametrize("is_used", [True, False])
def test_the_next_one_is_started_with_exec(is_used: bool, tmp_path: Path) -> None:
    """After the first has been killed, in its use or before."""
    run(
        f"""
        made = client() if {is_used} else None
        os.kill(preforked.pid, signal.SIGKILL)
        if made is None:
            os.waitid(os.P_PID, preforked.pid, os.WEXITED | os.WNOWAIT)
        made = made or client()
        while made.pid in (None, preforked.pid):
            time.sleep(0.01)
        assert shown(made) == (True, "")
        command = Path(f"/proc/{{made.pid}}/cmdline").read_bytes().split(b"\\0")
        assert b"dljob_operator.runner.fork_server" in command, command
        made.close()
        """,
        tmp_path,
    )


def test_waiting_for_it(tmp_path: Path) -> None:
    run(
        """
        try:
            preforked.wait(0.1)
        except TimeoutError as error:
            assert str(preforked.pid) in str(error)
        else:
            raise AssertionError("it has not ended")
        preforked.kill()
        assert [preforked.wait(10), preforked.wait()] == [-signal.SIGKILL] * 2
        os.kill = lambda *_: sys.exit("another process may have its id by now")
        preforked.kill()
        """,
        tmp_path,
    )
    run(
        """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        preforked.kill()
        assert preforked.wait(10) == 0
        """,
        tmp_path,
    )


@pytest.mark.parametrize("started", [False, True])
def test_it_ends_with_a_killed_engine(started: bool, tmp_path: Path) -> None:
    script = f"""
        made = client() if {started} else None
        print(preforked.pid, flush=True)
        signal.pause()
        """
    playbook = tmp_path / "echo.yaml"
    playbook.write_text(PLAYBOOK)
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script), str(playbook)], stdout=subprocess.PIPE
    ) as engine:
        assert engine.stdout is not None
        pid = int(engine.stdout.readline())
        engine.kill()
    assert ends(pid)


def test_it_leaves_the_collection_to_ansible() -> None:
    program = "import sys; from dljob_operator.runner import prefork\n"
    program += "for name in prefork._SHARED: __import__(name)\n"
    program += "print([name for name in sys.modules if name.startswith('ansible')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("command", "expected"), [("run", "Preforked"), ("convert", "NoneType")])
def test_only_a_command_that_runs_ansible_forks(command: str, expected: str) -> None:
    program = (
        "import sys\n"
        f"sys.argv[1:] = [{command!r}, '--help']\n"
        "from dljob_operator import __main__, cli\n"
        "cli.main = lambda preforked: print(type(preforked).__name__)\n"
        "__main__.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


MODULE, FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["dljob-operator"].split(
    ":"
)
SCRIPTS = {
    "module": ["-m", "dljob_operator"],
    "image": [str(ROOT / "build" / "entrypoint" / "dljob-operator")],
    "console script": ["-c", f"import {MODULE}; {MODULE}.{FUNCTION}()"],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_it_is_forked_however_the_operator_is_started(script: list[str], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.fork = lambda: os._exit(42)\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *script, "run", "--help"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 42, done.stderr
