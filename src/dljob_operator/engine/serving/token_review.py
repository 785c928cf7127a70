"""Ask the API server whose a bearer token is, and remember for a time what it said."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

Result = TypeVar("Result")
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


class Reviews(Generic[Result]):
    """The results of reviews, by a hash of what was asked. It is safe to use from several threads.

    It keeps the ``most`` results that came last. ``clock`` returns monotonic seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[float, Result]] = OrderedDict()

    def get(self, asked: str) -> tuple[Result | None, bool]:
        """The last result, None without one, and whether it still holds."""
        with self._lock:
            known = self._known.get(_hash(asked))
        return (None, False) if known is None else (known[1], self._clock() < known[0])

    def put(self, asked: str, result: Result, seconds: float) -> None:
        """Keep a result, which holds for ``seconds``."""
        key = _hash(asked)
        with self._lock:
            self._known[key] = self._clock() + seconds, result
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)


def _hash(asked: str) -> bytes:
    return hashlib.sha256(asked.encode()).digest()
