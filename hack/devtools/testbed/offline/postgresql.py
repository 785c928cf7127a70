"""A real PostgreSQL for the tests of the history: the distribution's own, in a folder of the test."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import packages

MAJOR = 15
"""That of Debian 12."""
PACKAGE = f"postgresql-{MAJOR}"
_INSTALLED = Path(f"/usr/lib/postgresql/{MAJOR}/bin")
_USER = 65534
"""The server refuses to run as root; this user owns nothing."""
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Programs:
    """The programs of the server, and the environment in which they find their libraries."""

    folder: Path
    environ: Mapping[str, str]
    tree: Path | None = None
    """Where they were unpacked with all that they need; None for installed ones."""

    def program(self, name: str) -> str:
        return str(self.folder / name)

    def copied(self, to: Path) -> Programs:
        """The same ones below ``to``, for a user who may not enter the folder in which they were unpacked."""
        if self.tree is None:
            return self
        shutil.copytree(self.tree, to, symlinks=True)
        return _unpacked(to)


def programs(cache: Path) -> Programs:
    """Those that are installed, else downloaded with apt-get into the folder ``cache``: 20 MB, and 75 MB unpacked.

    Raises ClusterError where apt-get cannot have them, or the package has other files.
    """
    if (_INSTALLED / "initdb").is_file():
        return Programs(_INSTALLED, {"PATH": os.environ.get("PATH", os.defpath)})
    found = _unpacked(packages.unpack(cache, PACKAGE, (PACKAGE,), with_dependencies=True))
    if not (found.folder / "initdb").is_file():
        raise ClusterError(f"{found.folder}/initdb: not found; the package {PACKAGE} has other files than Debian's")
    return found


def _unpacked(tree: Path) -> Programs:
    return Programs(tree / f"usr/lib/postgresql/{MAJOR}/bin", packages.tool_env(tree), tree)


@dataclass
class PostgreSQL:
    """A server with its data below ``folder``, which every user must be able to enter. ``stop`` ends it."""

    programs: Programs
    folder: Path
    port: int = field(default_factory=lambda: _free_port())
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """By the TCP port of 127.0.0.1, of the superuser, who needs no password."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def socket_url(self) -> str:
        """By the Unix socket."""
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}&port={self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def create(self) -> None:
        """Make an empty database. Raises ClusterError with what initdb says."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            self.programs = self.programs.copied(self.folder / "programs")
            os.chown(self.folder, _USER, _USER)
        initdb = [self.programs.program("initdb"), "--pgdata", str(self.data), "--username=postgres"]
        done = subprocess.run(
            [*self._as_user(), *initdb, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
            env=dict(self.programs.environ), capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        if done.returncode:
            raise ClusterError(f"initdb: {done.stderr.strip()[-500:]}")

    def start(self) -> None:
        """Start the server, and wait until it takes connections. Raises ClusterError with the end of its log."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "20",
            "shared_buffers": "64MB",
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = self.folder / "log"
        server = [self.programs.program("postgres"), "-D", str(self.data), *given]
        # it ends with the thread that starts it, also where a test is killed; a change of the user would undo that
        command = [*self._as_user(), "setpriv", "--pdeathsig=QUIT", *server]
        environ = dict(self.programs.environ)
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, env=environ, stdout=out, stderr=out, cwd="/", start_new_session=True
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ClusterError(f"PostgreSQL does not start: {log.read_text(errors='replace')[-500:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End all its processes at once, as a machine that fails does."""
        if self._process is None:
            return
        started = [self._process.pid, *_children(self._process.pid)]  # each child has a process group of its own
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        deadline = time.monotonic() + _START_SECONDS
        while any(map(_is_alive, started)):  # a server refuses to start beside processes of an earlier one
            if time.monotonic() > deadline:
                raise ClusterError("processes of PostgreSQL do not end")
            time.sleep(0.01)

    def stop(self) -> None:
        """End the server, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        isready = [self.programs.program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(isready, env=dict(self.programs.environ), check=False, cwd="/").returncode == 0

    @staticmethod
    def _as_user() -> list[str]:
        if os.geteuid() != 0:
            return []
        user = pwd.getpwuid(_USER)
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may remain as an entry until its parent asks for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
