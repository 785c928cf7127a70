"""A headless Chromium and axe-core, unpacked into the cache, for the tests of the web page."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from devtools.testbed.base import shell
from devtools.testbed.base.cache import cache_entry, content_key
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import packages

SHELL = "chromium-headless-shell"
"""Chromium without windows: 70 MB less than the whole browser."""
FONTS = "fonts-dejavu-core"
AXE = "axe-playwright-python==0.1.8"
"""axe-core 4.12.1. A package of PyPI, since a machine that runs the tests has pip, and need not have npm."""
AXE_FILE = "axe_playwright_python/axe.min.js"
AXE_SHA256 = "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc"
_FONTS_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>{fonts}</dir><cachedir>{cache}</cachedir>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True)
class Browser:
    """What a test starts, and what it asks about a page."""

    program: Path
    environ: dict[str, str]
    """Its libraries, and its fonts: the same on every machine, so that pictures are alike."""
    axe: Path
    """The script of axe-core."""


def browser(cache: Path) -> Browser:
    """The browser, at first use downloaded with apt-get and pip: 65 MB, and 300 MB unpacked.

    Raises ClusterError where one of them cannot have it.
    """
    tree = packages.unpack(cache, "browser", (SHELL,), with_dependencies=True)
    fonts = packages.unpack(cache, "fonts", (FONTS,), with_dependencies=False)
    program = tree / "usr/lib/chromium" / SHELL
    if not program.is_file():
        raise ClusterError(f"{program}: not found; the browser's package has other files than Debian's")
    text = _FONTS_CONF.format(fonts=fonts / "usr/share/fonts", cache=fonts / "cache")
    conf = cache_entry(cache / "packages" / f"fonts-{content_key(text)}.conf", lambda path: path.write_text(text))
    environ = {**os.environ, **packages.tool_env(tree), "FONTCONFIG_FILE": str(conf)}
    # PulseAudio's library has another one in a folder of its own
    environ["LD_LIBRARY_PATH"] += "".join(f":{path}" for path in sorted((tree / "usr/lib").glob("*/pulseaudio")))
    return Browser(program, environ, cache_entry(cache / "packages" / f"{AXE}.js", _axe))


def _axe(path: Path) -> None:
    folder = path.with_suffix(".wheel")
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
    shell.run([*pip, "--dest", folder, AXE], fix="make PyPI or a mirror reachable for pip")
    (wheel,) = folder.iterdir()
    with zipfile.ZipFile(wheel) as files:
        script = files.read(AXE_FILE)
    wheel.unlink()
    folder.rmdir()
    if hashlib.sha256(script).hexdigest() != AXE_SHA256:
        raise ClusterError(f"{AXE_FILE} of {AXE} is not the file that is pinned")
    path.write_bytes(script)
