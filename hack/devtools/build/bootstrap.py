"""Installs requirements-dev.txt, engine and client into .venv; uses only the standard library: nothing else is there.

uv installs them: 130 packages, byte-compiled, took it 17 s of processor time where pip took 39 s, and its cache has
them unpacked, so that the next checkout needs no network. Where uv is not available, pip installs the same.

Why not ``uv sync``: its lock has 2,944 lines, with 1,363 addresses of files at the public index. A machine that reaches
packages only through a mirror would have to lock anew, while the 33 pins of the requirements name no address. uv does
not read pip's settings either: they are translated here, so that such a machine needs them once.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from devtools.paths import ROOT
from devtools.testbed.base.settings import cache_dir_from

REQUIREMENTS = ROOT / "requirements-dev.txt"
PIP = (sys.executable, "-m", "pip")
STEPS = (
    ("-r", str(REQUIREMENTS)),
    ("--no-deps", "--no-build-isolation", "--editable", str(ROOT), "--editable", str(ROOT / "client")),
)
"""The arguments of ``pip install``, which both programs take. The second step needs the first one's build backend."""
SECTIONS = ("global", "install", ":env:")
"""The sections of pip's configuration that count for ``pip install``; a later one overrides an earlier one."""
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
WITHOUT_EFFECT = frozenset({
    "break-system-packages", "cache-dir", "compile", "disable-pip-version-check", "format", "keyring-provider",
    "no-cache-dir", "no-color", "no-input", "no-python-version-warning", "no-warn-script-location", "prefer-binary",
    "progress-bar", "quiet", "require-virtualenv", "retries", "root-user-action", "use-feature", "verbose",
})  # fmt: skip
"""Settings that do not change which files are installed, or from where."""


class NoUv(Exception):
    """uv cannot be used; the message is the reason."""


def pinned(requirements: str) -> str:
    """uv's version in the text of requirements-dev.txt."""
    match = re.search(r"^uv==(\S+)", requirements, re.MULTILINE)
    if match is None:
        raise NoUv("requirements-dev.txt has no line uv==<version>")
    return match[1]


def settings(listing: str) -> dict[str, str]:
    """The settings that count for ``pip install``, from the output of ``pip config list``; pip ignores empty ones."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found:
            found[section][name.replace("_", "-")] = str(ast.literal_eval(value))
    merged = {name: value for section in SECTIONS for name, value in found[section].items()}
    return {name: value for name, value in merged.items() if value.strip()}


def variables(found: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for pip's settings; one that ``environ`` already has keeps its value.

    Raises NoUv for a setting that has no counterpart and may change what is installed.
    """
    translated: dict[str, str] = {}
    for name, value in found.items():
        if name in WITHOUT_EFFECT:
            continue
        if name not in VARIABLES:
            raise NoUv(f"pip's setting {name} has no counterpart in uv")
        translated[VARIABLES[name]] = ("," if name == "find-links" else " ").join(value.split())
    if "UV_INDEX" in translated:  # pip takes the best version of all indexes, uv by default that of the first one
        translated["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in translated.items() if not environ.get(name)}


def program(cache: Path, version: str) -> Path:
    """uv, installed with pip into the cache unless it is there: each new environment needs it first of all."""
    folder = cache / "uv" / version
    if not (folder / "bin" / "uv").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / version
            done = _quiet([*PIP, "install", "--quiet", "--no-deps", "--target", str(made), f"uv=={version}"])
            if done.returncode:
                said = done.stderr.strip().splitlines() or ["no output"]
                raise NoUv(f"pip cannot install uv=={version}: {said[-1]}")
            if not (folder / "bin" / "uv").is_file():  # another checkout may have installed it meanwhile
                made.rename(folder)
    return folder / "bin" / "uv"


def with_uv(uv: Path, environ: Mapping[str, str]) -> None:
    """Install with uv, from its cache alone if that has everything: otherwise uv asks the index for changes."""
    command = [str(uv), "pip", "install", "--quiet", "--python", sys.executable, "--compile-bytecode"]
    for step in STEPS:
        if _quiet([*command, "--offline", *step], environ).returncode == 0:
            continue
        if subprocess.run([*command, *step], env=dict(environ), check=False).returncode:
            raise NoUv("uv failed, see above")


def main(environ: Mapping[str, str] = os.environ) -> int:
    try:
        uv = program(cache_dir_from(environ), pinned(REQUIREMENTS.read_text(encoding="utf-8")))
        of_pip = settings(_quiet([*PIP, "config", "list"]).stdout)
        with_uv(uv, {**environ, **variables(of_pip, environ)})
    except NoUv as reason:
        print(f"    {reason}: pip installs the packages, which takes longer", file=sys.stderr)
        for step in STEPS:
            done = subprocess.run([*PIP, "install", "--quiet", *step], check=False)
            if done.returncode:
                return done.returncode
    return 0


def _quiet(command: Sequence[str], environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = None if environ is None else dict(environ)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
