"""The unix socket for the shim; `shim/dljob_shim.py` describes the protocol."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from dljob_operator import logs
from dljob_operator.ansible_operator_bridge.command import UnsupportedRun
from dljob_operator.ansible_operator_bridge.controller import BridgeController, request_of

_LOG = logging.getLogger(__name__)
_PEER = struct.Struct("3i")
_LONGEST_LINE = 64 * 1024


class ShimServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves requests at `path` from `start` on, only of processes of the same user or root."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: Path, bridge: BridgeController) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self.bridge = bridge
        self._path = path
        super().__init__(str(path), _Handler)
        path.chmod(0o600)
        self._thread = threading.Thread(target=self.serve_forever, name="shim server", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
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
            parsed = bridge.prepare(*request_of(_mapping(self.rfile.readline(_LONGEST_LINE))))
        except UnsupportedRun as error:
            _LOG.debug("run left to the real ansible-runner", extra=logs.fields(reason=error))
            self._send({"accepted": False, "reason": str(error)})
            return
        self._send({"accepted": True})
        finished = bridge.run(parsed)
        self._send({"code": finished.code, "output": finished.output})

    def _send(self, message: Mapping[str, Any]) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")


def _check_peer(connection: socket.socket) -> None:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, uid, _ = _PEER.unpack(data)
    if uid not in (0, os.getuid()):
        raise UnsupportedRun(f"user {uid} may not use this socket")


def _mapping(line: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UnsupportedRun("not a request of the shim")
    return found
