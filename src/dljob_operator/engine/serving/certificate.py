"""The TLS certificate of a server, which is read again when its files change."""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path
from typing import Protocol

from dljob_operator import logs

_LOG = logging.getLogger(__name__)


class TlsContexts(Protocol):
    """Returns the context for a new connection; Certificate does."""

    def context(self) -> ssl.SSLContext: ...


_Stamp = tuple[tuple[int, int, int], ...]


class Certificate:
    """A certificate and its private key, in PEM files. Raises ValueError if these are unusable at the start."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._lock = threading.Lock()
        self._stamp: _Stamp = ()
        try:
            self._stamp = self._read_stamp()
            self._context = self._load()
        except OSError as error:  # ssl.SSLError is one
            raise ValueError(f"the certificate {certificate} with the key {key} is unusable: {error}") from error

    def context(self) -> ssl.SSLContext:
        """The context for a new connection. While changed files are unusable, such as half written, the old one."""
        with self._lock:
            try:
                stamp = self._read_stamp()
                if stamp == self._stamp:
                    return self._context
                self._stamp = stamp
                self._context = self._load()
                _LOG.info("TLS certificate loaded", extra=logs.fields(file=self._files[0]))
            except OSError as error:
                fields = logs.fields(file=self._files[0], error=str(error))
                _LOG.warning("cannot load the TLS certificate; the previous one stays", extra=fields)
            return self._context

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # without the callback OpenSSL would ask on the terminal for the password of an encrypted key
        context.load_cert_chain(*self._files, password=lambda: "")
        return context

    def _read_stamp(self) -> _Stamp:
        found = [path.stat() for path in self._files]
        return tuple((one.st_mtime_ns, one.st_ino, one.st_size) for one in found)
