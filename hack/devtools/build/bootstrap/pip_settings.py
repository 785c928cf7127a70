"""Translates pip's settings to uv's environment variables. No I/O.

uv does not read pip's configuration, so without this a machine that reaches packages only through a mirror, or only
with a certificate of its own, would need its settings a second time.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

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
SEPARATORS = {"UV_FIND_LINKS": ","}
"""Where it is not a space, as it is in pip's lists."""
WITHOUT_EFFECT = frozenset({
    "break-system-packages", "cache-dir", "compile", "disable-pip-version-check", "format", "keyring-provider",
    "no-cache-dir", "no-color", "no-input", "no-python-version-warning", "no-warn-script-location", "prefer-binary",
    "progress-bar", "quiet", "require-virtualenv", "retries", "root-user-action", "use-feature", "verbose",
})  # fmt: skip
"""Settings that do not change which files are installed, or from where."""


class Untranslatable(Exception):
    """A setting of pip has no counterpart; the message names it."""


def read(listing: str) -> dict[str, str]:
    """The settings that count for ``pip install``, from the output of ``pip config list``; pip ignores empty ones."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found:
            found[section][name.replace("_", "-")] = str(ast.literal_eval(value))
    merged = {name: value for section in SECTIONS for name, value in found[section].items()}
    return {name: value for name, value in merged.items() if value.strip()}


def variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for pip's ``settings``; one that ``environ`` already has keeps its value.

    Raises Untranslatable for a setting that has no counterpart and may change what is installed.
    """
    translated: dict[str, str] = {}
    for name, value in settings.items():
        if name in WITHOUT_EFFECT:
            continue
        if name not in VARIABLES:
            raise Untranslatable(f"pip's setting {name} has no counterpart in uv")
        variable = VARIABLES[name]
        translated[variable] = SEPARATORS.get(variable, " ").join(value.split())
    if "UV_INDEX" in translated:  # pip takes the best version of all indexes, uv by default that of the first one
        translated["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in translated.items() if not environ.get(name)}
