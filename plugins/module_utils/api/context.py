"""What every step of a reconcile works with, in one record instead of module globals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.event_sender import EventSender
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangesSince


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Context:
    """Connections, clock and settings of a reconcile."""

    client: RestClient
    reader: Reader
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    dry_run: bool = False
    """The API server checks every object and stores none; no status and no Event is written."""
    is_contended: bool = False
    """When the engine took the job, users waited for others: a large one sends fewer writes at once."""
    changes: ChangesSince | None = None
    """What users have changed since: a large job that is unchanged, or alone, may write for longer. ``None`` where it
    is not known."""
    since_taken: ChangesSince | None = None
    """What users have changed of the jobs themselves since the engine took them: one that waited in its batch may have
    been deleted. ``None`` where it is not known."""
    event_sender: EventSender | None = None
    """Creates Events later; without one each reconcile creates its own before it ends."""
    clock: Callable[[], datetime] = utc_now
