"""`ansible-runner` for ansible-operator: it passes the run to `dljob-operator serve`, or else starts the real one.

It starts once for each reconcile, and starting Python is nearly all that it costs. So it imports no module of Python's
own library before the run is over, only what is compiled into the interpreter, and the script starts without `site`.

It connects to the socket in DLJOB_RUNNER_SOCKET and sends its working directory and its arguments, separated by NUL,
after their length in bytes and a line feed. The responses are lines:

    rejected <reason>    the run is not supported: the shim starts the real ansible-runner
    accepted             the run starts, and at its end follows
    <exit code>          and then, to the end of the stream, what the shim prints

The shim never repeats an accepted run: if the operator process ends during the run, the shim exits with code 1. No
`playbook_on_stats` was posted then, so ansible-operator tries again.
"""

import sys
from _socket import AF_UNIX, SOCK_STREAM, socket
from posix import environ, getcwdb, write

SOCKET = "DLJOB_RUNNER_SOCKET"
NAME = "ansible-runner"
_ACCEPT_TIMEOUT = 120.0
"""Seconds to wait for the response to the request. It normally comes immediately; but large jobs are read one at a
time, and the runs of other jobs that wait for them must not all become cold ones. The watchdog ends a bridge that is
stuck, and the connection with it."""
_CHUNK = 65536
_ROTATE = "--rotate-artifacts"
_TOO_FEW, _FEWEST = ("1", "2"), "3"
"""Numbers with which every run of ansible-runner 2.4.3 fails after the first, and the least other one: it counts the
link `latest`, which ansible-operator sets, as a run, and cannot remove it."""


def main(argv: "list[str]") -> int:
    """Run the command line `argv` and return its exit code. Does not return if it executes the real ansible-runner."""
    path = environ.get(SOCKET.encode(), b"")
    if not path:
        return _exec_real(argv, f"{SOCKET} is not set")
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        answer = _request(connection, path, argv)
    except OSError as error:
        return _exec_real(argv, f"{path.decode(errors='replace')}: {error}")
    if not answer.startswith(b"accepted\n"):
        reason = answer.partition(b" ")[2].decode(errors="replace").strip() or "no answer"
        connection.close()
        return _exec_real(argv, reason)
    return _exit_code(connection, answer[len(b"accepted\n") :], argv)


def _request(connection: socket, path: bytes, argv: "list[str]") -> bytes:
    """Send the request and return at least the first line of the answer. Raises OSError."""
    connection.settimeout(_ACCEPT_TIMEOUT)
    connection.connect(path)
    body = b"\0".join([getcwdb(), *(word.encode("utf-8", "surrogateescape") for word in argv)])
    connection.sendall(b"%d\n%b" % (len(body), body))
    answer = b""
    while b"\n" not in answer:
        data = connection.recv(_CHUNK)
        if not data:
            break
        answer += data
    return answer


def _exit_code(connection: socket, answer: bytes, argv: "list[str]") -> int:
    """Print the output of the accepted run and return its exit code."""
    connection.settimeout(None)
    try:
        while data := connection.recv(_CHUNK):
            answer += data
    except OSError:
        answer = b""
    code, _, output = answer.partition(b"\n")
    if code.isdigit():
        _print(output)
        return int(code)
    text = b"the operator process ended during the run; ansible-operator will try again\n"
    _print(text)
    _write_stdout(argv, text)
    return 1


def _print(output: bytes) -> None:
    while output:
        output = output[write(1, output) :]


def _write_stdout(argv: "list[str]", text: bytes) -> None:
    """Write artifacts/<ident>/stdout, without which ansible-operator reports in the status that no run started."""
    import os

    try:
        folder = os.path.join(argv[1], "artifacts", argv[argv.index("-i") + 1])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, "stdout"), "ab") as file:
            file.write(text)
    except (OSError, ValueError, IndexError):
        pass  # ansible-operator tries again in any case


def _with_enough_runs(argv: "list[str]") -> "list[str]":
    """The arguments with at least _FEWEST runs to keep. 0, for all, stays."""
    pairs = zip(["", *argv], argv, strict=False)
    return [_FEWEST if before == _ROTATE and word in _TOO_FEW else word for before, word in pairs]


def _exec_real(argv: "list[str]", reason: str) -> int:
    """Execute the next `ansible-runner` on PATH."""
    import os

    sys.stderr.write(f"{NAME}: a cold run, {reason}\n")
    sys.stderr.flush()
    own = os.path.realpath(os.path.dirname(__file__))
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, NAME)
        if folder and os.path.realpath(folder) != own and os.access(candidate, os.X_OK):
            os.execv(candidate, [candidate, *_with_enough_runs(argv)])
    sys.stderr.write(f"{NAME}: there is no other {NAME} on PATH: pip install ansible-runner\n")
    return 127
