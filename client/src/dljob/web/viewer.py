"""Who looks at a page: every read and every change uses this user's own rights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from starlette.requests import Request
from starlette.types import Scope as AsgiScope

from dljob import kinds
from dljob.client import Client
from dljob.errors import DljobError
from dljob.kinds import Kind
from dljob.view import JobView
from dljob.web.live import LiveJobs

_KEY = "dljob.viewer"


class NoNamespace(DljobError):
    """The viewer may see no jobs there, and has to choose a namespace."""


class Jobs(Protocol):
    """What :class:`LiveJobs` has seen, or a part of it."""

    @property
    def error(self) -> str: ...

    @property
    def version(self) -> str: ...

    def views(self, timeout: float = 0.0) -> Sequence[JobView]: ...

    def version_of(self, namespace: str, resource: str, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Jobs that the viewer may see."""

    live: Jobs
    hidden: str = ""
    """A sentence on kinds that the viewer may not see there."""


class Viewer(Protocol):
    """A user with a page."""

    @property
    def client(self) -> Client: ...

    @property
    def form_key(self) -> str:
        """The value that the forms of this viewer have."""

    @property
    def title(self) -> str:
        """What the head of each page shows: a context, or a user."""

    @property
    def may_leave(self) -> bool:
        """Whether there is a button to log out."""

    @property
    def patience(self) -> float:
        """Seconds to wait for the first list."""

    @property
    def has_left(self) -> bool:
        """Whether streams have to end."""

    def scope(self, namespace: str) -> Scope:
        """The jobs of a namespace, or for "" of all. Raises NoNamespace, ApiError; it may ask the API server."""

    def scope_with(self, namespace: str) -> Scope:
        """The largest scope with this namespace. Raises as :meth:`scope`."""

    def reads_logs(self, namespace: str) -> bool:
        """Whether logs of the namespace may be read on. Raises ApiError; it may ask the API server."""

    def home(self, namespace: str) -> str:
        """The address of an overview with the jobs of this namespace."""


class LocalViewer:
    """The user of a kubeconfig, with a page of its own."""

    may_leave = False
    patience = 0.0

    def __init__(self, client: Client, live: LiveJobs, form_key: str) -> None:
        self.client = client
        self.form_key = form_key
        self._live = live

    @property
    def title(self) -> str:
        return self.client.api.config.context

    @property
    def has_left(self) -> bool:
        return self._live.is_closed

    def scope(self, namespace: str) -> Scope:
        return Scope(_OfNamespace(self._live, namespace) if namespace else self._live)

    def scope_with(self, namespace: str) -> Scope:
        return Scope(self._live)

    def reads_logs(self, namespace: str) -> bool:
        return True

    def home(self, namespace: str) -> str:
        return "/"


class _OfNamespace:
    """The jobs of one namespace, among those of a watch."""

    def __init__(self, live: LiveJobs, namespace: str) -> None:
        self._live = live
        self._namespace = namespace
        self.version_of = live.version_of

    @property
    def error(self) -> str:
        return self._live.error

    @property
    def version(self) -> str:
        return self._live.version

    def views(self, timeout: float = 0.0) -> Sequence[JobView]:
        return [job for job in self._live.views(timeout) if job.namespace == self._namespace]


def hidden_sentence(shown: Sequence[Kind], where: str) -> str:
    """A sentence on the kinds that are not shown; "" if all are."""
    hidden = [kind.resource for kind in kinds.ALL if kind not in shown]
    if not hidden:
        return ""
    return f"Not shown, since you may not list and watch them {where}: {', '.join(hidden)}."


def viewer_of(request: Request) -> Viewer:
    """Whose request it is; a guard has found out."""
    return cast(Viewer, request.scope[_KEY])


def let_in(scope: AsgiScope, viewer: Viewer) -> None:
    """The request is of this viewer."""
    scope[_KEY] = viewer
