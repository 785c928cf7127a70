"""Container images as files: layers and ``docker save`` archives, written without an engine."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
EPOCH = "1970-01-01T00:00:00Z"
"""Creation time of every image: the same input gives the same image id."""


@dataclass(frozen=True)
class Layer:
    """An uncompressed layer on disk and the digest of its content."""

    path: Path
    digest: str


@dataclass(frozen=True)
class Image:
    """An image to be written into an archive: its names, its layers from the bottom up, its run configuration."""

    tags: tuple[str, ...]
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    env: tuple[str, ...] = (DEFAULT_PATH,)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the run configuration, e.g. StopSignal."""


def existing_layer(path: Path) -> Layer:
    with path.open("rb") as stream:
        return Layer(path, f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}")


def _add(archive: tarfile.TarFile, name: str, mode: int, content: Path | bytes | str) -> None:
    """Add a file with the content of another or with these bytes, or a symbolic link to a path; all owned by root."""
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = mode, 0
    if isinstance(content, str):
        info.type, info.linkname = tarfile.SYMTYPE, content
        archive.addfile(info)
        return
    info.size = content.stat().st_size if isinstance(content, Path) else len(content)
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as stream:
        archive.addfile(info, stream)


def write_layer(target: Path, files: Mapping[str, Path], links: Mapping[str, str] | None = None) -> Layer:
    """A layer of executables (path in the image -> file) and symbolic links (path -> target).

    Folders above them are left to the reader of the layer, which creates those that are missing.
    """
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, source in sorted(files.items()):
            _add(archive, name, 0o755, source)
        for name, destination in sorted((links or {}).items()):
            _add(archive, name, 0o777, destination)
    return existing_layer(target)


def image_config(image: Image, architecture: str) -> bytes:
    """The image's configuration document; its SHA-256 is the image's id."""
    entrypoint = {"Entrypoint": list(image.entrypoint)} if image.entrypoint else {}
    document = {
        "architecture": architecture,
        "os": "linux",
        "created": EPOCH,
        "config": {"Env": list(image.env), **entrypoint, **image.extra},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in image.layers]},
        "history": [{"created": EPOCH, "created_by": "dljob-operator build"} for _ in image.layers],
    }
    return json.dumps(document, sort_keys=True).encode()


def write_archive(stream: IO[bytes], images: Sequence[Image], architecture: str) -> None:
    """Write what ``docker save`` would: one archive of all the images, to a stream that need not be seekable."""
    manifest = []
    contents: dict[str, Path | bytes] = {}
    for image in images:
        config = image_config(image, architecture)
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        layers = {f"{layer.digest.removeprefix('sha256:')}/layer.tar": layer.path for layer in image.layers}
        contents |= {**layers, config_name: config}
        manifest.append({"Config": config_name, "RepoTags": list(image.tags), "Layers": list(layers)})
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name, content in {**contents, "manifest.json": json.dumps(manifest).encode()}.items():
            _add(archive, name, 0o644, content)
