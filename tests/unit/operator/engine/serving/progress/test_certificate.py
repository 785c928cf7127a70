"""The endpoint's key: what clients accept, and where it is kept."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from cryptography import x509

from dljob_operator.engine.serving.progress import certificate

HOST = "dljob-operator-progress.dljob-system.svc"
NAME = "dljob-operator-progress"


class Secrets:
    """An API server with Secrets of one namespace."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.faster: dict[str, Any] | None = None
        """What another process creates just before this one does."""

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        collection, name = "/api/v1/namespaces/dljob-system/secrets", path.rpartition("/")[2]
        if method == "GET":
            if name not in self.kept:
                raise ApiError(404, "NotFound", "no such Secret")
            return self.kept[name]
        self.writes.append(method)
        if method == "POST":
            assert path == collection
            if self.faster is not None:
                self.kept[body["metadata"]["name"]], self.faster = self.faster, None
            if body["metadata"]["name"] in self.kept:
                raise ApiError(409, "AlreadyExists", "exists")
            name = body["metadata"]["name"]
        elif body["metadata"]["resourceVersion"] != self.kept[name]["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "changed")
        version = str(len(self.writes))
        self.kept[name] = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        return self.kept[name]


def kept(api: Secrets, host: str = HOST, **given: Any) -> certificate.ServerKey:
    return certificate.kept(api, "dljob-system", NAME, host, **given)


def test_the_key_is_kept_in_the_own_namespace() -> None:
    api = Secrets()
    first = kept(api)
    assert kept(api) == first, "a restart keeps it"
    assert api.writes == ["POST"]
    secret = api.kept[NAME]
    assert (secret["type"], sorted(secret["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])
    assert base64.b64decode(secret["data"]["ca.crt"]).decode() == first.authority
    assert "PRIVATE" not in first.authority + first.certificate


def test_two_that_start_together_have_one_key() -> None:
    api, other = Secrets(), Secrets()
    first = kept(other)
    api.faster = other.kept[NAME]
    assert kept(api) == first


@pytest.mark.parametrize("broken", [{}, {"tls.crt": "%"}, {"tls.crt": base64.b64encode(b"none").decode()}])
def test_an_unusable_secret_is_replaced(broken: dict[str, str]) -> None:
    api = Secrets()
    first = kept(api)
    data = {**api.kept[NAME]["data"], **broken} if broken else {}
    api.kept[NAME] = {**api.kept[NAME], "data": data}
    api.kept[NAME]["metadata"]["labels"] = {"a": "b"}
    again = kept(api)
    assert again != first
    assert api.writes == ["POST", "PUT"]
    assert api.kept[NAME]["metadata"]["labels"] == {"a": "b"}


def test_another_host_and_the_end_of_the_validity() -> None:
    api = Secrets()
    first = kept(api)
    moved = kept(api, "10.0.0.7")
    assert moved != first
    names = x509.load_pem_x509_certificate(moved.certificate.encode()).extensions
    assert str(names.get_extension_for_class(x509.SubjectAlternativeName).value) == (
        "<SubjectAlternativeName(<GeneralNames([<IPAddress(value=10.0.0.7)>])>)>"
    )
    later = datetime.now(UTC) + timedelta(days=3640 - 365)
    assert kept(api, "10.0.0.7", now=later - timedelta(days=30)) == moved
    assert kept(api, "10.0.0.7", now=later + timedelta(days=30)) != moved


def test_a_missing_right_is_an_error() -> None:
    class Denied(Secrets):
        def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
            raise ApiError(403, "Forbidden", "secrets is forbidden")

    with pytest.raises(ApiError, match="forbidden"):
        kept(Denied())


def test_only_this_user_may_read_the_files(tmp_path: Path) -> None:
    key = certificate.create(HOST)
    files = key.write(tmp_path)
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*files)
