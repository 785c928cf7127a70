"""``ansible-test sanity`` on the tarball's content.

It requires a git work tree at ``.../ansible_collections/<namespace>/<name>``, which may not be a link.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devtools.build.collection import tarball
from devtools.build.collection.environment import environ
from devtools.paths import ROOT

LOCAL = (
    "action-plugin-docs",
    "ansible-doc",
    "empty-init",
    "ignores",
    "line-endings",
    "no-assert",
    "no-get-exception",
    "no-illegal-filenames",
    "no-smart-quotes",
    "replace-urlopen",
    "runtime-metadata",
    "shebang",
    "symlinks",
    "use-argspec-type-path",
    "use-compat-six",
    "validate-modules",
)
"""All sanity tests for collections except compile, import, pep8, pylint and yamllint, which ruff, mypy, yamllint and
the unit tests replace."""
PIP_VERSIONS = ("25_2", "24_2", "24_1")
"""Of ansible-test 2.20 and 2.21, of 2.19, and of 2.18."""


def work_tree(into: Path) -> Path:
    """Unpack the tarball's content and the sanity settings into a git work tree with the required path."""
    here = tarball.install(tarball.build(into), into)
    (here / "tests").mkdir(parents=True)
    shutil.copytree(ROOT / "tests" / "sanity", here / "tests" / "sanity")
    shutil.copy(ROOT / "tests" / "config.yml", here / "tests")
    # written by the installation, not part of a checkout
    for name in ("MANIFEST.json", "FILES.json"):
        (here / name).unlink()
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=here, check=True)
    return here


_BOOTSTRAP = """\
# Replaces the script that ansible-test would download: it uses Python's bundled pip to install the required version.
import subprocess, sys
subprocess.run([sys.executable, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)
wanted = [argument for argument in sys.argv[1:] if argument not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted]).returncode)
"""


def home(cache: Path) -> Path:
    """A HOME folder in which ansible-test keeps its environments; the bootstrap script in it needs only PyPI."""
    folder = cache / "ansible-test"
    for version in PIP_VERSIONS:
        script = folder / ".ansible" / "test" / "cache" / f"get_pip_{version}.py"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(_BOOTSTRAP, encoding="utf-8")
    return folder


def run(cache: Path, tests: Sequence[str] = (), bin_dir: Path | None = None) -> int:
    """Run ``tests`` (default: all of LOCAL); the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        here = work_tree(Path(scratch))
        chosen = [part for test in tests or LOCAL for part in ("--test", test)]
        # ansible-test is a script next to this Python
        command = ["ansible-test", "sanity", "--local", "--color", "no", "--python", "default", *chosen]
        env = environ(*([bin_dir] if bin_dir else []), HOME=str(home(cache)), LC_ALL="C.UTF-8")
        return subprocess.run(command, cwd=here, env=env, stdout=sys.stdout, check=False).returncode
