"""Builds images and pushes them under all of their names, skipping unchanged ones.

Why not ``docker buildx bake``: Debian's Docker (20.10) has no buildx. It would replace the one call of ``docker build``
and the order of a base and its image, 20 of 900 lines; contexts without network, keys and names would stay.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from devtools.build.images import bases, context, definition, manifests, remote
from devtools.build.images.definition import Base, Definition
from devtools.build.images.errors import ImagesError
from devtools.build.images.manifests import Use
from devtools.testbed.base import shell
from devtools.testbed.base.docker import Engine, user_engine
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import lifecycle, registry


def build_and_push(settings: Settings, names: Sequence[str] = (), *, full: bool = False) -> list[str]:
    """Build the images ``names`` (folders of build/images; if empty the usual ones, with ``full`` all that tests need)
    and push each under every name it has.

    Needs a running cluster, whose Docker and registry it uses. Returns the image names that pods can now use.
    Raises ImagesError for a problem with an image, and its base class ClusterError for one with the cluster.
    """
    session, kind = lifecycle.existing(settings)
    port = session.state.registry_port
    if not registry.serves(port):
        raise ImagesError(f"the local registry does not respond on 127.0.0.1:{port}", "make cluster")
    uses = manifests.read(manifests.folders())
    served = []
    for image in definition.load_all(list(names), full=full):
        served += _build_and_push_one(image, settings, kind.engine, port, uses, session.report)
    return served


def _build_and_push_one(
    image: Definition, settings: Settings, engine: Engine, port: int, uses: Sequence[Use], report: Reporter
) -> list[str]:
    for problem in manifests.not_offered(image, uses):
        report.say(f"  note: {problem}; add its path to programs in {image.folder / definition.DEFINITION}")
    key = context.key(image)
    wanted = manifests.names_for(image, uses)
    # the registry's content outlives a cluster, and what the node knows of it does not
    registry.redirect_pulls(settings, wanted)
    if not _outdated(wanted, key, port):
        report.say(f"  {image.name}: unchanged, {len(wanted)} names in the registry")
        return wanted
    with alone(settings.cache_dir, report):
        outdated = _outdated(wanted, key, port)  # another process may have pushed it meanwhile
        if outdated:
            build(image, key, settings.cache_dir, engine, report)
            with report.step(f"push {image.name}", f"{image.name}, {len(outdated)} names pushed"):
                for name in outdated:
                    _push(image, name, settings, engine, port)
            if engine.kind == "own":  # which only serves the cluster, and the node pulls from the registry
                engine.run("rmi", *image.names, check=False)
    return wanted


@contextlib.contextmanager
def alone(cache: Path, report: Reporter) -> Iterator[None]:
    """Keep other processes of the machine from building and pushing images, such as another run of the tests.

    They share the cache, Docker's builder, and the names that an image has only while it is pushed. The kernel releases
    the lock of a process that ends.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "images.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report.say("  waiting for another process that builds images")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _outdated(names: Sequence[str], key: str, port: int) -> list[str]:
    """Those names under which the registry does not have the content ``key``."""
    return [name for name in names if remote.content(port, name) != key]


def _push(image: Definition, name: str, settings: Settings, engine: Engine, port: int) -> None:
    if name in image.names:
        if name != image.names[0]:
            engine.run("tag", image.names[0], name)
        registry.push(settings, engine, port, [name])
        return
    # tag the image with the foreign name only while it is pushed
    engine.run("tag", image.names[0], name)
    try:
        registry.push(settings, engine, port, [name])
    finally:
        engine.run("rmi", name, check=False)


def build_only(settings: Settings, names: Sequence[str] = (), *, full: bool = False) -> list[str]:
    """The same with the user's Docker, without a cluster and without pushing; returns the images' own names."""
    engine = user_engine(os.environ)
    if engine is None:
        raise ImagesError(
            "no Docker engine responds", "start Docker, set DOCKER_HOST, or start a cluster: make cluster"
        )
    report = Reporter(settings.cache_dir / "durations.json")
    built = []
    for image in definition.load_all(list(names), full=full):
        with alone(settings.cache_dir, report):
            build(image, context.key(image), settings.cache_dir, engine, report)
        built.append(image.names[0])
    return built


def _base(base: Base, cache: Path, engine: Engine, report: Reporter) -> str:
    """Ensure the base image and return its name: ``BASE_IMAGE`` if that variable is set."""
    chosen = os.environ.get(context.BASE_IMAGE) if base.stand_in else None
    if chosen:
        return chosen
    if not base.stand_in:
        return bases.ensure(base, cache, engine, report)
    stand_in = definition.load(base.stand_in)
    key = context.key(stand_in)
    if bases.has(engine, base.image):
        return base.image
    if labelled(engine, stand_in.names[0]) != key and bases.pull(base, engine, report):
        return base.image
    build(stand_in, key, cache, engine, report)
    return stand_in.names[0]


def _python(base: Base, name: str) -> str:
    """The version of Python in the image ``name``, which is that base or its stand-in."""
    stand_in = definition.load(base.stand_in) if base.stand_in else None
    return stand_in.base.python if stand_in and name == stand_in.names[0] else base.python


def labelled(engine: Engine, name: str) -> str | None:
    """The content key of an image in the engine; None if the image is missing or has no key."""
    found = engine.run("image", "inspect", "--format", "{{json .Config.Labels}}", name, check=False)
    if found.returncode != 0:
        return None
    return (json.loads(found.stdout) or {}).get(context.LABEL)


def build(image: Definition, key: str, cache: Path, engine: Engine, report: Reporter) -> None:
    """Build the image with its first name, unless the engine has it with this content key."""
    if labelled(engine, image.names[0]) == key:
        return
    base = _base(image.base, cache, engine, report)
    work = cache / "work"
    work.mkdir(parents=True, exist_ok=True)
    for left in work.glob("image-*"):  # of a process that was killed: one builds at a time
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"image-{image.name}-", dir=work))
    try:
        with report.step(f"context {image.name}", f"{image.name}, wheels and sources"):
            context.assemble(image, folder, cache, python=_python(image.base, base))
        with report.step(f"build {image.name}", f"{image.name}, docker build"):
            done = engine.run(
                "build", "--network", "none", "--build-arg", f"BASE_IMAGE={base}", "--label", f"{context.LABEL}={key}",
                "--tag", image.names[0], folder, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                # it depends on the builder which of the two streams has the failed command's output
                output = shell.tail(done.stdout + done.stderr, 30)
                raise ImagesError(f"docker build of {image.name} failed:\n{output}", f"see {image.dockerfile}")
        # remove the replaced image and the stages of this one, which have no names; only our images have this label
        engine.run("image", "prune", "--force", "--filter", f"label={context.LABEL}", check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
