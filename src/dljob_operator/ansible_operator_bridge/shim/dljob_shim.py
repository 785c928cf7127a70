"""`ansible-runner` as ansible-operator calls it: the warm process runs it; where there is none, the real one does.

DefaultProgram library only, and little of it: this starts once for each reconcile. The socket is the one that
DLJOB_RUNNER_SOCKET names. One line of JSON goes out: `{"argv": [...], "cwd": "..."}`. What comes back:

    {"accepted": false, "reason": "..."}    not a run for the warm process: the real ansible-runner is started
    {"accepted": true}                      the run begins, and in the end comes
    {"code": 0, "output": "..."}            its exit code and what it printed

A run that was accepted is never started a second time here: if the warm process ends in the middle of it,
this exits with 1, no `playbook_on_stats` has been posted, and ansible-operator tries again.
"""

import json
import os
import socket
import sys

SOCKET = "DLJOB_RUNNER_SOCKET"
NAME = "ansible-runner"
_PATIENCE = 10.0
"""Seconds until the warm process has said whether it takes the run; it answers at once or is not well."""


def main(argv: "list[str]") -> int:
    """Run the command line `argv` and return its exit code. Does not return where the real one takes over."""
    reason = "DLJOB_RUNNER_SOCKET is not set"
    path = os.environ.get(SOCKET)
    if path:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_PATIENCE)
                connection.connect(path)
                connection.sendall(json.dumps({"argv": argv, "cwd": os.getcwd()}).encode() + b"\n")
                lines = connection.makefile("rb")
                answer = json.loads(lines.readline() or b'{"accepted": false, "reason": "no answer"}')
                if answer["accepted"]:
                    connection.settimeout(None)
                    return _end(argv, lines.readline())
                reason = answer["reason"]
        except (OSError, ValueError) as error:
            reason = f"{path}: {error}"
    return _real(argv, reason)


def _end(argv: "list[str]", line: bytes) -> int:
    if line:
        result = json.loads(line)
        sys.stdout.write(result["output"])
        return int(result["code"])
    said = "the warm process ended during the run; ansible-operator will try again\n"
    sys.stdout.write(said)
    _leave_stdout(argv, said)
    return 1


def _leave_stdout(argv: "list[str]", text: str) -> None:
    """Without artifacts/<ident>/stdout ansible-operator thinks that no run began, and writes that into the status."""
    try:
        folder = os.path.join(argv[1], "artifacts", argv[argv.index("-i") + 1])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, "stdout"), "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError, IndexError):
        pass  # it says less then, and tries again all the same


def _real(argv: "list[str]", reason: str) -> int:
    """Become the next `ansible-runner` on PATH."""
    sys.stderr.write(f"{NAME}: a cold run, {reason}\n")
    sys.stderr.flush()
    own = os.path.realpath(os.path.dirname(__file__))
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, NAME)
        if folder and os.path.realpath(folder) != own and os.access(candidate, os.X_OK):
            os.execv(candidate, [candidate, *argv])
    sys.stderr.write(f"{NAME}: there is no other {NAME} on PATH: pip install ansible-runner\n")
    return 127
