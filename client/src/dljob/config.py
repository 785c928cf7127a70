"""The kubeconfig, or a pod's service account: where the API server is, and as whom to speak to it."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dljob.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """How a request says who sends it."""

    token: str = field(default="", repr=False)
    basic: str = field(default="", repr=False)
    """``user:password``."""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """A cluster and a user."""

    server: str
    namespace: str = "default"
    context: str = ""
    ca: bytes = b""
    """PEM; empty: the system's certificates."""
    tls_server_name: str = ""
    insecure: bool = False
    proxy: str = ""
    """An address, also of a SOCKS5 proxy, for every server; "" for what the environment says (HTTPS_PROXY, NO_PROXY),
    never for loopback."""
    headers: tuple[str, ...] = ()
    """Of impersonation."""
    credentials: Callable[[], Credentials] = field(default=Credentials, repr=False)
    """Gives the current ones; may run a program, and raises ConfigError."""


def load(path: str | None = None, context: str | None = None, environ: Mapping[str, str] = os.environ) -> Config:
    """The configuration as kubectl finds it: ``path``, KUBECONFIG, ~/.kube/config, or the pod's service account.

    ``context`` is the kubeconfig's current one by default. Raises ConfigError.
    """
    given = path or environ.get("KUBECONFIG") or ""
    files = _files(given)
    if path and not files[0].is_file():
        raise ConfigError(f"The kubeconfig {path} does not exist.")
    found = _merged([file for file in files if file.is_file()])
    if not found["contexts"] and not context:
        if environ.get("KUBERNETES_SERVICE_HOST") and not given:
            return in_cluster(environ)
        if not found["clusters"]:
            names = ", ".join(map(str, files))
            raise ConfigError(f"There is no kubeconfig at {names}: set KUBECONFIG, or pass --kubeconfig.")
    return _of_context(found, context or found["current-context"], environ)


def contexts(path: str | None = None, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names of the contexts, sorted. Raises ConfigError."""
    files = _files(path or environ.get("KUBECONFIG") or "")
    return sorted(_merged([file for file in files if file.is_file()])["contexts"])


def _files(given: str) -> list[Path]:
    return [Path(one).expanduser() for one in given.split(os.pathsep) if one] or [Path.home() / ".kube" / "config"]


def in_cluster(environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Config:
    """The configuration of a pod's service account, whose token is read anew for each request."""
    namespace = folder / "namespace"
    return Config(
        server=_server(environ),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=_file(folder / "ca.crt"),
        credentials=lambda: Credentials(token=_file(folder / "token").decode().strip()),
    )


def of_token(token: str, ca: Path, environ: Mapping[str, str] = os.environ) -> Config:
    """The configuration of another user in a pod, with the certificates of the file ``ca``. Raises ConfigError."""
    if not token:
        raise ConfigError("There is no token.")  # the API server would take the request as anonymous
    if not environ.get("KUBERNETES_SERVICE_HOST"):
        raise ConfigError("This is no pod of a cluster: KUBERNETES_SERVICE_HOST is not set.")
    return Config(server=_server(environ), ca=_file(ca), credentials=lambda: Credentials(token=token))


def _server(environ: Mapping[str, str]) -> str:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def _merged(files: list[Path]) -> dict[str, Any]:
    """The files as one: the first that has a name, or a current context, decides."""
    import yaml  # here: a program without a kubeconfig need not load it

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    merged: dict[str, Any] = {"current-context": "", **{section: {} for section in _SECTIONS}}
    for file in files:
        try:
            content = yaml.load(file.read_text(encoding="utf-8"), loader)
        except (OSError, ValueError, yaml.YAMLError) as e:
            raise ConfigError(f"The kubeconfig {file} cannot be read: {' '.join(str(e).split())}") from None
        if not isinstance(content, Mapping):
            if content is None:
                continue
            raise ConfigError(f"The kubeconfig {file} is no YAML mapping.")
        merged["current-context"] = merged["current-context"] or str(content.get("current-context") or "")
        for section, key in _SECTIONS.items():
            for entry in content.get(section) or ():
                if isinstance(entry, Mapping) and isinstance(entry.get(key) or {}, Mapping):
                    merged[section].setdefault(str(entry.get("name")), {**(entry.get(key) or {}), "": file.parent})
    return merged


def _of_context(found: Mapping[str, Any], name: str, environ: Mapping[str, str]) -> Config:
    if not name:
        raise ConfigError("The kubeconfig has no current context: pass --context, or run kubectl config use-context.")
    if name not in found["contexts"]:
        known = ", ".join(sorted(found["contexts"])) or "none"
        raise ConfigError(f"The kubeconfig has no context {name!r}; it has {known}.")
    context = found["contexts"][name]
    cluster = found["clusters"].get(str(context.get("cluster")))
    if cluster is None or not cluster.get("server"):
        raise ConfigError(f"The context {name!r} names the cluster {context.get('cluster')!r}, which has no server.")
    user = found["users"].get(str(context.get("user")), {"": Path()})
    server = str(cluster["server"]).rstrip("/")
    return Config(
        server=server if "://" in server else f"https://{server}",
        namespace=str(context.get("namespace") or "default"),
        context=name,
        ca=_data(cluster, "certificate-authority"),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        proxy=str(cluster.get("proxy-url") or ""),
        headers=tuple(_impersonation(user)),
        credentials=_credentials(user, cluster, environ),
    )


def _impersonation(user: Mapping[str, Any]) -> list[str]:
    groups = user.get("as-groups") or ()
    lines = [("Impersonate-User", user.get("as")), *(("Impersonate-Group", group) for group in groups)]
    return [f"{name}: {value}" for name, value in lines if value]


def _credentials(
    user: Mapping[str, Any], cluster: Mapping[str, Any], environ: Mapping[str, str]
) -> Callable[[], Credentials]:
    if user.get("auth-provider"):
        name = user["auth-provider"].get("name") if isinstance(user["auth-provider"], Mapping) else ""
        raise ConfigError(f"The kubeconfig's auth-provider {name!r} is obsolete: use an exec plugin, as kubectl does.")
    basic = f"{user['username']}:{user.get('password') or ''}" if user.get("username") else ""
    fixed = Credentials(
        token=str(user.get("token") or ""),
        basic=basic,
        certificate=_data(user, "client-certificate"),
        key=_data(user, "client-key"),
    )
    if user.get("exec") is not None:
        return ExecPlugin(user["exec"], user[""], cluster, environ, fixed)
    if user.get("tokenFile"):
        path = user[""] / str(user["tokenFile"])
        return lambda: replace(fixed, token=_file(path).decode().strip())
    return lambda: fixed


class ExecPlugin:
    """Runs the kubeconfig's program when its credentials are needed, and again when they have expired."""

    def __init__(
        self, spec: Any, folder: Path, cluster: Mapping[str, Any], environ: Mapping[str, str], fixed: Credentials
    ) -> None:
        if not isinstance(spec, Mapping) or not spec.get("command"):
            raise ConfigError("The kubeconfig's exec plugin has no command.")
        self._spec = spec
        command = str(spec["command"])
        # as kubectl: a path with a folder is one beside the kubeconfig, a bare name is one of PATH
        self._command = str(folder / command) if os.sep in command else command
        self._cluster = cluster
        self._environ = environ
        self._fixed = fixed
        self._current: Credentials | None = None

    def __call__(self) -> Credentials:
        expires = self._current.expires if self._current else None
        if self._current is None or (expires is not None and expires <= datetime.now(UTC)):
            self._current = self._run()
        return self._current

    def forget(self) -> None:
        """Run the program again for the next request: the API server does not take these credentials."""
        self._current = None

    def _run(self) -> Credentials:
        version = str(self._spec.get("apiVersion") or "client.authentication.k8s.io/v1")
        interactive = self._spec.get("interactiveMode") != "Never" and os.isatty(0)
        info: dict[str, Any] = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
        if self._spec.get("provideClusterInfo"):
            info["spec"]["cluster"] = {
                "server": self._cluster["server"],
                "certificate-authority-data": base64.b64encode(_data(self._cluster, "certificate-authority")).decode(),
            }
        variables = {str(one.get("name")): str(one.get("value")) for one in self._spec.get("env") or ()}
        import subprocess  # here: most kubeconfigs have no plugin

        command = [self._command, *(str(one) for one in self._spec.get("args") or ())]
        try:
            done = subprocess.run(
                command,
                env={**self._environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                check=False,
            )
        except OSError as e:
            hint = str(self._spec.get("installHint") or "").strip()
            raise ConfigError(
                f"The kubeconfig's exec plugin {self._command} cannot start: {e.strerror}. {hint}".strip()
            ) from None
        if done.returncode:
            raise ConfigError(
                f"The kubeconfig's exec plugin {self._command} ended with {done.returncode}: log in again."
            )
        try:
            status = json.loads(done.stdout)["status"]
            expires = status.get("expirationTimestamp")
            return replace(
                self._fixed,
                token=str(status.get("token") or ""),
                certificate=str(status.get("clientCertificateData") or "").encode() or self._fixed.certificate,
                key=str(status.get("clientKeyData") or "").encode() or self._fixed.key,
                expires=datetime.fromisoformat(expires) if expires else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"The kubeconfig's exec plugin {self._command} printed no ExecCredential.") from None


def _data(entry: Mapping[str, Any], name: str) -> bytes:
    """The text in ``<name>-data``, or else of the file ``<name>``, which is relative to the kubeconfig."""
    inline = entry.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(str(inline), validate=True)
        except binascii.Error:
            raise ConfigError(f"The kubeconfig's {name}-data is no base64.") from None
    return _file(entry[""] / str(entry[name])) if entry.get(name) else b""


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise ConfigError(f"{path}, which the configuration names, cannot be read: {e.strerror}.") from None
