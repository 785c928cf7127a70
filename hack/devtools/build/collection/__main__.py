"""The command line: ``python -m devtools.build.collection {dependencies,build,wheel,sanity,oldest,previous}``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from devtools.build import krew
from devtools.build.collection import dependencies, oldest, sanity, tarball, wheel
from devtools.build.collection.environment import PipError
from devtools.paths import ROOT
from devtools.testbed.base.settings import cache_dir_from


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.collection", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("dependencies", help="install the collections of requirements.yml into this environment")
    build = commands.add_parser("build", help="build the tarball for ansible-galaxy and print its path")
    build.add_argument("--into", type=Path, default=ROOT / ".build", metavar="DIR", help="(default: .build)")
    package = commands.add_parser("wheel", help="build the wheels, and for krew, and print the paths")
    package.add_argument("--into", type=Path, default=ROOT / "dist", metavar="DIR", help="(default: dist)")
    check = commands.add_parser("sanity", help="ansible-test sanity")
    check.add_argument("--test", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    commands.add_parser("oldest", help="run the unit tests with the oldest supported ansible-core and kubernetes")
    commands.add_parser("previous", help="run them with ansible-core 2.20, on Python 3.12 or newer")
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "dependencies":
                for line in dependencies.install(cache_dir_from(os.environ)):
                    print(f"    {line}")
            case "build":
                print(tarball.build(arguments.into))
            case "wheel":
                print(wheel.build(arguments.into))
                client = wheel.build(arguments.into, ROOT / "client")
                print(client, *krew.build(client, arguments.into), sep="\n")
            case "sanity":
                return sanity.run(cache_dir_from(os.environ), arguments.test)
            case "oldest":
                return oldest.unit_tests(oldest.environment(cache_dir_from(os.environ)))
            case "previous":
                return oldest.unit_tests(oldest.environment(cache_dir_from(os.environ), oldest.PREVIOUS))
    except (dependencies.DependencyError, PipError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
