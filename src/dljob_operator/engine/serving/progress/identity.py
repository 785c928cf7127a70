"""Whose a token is: the API server names the pod to which it is bound.

Programs wait for the answer to a report within a step of their training. So while the API server is slow or down, it is
asked rarely, and a token that it knew before counts: its pod must still be there for a report to count.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import AUDIENCE
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.progress.reporter import PodIdentity
from dljob_operator.engine.serving.token_review import Api, bearer, review

_LOG = logging.getLogger(__name__)
_POD_UID = "authentication.kubernetes.io/pod-uid"
_KNOWN_SECONDS, _REFUSED_SECONDS = 300.0, 60.0
_PAUSE_SECONDS = 10.0
"""After a review that failed, until the next."""
_MOST = 16_384
"""Tokens that are remembered, those of more jobs than report at a time."""
_ACCOUNT = "system:serviceaccount:"


class Identities:
    """It is safe to use from several threads. ``clock`` returns monotonic seconds."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()
        self._paused_until = 0.0
        self._known: OrderedDict[bytes, tuple[float, PodIdentity | None]] = OrderedDict()
        """Until when, and whose, by a hash of the token."""

    def of(self, authorization: str) -> PodIdentity | HTTPStatus:
        """The pod of the token in that header, UNAUTHORIZED for none, SERVICE_UNAVAILABLE if it cannot be found out."""
        token = bearer(authorization)
        if not token:
            return HTTPStatus.UNAUTHORIZED
        key = hashlib.sha256(token.encode()).digest()
        with self._lock:
            until, pod = self._known.get(key, (0.0, None))
        now = self._clock()
        if now >= until:
            if now < self._paused_until:
                return HTTPStatus.SERVICE_UNAVAILABLE if pod is None else pod
            try:
                pod = self._ask(token)
            except (ApiError, ApiConnectionError) as error:
                self._paused_until = self._clock() + _PAUSE_SECONDS
                _LOG.warning("cannot check who reports progress", extra=logs.fields(error=str(error)))
                return HTTPStatus.SERVICE_UNAVAILABLE if pod is None else pod
            with self._lock:
                self._known[key] = self._clock() + (_REFUSED_SECONDS if pod is None else _KNOWN_SECONDS), pod
                self._known.move_to_end(key)
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
        return HTTPStatus.UNAUTHORIZED if pod is None else pod

    def _ask(self, token: str) -> PodIdentity | None:
        user = review(self._api, token, (AUDIENCE,))
        account = str(user.get("username") or "")
        found = (user.get("extra") or {}).get(_POD_UID) or []
        if not account.startswith(_ACCOUNT) or len(found) != 1:
            return None
        return PodIdentity(account.removeprefix(_ACCOUNT).partition(":")[0], str(found[0]))
