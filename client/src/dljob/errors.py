"""What can go wrong, each with one sentence for the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class DljobError(Exception):
    """Any error that the user has to know of; its text is a sentence."""


class ConfigError(DljobError):
    """The kubeconfig cannot be used."""


class ConnectionFailed(DljobError):
    """The cluster does not answer."""


class NotFound(DljobError):
    """There is no such job."""


class Refused(DljobError):
    """The request makes no sense for this job, such as suspending one that has ended."""


class TimedOut(DljobError):
    """What was waited for did not happen in time."""


class NotCreated(DljobError):
    """An ended job was deleted, and could not be created again."""

    def __init__(self, message: str, manifest: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.manifest = manifest
        """Of the job, to create it with."""


class ApiError(DljobError):
    """The API server answered with an error."""

    def __init__(self, status: int, reason: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        """Kubernetes' word, such as Forbidden or AlreadyExists."""
        self.details = details
        """The ``details`` of Kubernetes' Status, for a program."""


def sentence(verb: str, what: str, namespace: str | None, error: ApiError) -> str:
    """That the user may not, or cannot, do this; ``None`` stands for all namespaces."""
    where = f"in the namespace {namespace}" if namespace else "in all namespaces"
    if error.status == 403:
        return f"You may not {verb} {what} {where}."
    return f"{what} {where} cannot be read: {error}"
