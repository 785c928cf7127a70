"""Certificates for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def write_certificate(folder: Path, names: Sequence[str] = ("DNS:localhost",), days: int = 1) -> tuple[Path, Path]:
    """Write a new self-signed certificate of these names and its key; return their paths, which are always the same.

    ``names`` are subject alternative names in OpenSSL's form. The certificate expires after ``days``.
    """
    certificate, key = folder / "tls.crt", folder / "tls.key"
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
        "-subj", "/CN=localhost", "-addext", f"subjectAltName={','.join(names)}", "-keyout", str(key),
        "-out", str(certificate),
    )  # fmt: skip
    return certificate, key


def write_rsa_certificate(folder: Path, names: Sequence[str], days: int) -> tuple[Path, Path]:
    """The same with an RSA key in PKCS #1, which some programs accept alone."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    _openssl("genrsa", "-traditional", "-out", str(key), "2048")
    _openssl(
        "req", "-x509", "-key", str(key), "-days", str(days), "-subj", "/CN=localhost",
        "-addext", f"subjectAltName={','.join(names)}", "-out", str(certificate),
    )  # fmt: skip
    return certificate, key


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
