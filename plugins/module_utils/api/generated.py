"""The data of Secrets that the operator generates: the one part of an object that no pure function can compute.

The writer calls this when it creates the object, so no plan, diff or log has the data, and an existing Secret keeps
its own.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c


def complete(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """``manifest`` itself, or with the data that its annotation ``dljob.operator/generate`` names."""
    wanted = (manifest["metadata"].get("annotations") or {}).get(c.ANNOTATION_GENERATE)
    if wanted is None:
        return manifest
    data = _GENERATORS[wanted]()
    return {**manifest, "data": {name: base64.b64encode(value).decode() for name, value in data.items()}}


def ssh_key_pair() -> dict[str, bytes]:
    """A new key pair, in the entries of a Secret of the type kubernetes.io/ssh-auth and mpi-operator's ssh-publickey.

    ECDSA on P-521, in PEM: every OpenSSH since 5.7 reads it, as client's key and as host key.
    """
    # here, because most runs of the reconcile never need it, and loading it takes 30 ms
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {"ssh-privatekey": private, "ssh-publickey": public + b"\n"}


_GENERATORS: Mapping[str, Callable[[], Mapping[str, bytes]]] = {c.GENERATE_SSH_KEY_PAIR: ssh_key_pair}
