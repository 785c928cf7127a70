"""The browser of the tests has its own libraries and fonts, and axe-core is the one that is pinned."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.base import shell
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import browser, packages

SCRIPT = b"axe"


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages with the least that is needed."""

    def unpack(cache: Path, label: str, names: Sequence[str], *, with_dependencies: bool) -> Path:
        tree = cache / label
        if label == "browser":
            for folder in ("usr/lib/chromium", "usr/lib/x86_64-linux-gnu/pulseaudio"):
                (tree / folder).mkdir(parents=True)
            (tree / "usr/lib/chromium" / browser.SHELL).touch()
        return tree

    def run(command: Sequence[str | Path], **_: Any) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir()
        with zipfile.ZipFile(folder / "axe.whl", "w") as wheel:
            wheel.writestr(browser.AXE_FILE, SCRIPT)
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setattr(packages, "unpack", unpack)
    monkeypatch.setattr(shell, "run", run)


def test_what_a_test_gets(offered: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    monkeypatch.setattr(browser, "AXE_SHA256", hashlib.sha256(SCRIPT).hexdigest())
    found = browser.browser(tmp_path)
    assert found.program.is_file() and found.axe.read_bytes() == SCRIPT
    assert found.environ["LD_LIBRARY_PATH"].endswith(
        ":" + str(tmp_path / "browser/usr/lib/x86_64-linux-gnu/pulseaudio")
    )
    assert str(tmp_path / "fonts/usr/share/fonts") in Path(found.environ["FONTCONFIG_FILE"]).read_text()
    assert [path.name for path in (tmp_path / "packages").iterdir() if path.is_dir()] == []


def test_another_axe_is_refused(offered: None, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="not the file that is pinned"):
        browser.browser(tmp_path)
    assert not list((tmp_path / "packages").glob("*.js"))
