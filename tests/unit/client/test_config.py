"""Kubeconfigs, exec plugins, a pod's service account, and a cluster that does not answer as it should."""

from __future__ import annotations

import base64
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from dljob import api, config, errors
from support.certificates import write_certificate
from support.scripted_server import Exchange, scripted

from .conftest import Cluster, kubeconfig

SERVER = "https://api.example:6443"


def write(folder: Path, content: Any, name: str = "kubeconfig") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_a_kubeconfig_with_inline_certificates(tmp_path: Path) -> None:
    def data(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    user = {"client-certificate-data": data("cert"), "client-key-data": data("key"), "as": "bob", "as-groups": ["g"]}
    cluster = {"certificate-authority-data": data("ca"), "proxy-url": "socks5://p:1", "tls-server-name": "kube"}
    loaded = config.load(write(tmp_path, kubeconfig(SERVER + "/", user, **cluster)), environ={})
    who = loaded.credentials()
    assert (loaded.server, loaded.namespace, loaded.ca) == (SERVER, "team", b"ca")
    assert (loaded.proxy, loaded.tls_server_name, loaded.insecure) == ("socks5://p:1", "kube", False)
    assert loaded.headers == ("Impersonate-User: bob", "Impersonate-Group: g")
    assert (who.certificate, who.key, who.token) == (b"cert", b"key", "")
    assert "key" not in repr(who).replace("key=", ""), "no secrets in messages"


def test_files_are_relative_to_the_kubeconfig_and_a_token_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.pem").write_text("ca")
    loaded = config.load(
        write(tmp_path, kubeconfig(SERVER, {"tokenFile": "token"}, **{"certificate-authority": "ca.pem"}))
    )
    assert (loaded.ca, loaded.credentials().token) == (b"ca", "one")
    (tmp_path / "token").write_text("two")
    assert loaded.credentials().token == "two"


def test_the_first_of_several_files_decides(tmp_path: Path) -> None:
    first = write(tmp_path, {"current-context": "here", "users": [{"name": "u", "user": {"token": "first"}}]}, "a")
    second = write(tmp_path, kubeconfig(SERVER), "b")
    loaded = config.load(environ={"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"})
    assert (loaded.server, loaded.credentials().token) == (SERVER, "first")
    assert config.contexts(environ={"KUBECONFIG": f"{first}:{second}"}) == ["here"]


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in {"token": "t", "ca.crt": "ca", "namespace": "mine"}.items():
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    loaded = config.in_cluster(environ, tmp_path)
    assert (loaded.server, loaded.namespace, loaded.ca) == ("https://[fd00::1]:443", "mine", b"ca")
    assert loaded.credentials().token == "t"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "is no YAML mapping"),
        ({}, "There is no kubeconfig"),
        ({**kubeconfig(SERVER), "current-context": ""}, "no current context"),
        ({**kubeconfig(SERVER), "current-context": "x"}, "no context 'x'; it has here"),
        ({**kubeconfig(SERVER), "clusters": []}, "names the cluster 'c', which has no server"),
        (kubeconfig(SERVER, {"auth-provider": {"name": "gcp"}}), "auth-provider 'gcp' is obsolete"),
        (kubeconfig(SERVER, {"exec": {}}), "has no command"),
        (kubeconfig(SERVER, **{"certificate-authority": "missing.pem"}), r"missing\.pem, which .* cannot be read"),
        (kubeconfig(SERVER, **{"certificate-authority-data": "?"}), "is no base64"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        config.load(write(tmp_path, content), environ={})


def test_a_kubeconfig_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="does not exist"):
        config.load(str(tmp_path / "none"))


# --- exec plugins


def plugin(folder: Path, body: str, **spec: Any) -> dict[str, Any]:
    """A user with a plugin that counts its runs in the file ``runs``."""
    program = folder / "plugin"
    count = f"import json, os, pathlib, sys\nruns = pathlib.Path({str(folder / 'runs')!r})\n"
    count += "number = len(runs.read_text()) + 1 if runs.exists() else 1\nruns.write_text('x' * number)\n"
    program.write_text(f"#!{sys.executable}\n{count}{body}\n")
    program.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", **spec}}


PRINTS = "print(json.dumps({'status': {'token': f'token-{number}', 'expirationTimestamp': '2100-01-01T00:00:00Z'}}))"


def test_an_exec_plugin_runs_once_and_gets_its_arguments(tmp_path: Path) -> None:
    body = "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
    body += "told = '-'.join([sys.argv[1], os.environ['MORE'], info['spec']['cluster']['server']])\n"
    body += "print(json.dumps({'status': {'token': told}}))"
    user = plugin(tmp_path, body, args=["a"], env=[{"name": "MORE", "value": "b"}], provideClusterInfo=True)
    loaded = config.load(write(tmp_path, kubeconfig(SERVER, user)))
    assert [loaded.credentials().token, loaded.credentials().token] == [f"a-b-{SERVER}"] * 2
    assert (tmp_path / "runs").read_text() == "x"


def test_an_expired_credential_is_renewed(tmp_path: Path) -> None:
    user = plugin(tmp_path, PRINTS.replace("2100", "2000"))
    loaded = config.load(write(tmp_path, kubeconfig(SERVER, user)))
    assert [loaded.credentials().token, loaded.credentials().token] == ["token-1", "token-2"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(3)", "ended with 3: log in again"),
        ("print('hello')", "no ExecCredential"),
        ("print('{}')", "no ExecCred"),
    ],
)
def test_an_exec_plugin_that_fails(tmp_path: Path, body: str, message: str) -> None:
    loaded = config.load(write(tmp_path, kubeconfig(SERVER, plugin(tmp_path, body))))
    with pytest.raises(errors.ConfigError, match=message):
        loaded.credentials()


def test_an_exec_plugin_that_is_not_installed(tmp_path: Path) -> None:
    user = {"exec": {"command": "no-such-program", "installHint": "Install it so."}}
    with pytest.raises(errors.ConfigError, match=r"cannot start.*Install it so\."):
        config.load(write(tmp_path, kubeconfig(SERVER, user))).credentials()


def test_the_plugin_runs_again_where_the_server_refuses_its_token(cluster: Cluster, tmp_path: Path) -> None:
    answer = cluster.respond

    def respond(exchange: Exchange) -> None:
        if exchange.token == "Bearer token-1":
            exchange.answer({"reason": "Unauthorized"}, 401)
        else:
            answer(exchange)

    with scripted(respond) as server:
        client = api.Api(config.load(write(tmp_path, kubeconfig(server.url, plugin(tmp_path, PRINTS)), "with-plugin")))
        client.get("/apis/kubeflow.org/v1/namespaces/team/tfjobs")
        assert [exchange.token for exchange in server.requests] == ["Bearer token-1", "Bearer token-2"]


# --- the connection


def test_an_expired_token_is_one_sentence(cluster: Cluster) -> None:
    cluster.status = 401
    with pytest.raises(errors.ApiError, match=r"does not accept your credentials.*Log in again"):
        cluster.client().list()


def test_a_server_that_asks_for_time_gets_it() -> None:
    def respond(exchange: Exchange) -> None:
        is_first = len(server.requests) == 1
        exchange.answer({"message": "later"} if is_first else {"fine": True}, 429 if is_first else 200)

    with scripted(respond) as server:
        assert api.Api(config.Config(server.url)).get("/x") == {"fine": True}


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(errors.ConnectionFailed, match=r"The cluster at http://127\.0\.0\.1:1 does not answer"):
        api.Api(config.Config("http://127.0.0.1:1")).get("/x")


def test_an_answer_that_is_no_json() -> None:
    with (
        scripted(lambda exchange: exchange.answer(b"<html>")) as server,
        pytest.raises(errors.ApiError, match="something else than JSON"),
    ):
        api.Api(config.Config(server.url)).get("/x")


def test_a_proxy_that_does_not_answer() -> None:
    with pytest.raises(errors.ConnectionFailed):
        api.Api(config.Config("http://api.example", proxy="http://127.0.0.1:1")).get("/x")


def test_the_proxy_of_the_kubeconfig_gets_the_request() -> None:
    with scripted(lambda exchange: exchange.answer({"by": exchange.handler.path})) as proxy:
        found = api.Api(config.Config("http://api.example", proxy=proxy.url)).get("/x")
    assert found == {"by": "http://api.example/x"}


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that asks for a client certificate, its certificate for the name kube.example, and its key."""
    certificate, key = write_certificate(tmp_path_factory.mktemp("tls"), ["DNS:kube.example"])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            peer = self.connection.getpeercert()  # type: ignore[attr-defined]
            body = json.dumps({"host": self.headers["Host"], "client": bool(peer)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}", certificate.read_bytes(), key.read_bytes()
        server.shutdown()


def test_the_certificate_has_to_be_that_of_the_kubeconfig(tls: Any, tmp_path: Path) -> None:
    url, ca, _ = tls
    for known in ({}, {"ca": ca}):  # the system's certificates; the right one, with another name
        with pytest.raises(errors.ConnectionFailed, match="The certificate of"):
            api.Api(config.Config(url, **known)).get("/x")
    other, _ = write_certificate(tmp_path)
    with pytest.raises(errors.ConnectionFailed, match="The certificate of"):
        api.Api(config.Config(url, ca=other.read_bytes(), tls_server_name="kube.example")).get("/x")
    assert api.Api(config.Config(url, insecure=True)).get("/x")["client"] is False


def test_a_server_name_and_a_client_certificate_need_no_files(tls: Any) -> None:
    url, ca, key = tls
    who = config.Credentials(certificate=ca, key=key)
    found = api.Api(config.Config(url, ca=ca, tls_server_name="kube.example", credentials=lambda: who)).get("/x")
    assert found == {"host": url.removeprefix("https://"), "client": True}
    with pytest.raises(errors.DljobError, match="private key"):
        bad = config.Credentials(certificate=ca, key=b"no key")
        api.Api(config.Config(url, ca=ca, credentials=lambda: bad)).get("/x")
