"""The local registry: a container on the cluster network, from which the node pulls images by their own names."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from devtools.testbed.base import shell, versions
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings
from devtools.testbed.base.state import StateFile
from devtools.testbed.cluster.kindcluster import REGISTRY_PORT, path_component, write_hosts
from devtools.testbed.cluster.push import push_image
from devtools.testbed.offline import registryimage, slots

PREFERRED_PORT = 5001
"""Preferred port on the host; another one is used if it is taken."""
CONFIGURATION = Path(__file__).with_name("registry.yaml")
STORAGE = "/var/lib/registry"
CONFIG = "/etc/dljob-registry.yaml"
HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?")
PART = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
REPOSITORY = re.compile(f"{PART}(/{PART})*")
TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_GARBAGE_TIMEOUT = 120.0
DOMAIN = re.compile(r"^(?P<host>localhost|[^/]*[.:][^/]*)/(?P<rest>.+)$")


@dataclass(frozen=True)
class ImageName:
    """A fully qualified image name: ``docker.io``, ``library/busybox``, ``1.36``."""

    registry: str
    repository: str
    tag: str

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}:{self.tag}"


def parse_image_name(text: str) -> ImageName:
    """Parse a name as Docker does: the default domain is docker.io, single words are in ``library``, tag ``latest``."""
    if "@" in text:
        fix = "tag it first: docker tag ID NAME:TAG"
        raise ClusterError(f"{text}: an image is pushed by its tag, not by a digest", fix)
    match = DOMAIN.match(text)
    host, rest = (match["host"], match["rest"]) if match else ("docker.io", text)
    if host == "index.docker.io":
        host = "docker.io"
    repository, colon, tag = rest.partition(":")
    tag = tag if colon else "latest"
    if host == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    parts = (HOST.fullmatch(host), REPOSITORY.fullmatch(repository), TAG.fullmatch(tag))
    if not all(parts):
        fix = "use [REGISTRY/]REPOSITORY[:TAG], the repository in lower case"
        raise ClusterError(f"{text}: not an image name", fix)
    return ImageName(host, repository, tag)


def free_port(slot: int | None = None) -> int:
    """The preferred port on the loopback address if it is free, else any free one.

    Each slot of a private engine prefers a port of its own: another cluster that starts at this moment has not opened
    the port that it chose.
    """
    for port in (PREFERRED_PORT + (slot or 0), 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ClusterError("no free port on 127.0.0.1", "")


# ---- running it


def ensure_image(settings: Settings, engine: Engine) -> str:
    """Ensure a registry image: the official one if it can be pulled, else one built from Debian's package."""
    official, built = versions.OFFICIAL_REGISTRY_IMAGE, registryimage.name()
    for name in (built, official):
        if engine.has_image(name):
            return name
    if engine.kind == "user" and engine.run("pull", "-q", official, check=False).returncode == 0:
        return official
    registryimage.load(settings, engine)
    return built


def storage_dir(settings: Settings) -> Path:
    """Kept between clusters: next to the private engine's images, or by cluster name for the user's Docker."""
    number = StateFile(settings.state_dir).load().slot
    if number is not None:
        return slots.slot(settings.cache_dir, number).registry
    return settings.cache_dir / "registry" / settings.name


def running(settings: Settings, engine: Engine) -> bool:
    done = engine.run("container", "inspect", "--format", "{{.State.Running}}", settings.registry, check=False)
    return done.stdout.strip() == "true"


def serves(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def start(settings: Settings, engine: Engine, port: int, address: str) -> None:
    """Start the registry on 127.0.0.1:``port``. ``address`` is its fixed address on the cluster network, "" for any."""
    image = ensure_image(settings, engine)
    engine.run("rm", "-f", settings.registry, check=False)
    storage = storage_dir(settings) / "data"
    storage.mkdir(parents=True, exist_ok=True)
    config = settings.state_dir / "registry.yaml"
    shutil.copyfile(CONFIGURATION, config)
    arguments = [
        "run", "--detach", "--name", settings.registry, "--restart", "always", "--network", settings.network,
        "--publish", f"127.0.0.1:{port}:{REGISTRY_PORT}", "--volume", f"{storage}:{STORAGE}",
        "--volume", f"{config}:{CONFIG}:ro", "--user", f"{os.getuid()}:{os.getgid()}",
    ]  # fmt: skip
    if address:
        # a fixed address keeps Docker from giving the node another one after a restart
        arguments += ["--ip", address]
    command = [CONFIG] if image != versions.OFFICIAL_REGISTRY_IMAGE else ["serve", CONFIG]
    engine.run(*arguments, image, *command)
    deadline = time.monotonic() + 30
    while not serves(port):  # the registry has no readiness notification
        if time.monotonic() > deadline:
            logs = engine.run("logs", "--tail", "20", settings.registry, check=False)
            raise ClusterError(
                f"the registry does not answer on 127.0.0.1:{port}:\n{shell.tail(logs.stdout + logs.stderr)}"
            )
        time.sleep(0.1)


def collect_garbage(settings: Settings, engine: Engine) -> None:
    """Remove what no tag names any more from the running registry: earlier builds of images that were pushed again.

    The content is kept between clusters, and every new build would make it grow. Nothing may be pushed meanwhile.
    """
    image = engine.run("inspect", "--format", "{{.Config.Image}}", settings.registry, check=False).stdout.strip()
    program = "registry" if image == versions.OFFICIAL_REGISTRY_IMAGE else registryimage.PROGRAM
    command = [program, "garbage-collect", "--delete-untagged", CONFIG]
    engine.run("exec", settings.registry, *command, check=False, timeout=_GARBAGE_TIMEOUT)


def redirect_pulls(settings: Settings, images: Iterable[str]) -> None:
    """Make the node ask the local registry first for images of these names' registries."""
    for name in {parse_image_name(text).registry for text in images}:
        write_hosts(settings, name)


def push(settings: Settings, engine: Engine, port: int, images: list[str]) -> list[ImageName]:
    """Push local images so that the node can pull them by these names; returns the full names."""
    done = []
    for text in images:
        name = parse_image_name(text)
        if not engine.has_image(text):
            fix = f"build it first: docker build -t {text} ..."
            raise ClusterError(f"{text}: no such image in the local Docker", fix)
        redirect_pulls(settings, [text])
        repository = f"{path_component(name.registry)}/{name.repository}"
        push_image(engine, port, text, repository, name.tag, storage_dir(settings))
        done.append(name)
    return done
