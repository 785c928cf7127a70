"""The endpoint's certificate, of an authority of its own, kept in a Secret so that it outlives the process.

Pods know the authority from their creation on, so a new one is made only when the old one no longer fits. Its own key
is kept nowhere.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import KubeApi

_VALID = timedelta(days=3650)
_RENEW = timedelta(days=365)
"""Before its end a new one is made: pods that run longer than that report no more."""
_FILES = {"authority": "ca.crt", "certificate": "tls.crt", "key": "tls.key"}


@dataclass(frozen=True)
class ServerKey:
    """PEM texts: what clients trust, and what the server has."""

    authority: str
    certificate: str
    key: str

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The files of the certificate and the key, which only this user may read."""
        paths = folder / _FILES["certificate"], folder / _FILES["key"]
        for path, text in zip(paths, (self.certificate, self.key), strict=True):
            path.touch(mode=0o600)
            path.write_text(text)
        return paths


def kept(api: KubeApi, namespace: str, name: str, host: str, now: datetime | None = None) -> ServerKey:
    """The key in that Secret, a new one where it has none for `host` that is valid for another year.

    Raises what `KubeApi.request` raises.
    """
    moment = now or datetime.now(UTC)
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for _ in range(3):
        try:
            found: dict[str, Any] | None = api.request("GET", f"{path}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            found = None
        known = _read((found or {}).get("data") or {})
        if known is not None and _fits(known, host, moment):
            return known
        made = create(host, moment)
        try:
            if found is None:
                api.request("POST", path, _secret(namespace, name, made, {}))
            else:
                api.request("PUT", f"{path}/{name}", _secret(namespace, name, made, found["metadata"]))
        except ApiError as error:
            if error.status != 409:  # another process was faster: its key counts
                raise
            continue
        return made
    raise ApiError(409, "Conflict", f"the Secret {namespace}/{name} changes all the time")


def create(host: str, now: datetime | None = None) -> ServerKey:
    """A new key for a server at `host`, a name or an address."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    moment = now or datetime.now(UTC)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{MANAGER} progress")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment - timedelta(hours=1))  # a node's clock may be behind
            .not_valid_after(moment + _VALID)
        )

    authority = (
        builder(issuer, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(x509, signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        builder(x509.Name([]), key.public_key())
        .add_extension(x509.SubjectAlternativeName([_name(x509, host)]), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(x509, signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return ServerKey(
        authority.public_bytes(pem).decode(),
        certificate.public_bytes(pem).decode(),
        key.private_bytes(pem, form, plain).decode(),
    )


def _usage(x509: Any, *, signs_certificates: bool) -> Any:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
        **dict.fromkeys(others, False),
    )


def _name(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _fits(known: ServerKey, host: str, now: datetime) -> bool:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(known.certificate.encode())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return _name(x509, host) in names and certificate.not_valid_after_utc - _RENEW > now


def _read(data: Mapping[str, str]) -> ServerKey | None:
    try:
        texts = {one.name: base64.b64decode(data[_FILES[one.name]]).decode() for one in fields(ServerKey)}
    except (KeyError, ValueError):
        return None
    return ServerKey(**texts)


def _secret(namespace: str, name: str, made: ServerKey, metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept_metadata = {key: metadata[key] for key in ("resourceVersion", "labels", "annotations") if key in metadata}
    data = {file: base64.b64encode(getattr(made, field).encode()).decode() for field, file in _FILES.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {**kept_metadata, "name": name, "namespace": namespace},
        "data": data,
    }
