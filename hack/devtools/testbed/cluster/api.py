"""A small API server client, for bulk operations that are slow with kubectl."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devtools.testbed.base.errors import ClusterError


@dataclass(frozen=True)
class Access:
    """An API server's address and its client certificate, as kind writes them into a kubeconfig (PEM)."""

    server: str
    authority: str
    certificate: str
    key: str


def parse_kubeconfig(text: str) -> Access:
    """Parse the current context; raises ValueError if it is not in the format that kind writes."""
    document = yaml.safe_load(text)
    try:
        context = {c["name"]: c["context"] for c in document["contexts"]}[document["current-context"]]
        cluster = {c["name"]: c["cluster"] for c in document["clusters"]}[context["cluster"]]
        user = {u["name"]: u["user"] for u in document["users"]}[context["user"]]
        return Access(
            cluster["server"],
            base64.b64decode(cluster["certificate-authority-data"]).decode(),
            base64.b64decode(user["client-certificate-data"]).decode(),
            base64.b64decode(user["client-key-data"]).decode(),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a kubeconfig with a client certificate: {error!r}") from error


class Api:
    """One connection to the API server, authenticated with the cluster-admin certificate. Not thread-safe."""

    def __init__(self, kubeconfig: Path) -> None:
        access = parse_kubeconfig(kubeconfig.read_text())
        context = ssl.create_default_context(cadata=access.authority)
        with tempfile.NamedTemporaryFile("w") as pair:  # the ssl module accepts only files
            pair.write(access.certificate + access.key)
            pair.flush()
            context.load_cert_chain(pair.name)
        url = urllib.parse.urlsplit(access.server)
        self.connection = http.client.HTTPSConnection(str(url.hostname), url.port or 443, context=context, timeout=60)

    def close(self) -> None:
        self.connection.close()

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, ok: tuple[int, ...] = (200, 201)
    ) -> Any:
        """The response body as JSON; raises ClusterError with the server's message for a status not in ``ok``."""
        try:
            data = None if body is None else json.dumps(body)
            content = "application/merge-patch+json" if method == "PATCH" else "application/json"
            self.connection.request(method, path, data, {"Content-Type": content})
            answer = self.connection.getresponse()
            document = json.loads(answer.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ClusterError(f"the API server does not answer: {error}", "see cluster-status") from error
        if answer.status not in ok:
            raise ClusterError(f"{method} {path}: {answer.status} {document.get('message', '')}")
        return document

    def watch(self, path: str, version: str, timeout: int) -> Iterator[tuple[str, Any]]:
        """Yield (type, object) of each watch event under ``path`` after ``version``, for at most ``timeout`` seconds.

        The watch occupies the connection: if the caller abandons it early, this client cannot be used any more.
        """
        separator = "&" if "?" in path else "?"
        query = f"{separator}watch=1&resourceVersion={version}&timeoutSeconds={timeout}"
        try:
            self.connection.timeout = timeout + 10
            if self.connection.sock is not None:
                self.connection.sock.settimeout(timeout + 10)
            self.connection.request("GET", path + query)
            answer = self.connection.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ClusterError(f"watch of {path}: {event['object'].get('message', '')}")
                yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ClusterError(f"the API server does not answer: {error}", "see cluster-status") from error
