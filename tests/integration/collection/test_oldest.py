"""The unit tests with the oldest supported versions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from devtools.build.collection import oldest
from devtools.testbed.base.settings import cache_dir_from


@pytest.fixture(scope="module")
def oldest_bin() -> Path:
    return oldest.environment(cache_dir_from(os.environ))


def test_units_with_the_oldest_versions(oldest_bin: Path) -> None:
    """ansible-core 2.18 and kubernetes 33.1, the versions of ansible-operator's image."""
    versions = subprocess.run(
        [
            str(oldest_bin / "python"),
            "-c",
            "import ansible.release as a, kubernetes as k; print(a.__version__, k.__version__)",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert versions == ["2.18.18", "33.1.0"]
    assert oldest.unit_tests(oldest_bin) == 0
