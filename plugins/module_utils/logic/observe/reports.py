"""Reads when the programs of a job have reported, as an engine hands it over (:mod:`....shared.progress`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import HEARD
from ansible_collections.dljob.operator.plugins.module_utils.values.reports import LastReport, Reports


def read(reported: Mapping[str, Any]) -> Reports | None:
    """The reports, ``None`` where no engine takes any."""
    heard = reported.get(HEARD)
    if not heard:
        return None
    oldest = tuple(LastReport(replica, age, text) for replica, age, text in heard["oldest"])
    return Reports(heard["listening"], heard["age"], oldest, heard["replicas"])
