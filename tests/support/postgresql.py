"""A PostgreSQL server for a test, which ends with it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import cache_dir_from
from devtools.testbed.offline.postgresql import PostgreSQL, Programs, programs


@contextmanager
def running() -> Iterator[PostgreSQL]:
    """A started server with an empty database; skips the test where its programs cannot be had."""
    try:
        found = programs(cache_dir_from(os.environ))
    except ClusterError as error:
        pytest.skip(f"PostgreSQL cannot be had here: {error}")
    with server(found) as made:
        yield made


@contextmanager
def server(programs: Programs) -> Iterator[PostgreSQL]:
    """A started server with an empty database. Raises ClusterError with what its programs say."""
    # not below pytest's folder, which only its user may enter; and the path of a Unix socket must be short
    with tempfile.TemporaryDirectory(prefix="dljob-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        made = PostgreSQL(programs, Path(folder) / "server")
        try:
            made.create()
            made.start()
            yield made
        finally:
            made.stop()
