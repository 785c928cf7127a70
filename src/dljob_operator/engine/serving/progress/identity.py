"""Whose a token is: the API server names the pod to which it is bound.

Programs wait for the answer to a report within a step of their training. So while the API server is slow or down, it is
asked rarely, and a token that it knew before counts: its pod must still be there for a report to count.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import AUDIENCE
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.progress.reporter import PodIdentity
from dljob_operator.engine.serving.token_review import Api, Reviews, bearer, review

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
        self._paused_until = 0.0
        self._pods = Reviews[PodIdentity | None](_MOST, clock)

    def of(self, authorization: str) -> PodIdentity | HTTPStatus:
        """The pod of the token in that header, UNAUTHORIZED for none, SERVICE_UNAVAILABLE if it cannot be found out."""
        token = bearer(authorization)
        if not token:
            return HTTPStatus.UNAUTHORIZED
        pod, holds = self._pods.get(token)
        if not holds:
            if self._clock() < self._paused_until:
                return HTTPStatus.SERVICE_UNAVAILABLE if pod is None else pod
            try:
                pod = self._ask(token)
            except (ApiError, ApiConnectionError) as error:
                self._paused_until = self._clock() + _PAUSE_SECONDS
                _LOG.warning("cannot check who reports progress", extra=logs.fields(error=str(error)))
                return HTTPStatus.SERVICE_UNAVAILABLE if pod is None else pod
            self._pods.put(token, pod, _REFUSED_SECONDS if pod is None else _KNOWN_SECONDS)
        return HTTPStatus.UNAUTHORIZED if pod is None else pod

    def _ask(self, token: str) -> PodIdentity | None:
        user = review(self._api, token, (AUDIENCE,))
        account = str(user.get("username") or "")
        found = (user.get("extra") or {}).get(_POD_UID) or []
        if not account.startswith(_ACCOUNT) or len(found) != 1:
            return None
        return PodIdentity(account.removeprefix(_ACCOUNT).partition(":")[0], str(found[0]))
