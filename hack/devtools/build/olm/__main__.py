"""Writes ``deploy/olm``; with ``--check`` reports the files that are out of date, and then exits with 1."""

from __future__ import annotations

import sys

from devtools.build import generated
from devtools.build.olm import files, sources

if __name__ == "__main__":
    parser = generated.parser("olm", __doc__)
    parser.add_argument("--image", default="", help="the operator's image, by a name that your cluster can pull")
    given = parser.parse_args()
    sys.exit(generated.settle(files.wanted(sources.read(given.image)), "bundle", check=given.check))
