"""The unix socket for the shim; `shim/dljob_shim.py` describes the protocol."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import socketserver
import struct
import threading
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from dljob_operator import logs
from dljob_operator.ansible_operator_bridge.command import JobNestedTooDeeply, UnsupportedRun
from dljob_operator.ansible_operator_bridge.controller import BridgeController
from dljob_operator.ansible_operator_bridge.parsed_run import RunExit

_LOG = logging.getLogger(__name__)
_PEER = struct.Struct("3i")
_LONGEST_REQUEST = 64 * 1024


class ShimServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves requests at `path` from `start` on, only of processes of the same user or root."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: Path, bridge: BridgeController) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self.bridge = bridge
        self._path = path
        self._stopping = False
        super().__init__(str(path), _Handler)
        path.chmod(0o600)
        self._thread = threading.Thread(target=self.serve_forever, name="shim server", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def problem(self) -> str:
        """Why no request is accepted any more, "" if they are."""
        has_ended = self._thread.ident is not None and not self._thread.is_alive() and not self._stopping
        return f"the thread {self._thread.name} has ended" if has_ended else ""

    def stop(self) -> None:
        self._stopping = True
        self.shutdown()
        self.server_close()
        self._path.unlink(missing_ok=True)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the shim was killed
            self._serve()

    def _serve(self) -> None:
        bridge = cast(ShimServer, self.server).bridge
        try:
            _check_peer(self.connection)
            request = read_request(self.rfile)
            finished = self._run(bridge, *request)
        except UnsupportedRun as error:
            _LOG.debug("run left to the real ansible-runner", extra=logs.fields(reason=error))
            reason = " ".join(str(error).split())
            self.wfile.write(f"rejected {reason}\n".encode(errors="replace"))
            return
        self.wfile.write(f"{finished.code}\n{finished.output}".encode(errors="replace"))

    def _run(self, bridge: BridgeController, argv: list[str], cwd: Path) -> RunExit:
        """Raises UnsupportedRun. An internal error is a failed run: what made it would make a cold one fail too."""
        try:
            parsed = bridge.prepare(argv, cwd)
        except UnsupportedRun:
            raise
        except JobNestedTooDeeply as error:
            self.wfile.write(b"accepted\n")
            return bridge.ignore(error)
        except Exception:
            _LOG.exception("a run failed with an internal error before it began")
            self.wfile.write(b"accepted\n")
            return RunExit(2, "failed: the operator failed with an internal error, see its log\n")
        self.wfile.write(b"accepted\n")
        return bridge.run(parsed)


def _check_peer(connection: socket.socket) -> None:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, uid, _ = _PEER.unpack(data)
    if uid not in (0, os.getuid()):
        raise UnsupportedRun(f"user {uid} may not use this socket")


def read_request(stream: BufferedIOBase) -> tuple[list[str], Path]:
    """Read a request of the shim: its command line and working directory. Raises UnsupportedRun for anything else."""
    length = stream.readline(16)
    if not length.strip().isdigit() or int(length) > _LONGEST_REQUEST:
        raise UnsupportedRun("not a request of the shim")
    body = stream.read(int(length))
    if len(body) < int(length):
        raise UnsupportedRun("the request of the shim is incomplete")
    cwd, *argv = [os.fsdecode(word) for word in body.split(b"\0")]
    return argv, Path(cwd)
