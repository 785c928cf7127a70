"""`ansible-runner` for ansible-operator: it passes the run to `dljob-operator serve`, or else starts the real one.

It imports only a few modules of the standard library, because it starts once for each reconcile. It connects to the
socket in DLJOB_RUNNER_SOCKET and sends one line of JSON, `{"argv": [...], "cwd": "..."}`. The responses are:

    {"accepted": false, "reason": "..."}    the run is not supported: the shim starts the real ansible-runner
    {"accepted": true}                      the run starts, and at its end follows
    {"code": 0, "output": "..."}            its exit code and its output

The shim never repeats an accepted run: if the operator process ends during the run, the shim exits with code 1. No
`playbook_on_stats` was posted then, so ansible-operator tries again.
"""

import json
import os
import socket
import sys

SOCKET = "DLJOB_RUNNER_SOCKET"
NAME = "ansible-runner"
_ACCEPT_TIMEOUT = 10.0
"""Seconds to wait for the response to the request, which normally comes immediately."""


def main(argv: "list[str]") -> int:
    """Run the command line `argv` and return its exit code. Does not return if it executes the real ansible-runner."""
    reason = "DLJOB_RUNNER_SOCKET is not set"
    path = os.environ.get(SOCKET)
    if path:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_ACCEPT_TIMEOUT)
                connection.connect(path)
                connection.sendall(json.dumps({"argv": argv, "cwd": os.getcwd()}).encode() + b"\n")
                lines = connection.makefile("rb")
                answer = json.loads(lines.readline() or b'{"accepted": false, "reason": "no answer"}')
                if answer["accepted"]:
                    connection.settimeout(None)
                    return _exit_code(argv, lines.readline())
                reason = answer["reason"]
        except (OSError, ValueError) as error:
            reason = f"{path}: {error}"
    return _exec_real(argv, reason)


def _exit_code(argv: "list[str]", line: bytes) -> int:
    if line:
        result = json.loads(line)
        sys.stdout.write(result["output"])
        return int(result["code"])
    text = "the operator process ended during the run; ansible-operator will try again\n"
    sys.stdout.write(text)
    _write_stdout(argv, text)
    return 1


def _write_stdout(argv: "list[str]", text: str) -> None:
    """Write artifacts/<ident>/stdout, without which ansible-operator reports in the status that no run started."""
    try:
        folder = os.path.join(argv[1], "artifacts", argv[argv.index("-i") + 1])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, "stdout"), "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError, IndexError):
        pass  # ansible-operator tries again in any case


def _exec_real(argv: "list[str]", reason: str) -> int:
    """Execute the next `ansible-runner` on PATH."""
    sys.stderr.write(f"{NAME}: a cold run, {reason}\n")
    sys.stderr.flush()
    own = os.path.realpath(os.path.dirname(__file__))
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, NAME)
        if folder and os.path.realpath(folder) != own and os.access(candidate, os.X_OK):
            os.execv(candidate, [candidate, *argv])
    sys.stderr.write(f"{NAME}: there is no other {NAME} on PATH: pip install ansible-runner\n")
    return 127
