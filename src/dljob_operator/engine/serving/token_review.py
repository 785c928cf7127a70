"""Ask the API server whose a bearer token is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class Api(Protocol):
    """What this needs of KubeApi."""

    def request(self, method: str, path: str, body: object = ...) -> dict[str, Any]: ...


def bearer(authorization: str) -> str:
    """The token of an Authorization header, "" for another scheme or none."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def review(api: Api, token: str, audiences: Sequence[str] = ()) -> Mapping[str, Any]:
    """The user of a token, empty for one that is not valid, or for none of ``audiences`` (default: the API server's).

    Raises what `Api.request` raises.
    """
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    found = api.request("POST", _PATH, body).get("status") or {}
    if not found.get("authenticated") or (audiences and not set(audiences) & set(found.get("audiences") or ())):
        return {}
    user: Mapping[str, Any] = found.get("user") or {}
    return user if user.get("username") else {}
