"""Writes ``deploy/olm``; with ``--check`` reports the files that are out of date, and then exits with 1."""

from __future__ import annotations

import argparse
import sys

from devtools.build.olm import files, sources
from devtools.paths import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.olm", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    parser.add_argument("--image", default="", help="the operator's image, by a name that your cluster can pull")
    options = parser.parse_args()
    wanted = files.wanted(sources.read(options.image))
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    linked = files.links()
    bent = [path for path, target in linked.items() if not path.is_symlink() or path.readlink() != target]
    strangers = [
        path for path in sorted(files.BUNDLE.rglob("*")) if path not in {*wanted, *linked} and not path.is_dir()
    ]
    if options.check:
        for path in (*stale, *bent):
            print(f"{path.relative_to(ROOT)} is out of date; run `make bundle`")
        for path in strangers:
            print(f"{path.relative_to(ROOT)}: not part of the bundle; run `make bundle`")
        return 1 if stale or bent or strangers else 0
    for path in strangers:
        path.unlink()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
        print(f"wrote {path.relative_to(ROOT)}")
    for path in bent:
        path.unlink(missing_ok=True)
        path.symlink_to(linked[path])
        print(f"linked {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
