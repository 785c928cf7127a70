"""Writes ``crds/*.yaml``; with ``--check`` tells which of them are not what would be written, and exits with 1."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from devtools.crds import caffe2job, mxjob, pytorchjob, tfjob
from devtools.crds.document import render

_KINDS = (caffe2job, mxjob, pytorchjob, tfjob)
_FOLDER = Path(__file__).resolve().parents[3] / "crds"


def files() -> dict[Path, str]:
    """Every file with the text that it should have."""
    return {
        _FOLDER / f"{document['metadata']['name']}.yaml": render(document)
        for kind in _KINDS
        for document in kind.definitions()
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.crds", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    check: bool = parser.parse_args().check
    wanted = files()
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    strangers = [path for path in sorted(_FOLDER.glob("*.yaml")) if path not in wanted]
    for path in strangers:
        print(f"crds/{path.name}: nothing in hack/devtools/crds/ writes it; remove it, or add its kind to __main__.py")
    for path in stale:
        if check:
            print(f"crds/{path.name} is out of date; run `make crds`")
        else:
            _FOLDER.mkdir(exist_ok=True)
            path.write_text(wanted[path])
            print(f"wrote crds/{path.name}")
    return 1 if strangers or (check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
