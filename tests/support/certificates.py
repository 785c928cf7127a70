"""Certificates for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a new self-signed certificate of localhost and its key; return their paths, which are always the same."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key),
         "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key
