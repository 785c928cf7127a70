"""The endpoint of this process: prepared before the first reconcile, since pods name it, and served by the leader."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import own_namespace
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import PATH, Endpoint

from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.serving.http_server import HttpServer
from dljob_operator.engine.serving.progress import certificate, endpoint
from dljob_operator.engine.serving.progress.certificate import ServerKey
from dljob_operator.engine.serving.progress.endpoint import Jobs
from dljob_operator.engine.serving.progress.identity import Identities
from dljob_operator.engine.serving.progress.leader_label import set_label

_SERVICE, _PORT = "dljob-operator-progress", 8444
_REVIEW_TIMEOUT = 2.0  # seconds for the API server to say whose a token is: a program waits in its step for the answer


class _Loaded:
    """A certificate that does not change."""

    def __init__(self, key: ServerKey) -> None:
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory(prefix="dljob-operator-progress-") as folder:
            self._context.load_cert_chain(*key.write(Path(folder)))

    def context(self) -> ssl.SSLContext:
        return self._context


def _secret_name(host: str) -> str:
    """That of the Service; for a host that is none of the cluster the usual one."""
    return host.partition(".")[0] if host.endswith(".svc") or ".svc." in host else _SERVICE


class ProgressService:
    """The endpoint at `address`, which pods reach at `url` ("" for the Service of the own namespace).

    Without a namespace of its own, as outside a cluster, its key lives as long as the process. Raises ValueError where
    then no `url` is given or the address is none, and ApiError or ApiConnectionError where it cannot keep its key.
    """

    def __init__(self, api: KubeApi, environ: Mapping[str, str], url: str, address: str) -> None:
        namespace, self._address = own_namespace(environ), endpoint.address_of(address)
        if not (url or namespace):
            raise ValueError("--progress needs --progress-url outside a cluster: write https://HOST:8444")
        self._url = url or f"https://{_SERVICE}.{namespace}.svc:{_PORT}"
        host = str(urlsplit(self._url).hostname)
        if namespace:
            self._key = certificate.kept(api, namespace, _secret_name(host), host)
        else:
            self._key = certificate.create(host)
        self._api, self._environ = api, environ
        self._server: HttpServer | None = None
        set_label(api, environ, serves=False)  # of a leader that has ended in this pod

    def endpoint(self, ranks: str) -> Endpoint:
        """What pods must know. `ranks` are those of jobs that do not say."""
        return Endpoint(self._url + PATH, self._key.authority, ranks)

    @property
    def port(self) -> int:
        """Of the server, which must have been started."""
        assert self._server is not None
        return self._server.port

    def start(self, jobs: Jobs) -> None:
        """Take reports from now on."""
        identities = Identities(self._api.with_timeout(_REVIEW_TIMEOUT))
        self._server = endpoint.serve(identities, jobs, self._address, _Loaded(self._key))
        set_label(self._api, self._environ, serves=True)

    @property
    def serves(self) -> bool:
        return self._server is not None

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
