"""``ansible-test sanity`` on what the tarball holds.

It wants a git work tree at ``.../ansible_collections/<namespace>/<name>``: neither a link nor another name will do.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devtools.collection import tarball
from devtools.collection.environment import ROOT, environ

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
"""Of those that apply to a collection all but compile, import, pep8, pylint and yamllint, whose work ruff, mypy,
yamllint and the tests do."""
PIP_VERSIONS = ("24_2", "24_1")
"""Of ansible-test 2.19 and 2.18."""


def work_tree(into: Path) -> Path:
    """What the tarball holds, with the tests' settings, in a git work tree of the right name."""
    here = tarball.install(tarball.build(into), into)
    (here / "tests").mkdir(parents=True)
    shutil.copytree(ROOT / "tests" / "sanity", here / "tests" / "sanity")
    shutil.copy(ROOT / "tests" / "config.yml", here / "tests")
    # not part of a checkout: written by the installation
    for name in ("MANIFEST.json", "FILES.json"):
        (here / name).unlink()
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=here, check=True)
    return here


_BOOTSTRAP = """\
# In place of the script that ansible-test would download: Python has a pip of its own, which fetches the wanted one.
import subprocess, sys
subprocess.run([sys.executable, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)
wanted = [argument for argument in sys.argv[1:] if argument not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted]).returncode)
"""


def home(cache: Path) -> Path:
    """A HOME for ansible-test, which keeps its environments there: PyPI is all that it then needs."""
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
        # no default of ours: ansible-test is a script beside this Python
        command = ["ansible-test", "sanity", "--local", "--color", "no", "--python", "default", *chosen]
        env = environ(*([bin_dir] if bin_dir else []), HOME=str(home(cache)), LC_ALL="C.UTF-8")
        return subprocess.run(command, cwd=here, env=env, stdout=sys.stdout, check=False).returncode
