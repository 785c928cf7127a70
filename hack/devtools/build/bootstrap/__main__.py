"""``python -m devtools.build.bootstrap``: installs requirements-dev.txt and the engine.

uv installs them: 130 packages, byte-compiled, took it 17 s of processor time where pip took 39 s, and its cache has
them unpacked, so that the next checkout needs no network. Where uv is not available, pip installs the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from devtools.build.bootstrap import pip_settings
from devtools.paths import ROOT
from devtools.testbed.base.settings import cache_dir_from

REQUIREMENTS = ROOT / "requirements-dev.txt"
PIP = (sys.executable, "-m", "pip")
STEPS = (("-r", str(REQUIREMENTS)), ("--no-deps", "--no-build-isolation", "--editable", str(ROOT)))
"""The arguments of ``pip install``, which both programs take. The second step needs the first one's build backend."""


class NoUv(Exception):
    """uv cannot be used; the message is the reason."""


def pinned(requirements: str) -> str:
    """uv's version in the text of requirements-dev.txt."""
    match = re.search(r"^uv==(\S+)", requirements, re.MULTILINE)
    if match is None:
        raise NoUv("requirements-dev.txt has no line uv==<version>")
    return match[1]


def program(cache: Path, version: str) -> Path:
    """uv, installed with pip into the cache unless it is there: each new environment needs it first of all."""
    folder = cache / "uv" / version
    if not (folder / "bin" / "uv").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / version
            done = _quiet([*PIP, "install", "--quiet", "--no-deps", "--target", str(made), f"uv=={version}"])
            if done.returncode:
                raise NoUv(f"pip cannot install uv=={version}: {_last_line(done.stderr)}")
            if not (folder / "bin" / "uv").is_file():  # another checkout may have installed it meanwhile
                made.rename(folder)
    return folder / "bin" / "uv"


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's environment, with pip's index, certificates and proxy."""
    listing = _quiet([*PIP, "config", "list"]).stdout
    try:
        translated = pip_settings.variables(pip_settings.read(listing), environ)
    except pip_settings.Untranslatable as error:
        raise NoUv(str(error)) from error
    return {**environ, **translated}


def with_uv(uv: Path, environ: Mapping[str, str]) -> None:
    """Install with uv, from its cache alone if that has everything: otherwise uv asks the index for changes."""
    command = [str(uv), "pip", "install", "--quiet", "--python", sys.executable, "--compile-bytecode"]
    for step in STEPS:
        if _quiet([*command, "--offline", *step], environ).returncode == 0:
            continue
        if subprocess.run([*command, *step], env=dict(environ), check=False).returncode:
            raise NoUv("uv failed, see above")


def with_pip() -> int:
    for step in STEPS:
        done = subprocess.run([*PIP, "install", "--quiet", *step], check=False)
        if done.returncode:
            return done.returncode
    return 0


def main(environ: Mapping[str, str] = os.environ) -> int:
    try:
        uv = program(cache_dir_from(environ), pinned(REQUIREMENTS.read_text(encoding="utf-8")))
        with_uv(uv, environment(environ))
    except NoUv as reason:
        print(f"    {reason}: pip installs the packages, which takes longer", file=sys.stderr)
        return with_pip()
    return 0


def _quiet(command: Sequence[str], environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = None if environ is None else dict(environ)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


if __name__ == "__main__":
    sys.exit(main())
