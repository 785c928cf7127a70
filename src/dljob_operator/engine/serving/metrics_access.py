"""Decide who may read the metrics, as kube-rbac-proxy and controller-runtime do.

The API server says whose a bearer token is (TokenReview) and whether that user may get the path (SubjectAccessReview on
a non-resource URL). The results are kept for a short time, by a hash of the token.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.serving.token_review import Api, Reviews, bearer, review

_LOG = logging.getLogger(__name__)
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ALLOWED_SECONDS, _REFUSED_SECONDS = 60.0, 10.0
_LARGEST_CACHE = 256


class MetricsAccess:
    """It is safe to use from several threads."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._results = Reviews[HTTPStatus](_LARGEST_CACHE, clock)

    def check(self, authorization: str, path: str) -> HTTPStatus:
        """Return OK, UNAUTHORIZED (no valid token), FORBIDDEN, or SERVICE_UNAVAILABLE if the API server cannot tell."""
        token = bearer(authorization)
        if not token:
            return HTTPStatus.UNAUTHORIZED
        asked = f"{path} {token}"
        known, holds = self._results.get(asked)
        if known is not None and holds:
            return known
        try:
            status = self._ask(token, path)
        except (ApiError, ApiConnectionError) as error:
            _LOG.warning("cannot check who reads the metrics", extra=logs.fields(error=str(error)))
            return HTTPStatus.SERVICE_UNAVAILABLE
        seconds = _ALLOWED_SECONDS if status is HTTPStatus.OK else _REFUSED_SECONDS
        self._results.put(asked, status, seconds)
        return status

    def _ask(self, token: str, path: str) -> HTTPStatus:
        user = review(self._api, token)
        if not user:
            return HTTPStatus.UNAUTHORIZED
        given = {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
        wanted = {"user": user["username"], "nonResourceAttributes": {"path": path, "verb": "get"}, **given}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": wanted}
        answer = self._api.request("POST", _ACCESS_REVIEWS, body)
        return HTTPStatus.OK if (answer.get("status") or {}).get("allowed") is True else HTTPStatus.FORBIDDEN
