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
BLOCK = 1 << 20


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


def _entry(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    info.mtime = 0
    return info


def write_layer(target: Path, files: Mapping[str, Path], links: Mapping[str, str] | None = None) -> Layer:
    """A layer of executables (path in the image -> file) and symbolic links (path -> target), owned by root.

    Folders above them are left to the reader of the layer, which creates those that are missing.
    """
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, source in sorted(files.items()):
            info = _entry(name, 0o755)
            info.size = source.stat().st_size
            with source.open("rb") as stream:
                archive.addfile(info, stream)
        for name, destination in sorted((links or {}).items()):
            info = _entry(name, 0o777)
            info.type = tarfile.SYMTYPE
            info.linkname = destination
            archive.addfile(info)
    return existing_layer(target)


def image_config(image: Image, architecture: str) -> bytes:
    """The image's configuration document; its SHA-256 is the image's id."""
    run = {
        "Env": list(image.env),
        **({"Entrypoint": list(image.entrypoint)} if image.entrypoint else {}),
        **image.extra,
    }
    return json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "created": EPOCH,
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in image.layers]},
            "history": [{"created": EPOCH, "created_by": "dljob-operator build"} for _ in image.layers],
        },
        sort_keys=True,
    ).encode()


def write_archive(stream: IO[bytes], images: Sequence[Image], architecture: str) -> None:
    """Write what ``docker save`` would: one archive of all the images, to a stream that need not be seekable."""
    manifest = []
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        written = set()
        for image in images:
            config = image_config(image, architecture)
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            paths = []
            for layer in image.layers:
                path = f"{layer.digest.removeprefix('sha256:')}/layer.tar"
                paths.append(path)
                if path not in written:
                    written.add(path)
                    info = _entry(path, 0o644)
                    info.size = layer.path.stat().st_size
                    with layer.path.open("rb") as source:
                        archive.addfile(info, source)
            if config_name not in written:
                written.add(config_name)
                _add_bytes(archive, config_name, config)
            manifest.append({"Config": config_name, "RepoTags": list(image.tags), "Layers": paths})
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = _entry(name, 0o644)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
