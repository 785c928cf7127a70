"""The archive of `kubectl dljob` for krew, and its manifest with the archive's SHA-256 sum.

The archive has the package and a launcher. What the package requires is compiled for one Python each, so the launcher
asks for it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

from devtools.build.collection.wheel import requires
from devtools.paths import ROOT

MANIFEST = ROOT / "client" / "krew.yaml"
ARCHIVE = "dljob-krew.tar.gz"
LAUNCHER = "kubectl-dljob"
_MODULES = {"pycurl": "pycurl", "pyyaml": "yaml"}
"""What each requirement is imported as, by its name in lower case."""
_LAUNCHER = '''\
#!/usr/bin/env python3
"""Starts the package beside this file; DLJOB_PYTHON may name the Python for it."""
import os
import sys

wanted = os.environ.pop("DLJOB_PYTHON", "")
if wanted:
    try:
        os.execvp(wanted, [wanted, os.path.realpath(__file__)] + sys.argv[1:])
    except OSError as e:
        sys.exit("error: DLJOB_PYTHON: " + wanted + ": " + str(e))
if sys.version_info < (3, 11):
    sys.exit("error: kubectl dljob needs Python 3.11 or newer, not " + sys.executable + ": set DLJOB_PYTHON to one")
from importlib.util import find_spec

if not all(find_spec(name) for name in {modules}):
    sys.exit("error: kubectl dljob needs more of Python: " + sys.executable + " -m pip install {requirements}")
from dljob.cli import main

sys.exit(main())
'''


def build(wheel: Path, into: Path) -> tuple[Path, Path]:
    """Write the archive and the manifest for the client's ``wheel`` into ``into``, and return their paths.

    The same wheel gives the same archive. Raises KeyError for a requirement whose module is unknown.
    """
    files = {LAUNCHER: launcher(requires(wheel)).encode(), "LICENSE": (ROOT / "LICENSE").read_bytes()}
    with zipfile.ZipFile(wheel) as packed:
        files |= {name: packed.read(name) for name in packed.namelist() if name.startswith("dljob/")}
    content = gzip.compress(_tar(files), mtime=0)
    archive, manifest = into / ARCHIVE, into / MANIFEST.name
    archive.write_bytes(content)
    text = with_sum(MANIFEST.read_text(encoding="utf-8"), hashlib.sha256(content).hexdigest())
    manifest.write_text(text, encoding="utf-8")
    return archive, manifest


def launcher(requirements: list[str]) -> str:
    """The program that krew links to, in words that older Pythons understand."""
    names = tuple(_MODULES[re.split(r"\W", one.lower(), maxsplit=1)[0]] for one in requirements)
    return _LAUNCHER.format(modules=names, requirements=" ".join(f"'{one}'" for one in requirements))


def with_sum(manifest: str, sha256: str) -> str:
    """The manifest with the sum beside each address."""
    return re.sub(r"(?m)^( +)uri: .*$", rf"\g<0>\n\g<1>sha256: {sha256}", manifest)


def _tar(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files.items()):
            one = tarfile.TarInfo(name)
            one.size, one.mode = len(content), 0o755 if name == LAUNCHER else 0o644
            tar.addfile(one, io.BytesIO(content))
    return written.getvalue()
