"""The command line: ``python -m devtools.build.images {build,list}``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from devtools.build.images import definition, manifests
from devtools.build.images.build import build_and_push, build_only
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import settings_from
from devtools.testbed.base.termination import ends_main_thread


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m devtools.build.images", description="The example images.")
    commands = top.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build images and push them to the cluster's registry")
    build.add_argument("names", nargs="*", metavar="NAME", help="folder of build/images (default: all of the set)")
    build.add_argument(
        "--set", choices=("default", definition.FULL), default="default", dest="chosen",
        help="full: also the images of the longest tests and of `make matrix` (default: %(default)s)",
    )  # fmt: skip
    build.add_argument("--no-push", action="store_true", help="only build, with the user's Docker; needs no cluster")
    commands.add_parser("list", help="list the images, their names, and the manifests' images without a substitute")
    return top


def show() -> None:
    """Print every image with its names, then the manifests' images that no image here replaces."""
    images = definition.load_all()
    uses = manifests.read(manifests.folders())
    for image in images:
        print(f"{image.name}  (base {image.base.image})")
        for name in manifests.names_for(image, uses):
            print(f"  {name}")
        for problem in manifests.not_offered(image, uses):
            print(f"  note: {problem}")
    covered = {kind for image in images for kind in image.kinds}
    rest = sorted({(use.kind, use.image) for use in uses if use.kind not in covered})
    for kind, name in rest:
        print(f"none for {name}, of a {kind or 'document without a kind'}")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        if arguments.command == "list":
            show()
            return 0
        action = build_only if arguments.no_push else build_and_push
        with ends_main_thread():  # SIGTERM must not leave the processes and files of an unfinished build either
            for name in action(settings_from(), arguments.names, full=arguments.chosen == definition.FULL):
                print(name)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; 'build' goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
