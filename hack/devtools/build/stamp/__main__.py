"""Writes the version and the addresses to all files that repeat them; with ``--check`` reports stale files,
and exits with 1 if there are any."""

from __future__ import annotations

import argparse
import sys

from devtools.build.stamp import places, project
from devtools.paths import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.stamp", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    check: bool = parser.parse_args().check
    files = dict.fromkeys(place.file for place in places.PLACES)
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
    try:
        new = places.stamped(texts, project.read(ROOT))
    except project.StampError as error:
        print(error)
        return 1
    stale = [file for file in files if new[file] != texts[file]]
    for file in stale:
        if check:
            print(f"{file} does not match VERSION and pyproject.toml; run `make version`")
        else:
            (ROOT / file).write_text(new[file], encoding="utf-8")
            print(f"wrote {file}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
