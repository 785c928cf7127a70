"""Whose a token is, also while the API server is slow or down."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.progress.reporter import PodIdentity
from dljob_operator.engine.serving.progress import identity
from dljob_operator.engine.serving.progress.identity import Identities

UNAVAILABLE, UNAUTHORIZED = HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.UNAUTHORIZED
AUDIENCE = "dljob.operator/progress"
USER: dict[str, Any] = {
    "username": "system:serviceaccount:team:default",
    "extra": {"authentication.kubernetes.io/pod-uid": ["p"]},
}
TEAM = PodIdentity("team", "p")


class Api:
    def __init__(self, **status: Any) -> None:
        self.status = {"authenticated": True, "audiences": [AUDIENCE], "user": USER, **status}
        self.error: Exception | None = None
        self.asked = 0

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        self.asked += 1
        if self.error:
            raise self.error
        return {"status": self.status}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, TEAM),
        ({"authenticated": False}, UNAUTHORIZED),
        ({"audiences": ["https://kubernetes.default.svc"]}, UNAUTHORIZED),
        ({"audiences": None}, UNAUTHORIZED),  # an API server that ignores audiences
        ({"user": {}}, UNAUTHORIZED),
        ({"user": {**USER, "extra": {}}}, UNAUTHORIZED),
        ({"user": {**USER, "extra": None}}, UNAUTHORIZED),
        ({"user": {**USER, "username": "jane"}}, UNAUTHORIZED),
    ],
)
def test_whose_it_is(status: dict[str, Any], expected: object) -> None:
    assert Identities(Api(**status)).of("Bearer x") == expected


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic x", "x"])
def test_no_token(header: str) -> None:
    api = Api()
    assert Identities(api).of(header) == UNAUTHORIZED
    assert api.asked == 0


@pytest.mark.parametrize("error", [ApiError(500, "", "no etcd"), ApiConnectionError("timed out")])
def test_while_the_api_server_is_down_a_known_token_counts_and_it_is_asked_rarely(error: Exception) -> None:
    api, clock = Api(), Clock()
    identities = Identities(api, clock)
    assert identities.of("Bearer known") == TEAM
    clock.now += 301
    api.error = error
    assert [identities.of("Bearer known") for _ in range(5)] == [TEAM] * 5
    assert [identities.of("Bearer new") for _ in range(5)] == [UNAVAILABLE] * 5
    assert api.asked == 2
    clock.now += 11
    assert identities.of("Bearer new") == UNAVAILABLE
    assert api.asked == 3
    api.error = None
    clock.now += 11
    assert identities.of("Bearer new") == TEAM


def test_a_token_is_asked_for_again_after_a_time_and_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_MOST", 2)
    api, clock = Api(), Clock()
    identities = Identities(api, clock)
    for token in ("a", "b", "a", "c", "b", "a"):
        identities.of(f"Bearer {token}")
    assert api.asked == 4, "a was forgotten for c"
    clock.now += 301
    identities.of("Bearer a")
    assert api.asked == 5
    api.status["authenticated"] = False
    clock.now += 301
    assert identities.of("Bearer a") == UNAUTHORIZED
    clock.now += 59
    identities.of("Bearer a")
    assert api.asked == 6
