"""Pushes images into the local registry without compressing them.

``docker push`` compresses every layer and the node then decompresses it: half a minute of CPU time for 700 MB that
never leave the machine. The registry accepts uncompressed layers, so they are sent as ``docker save`` writes them.

Why not ``crane push`` (go-containerregistry): it has no image source in Docker, only a file or an OCI layout on disk;
and it compresses the layers. An image of 430 MB took crane 0.22 10.3 s of processor time, and this module 2.2 s. For
the same image again crane took 3.2 s, to hash the file, where one request for the tag tells this module that there is
nothing to do. That check and the copying of tags would remain here, and crane would have to be compiled.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import tempfile
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO

from devtools.testbed.base import shell
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
COMPRESSIONS = {b"\x1f\x8b": "+gzip", b"\x28\xb5\x2f\xfd": "+zstd"}
"""The ends of a layer's type, by how its content begins."""
BLOCK = 1 << 20


@dataclass(frozen=True)
class Blob:
    """A file that becomes a blob: its digest (``sha256:...``), its size in bytes, and how it is compressed."""

    path: Path
    digest: str
    size: int
    compression: str = ""


def blob_of(path: Path) -> Blob:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        return Blob(path, f"sha256:{digest}", path.stat().st_size, compression_of(stream.read(4)))


def compression_of(head: bytes) -> str:
    return next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), "")


def manifest(config: Blob, layers: Sequence[Blob]) -> bytes:
    """The OCI manifest of one image."""
    described = [
        {"mediaType": LAYER_TYPE + blob.compression, "digest": blob.digest, "size": blob.size} for blob in layers
    ]
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": config.digest, "size": config.size},
        "layers": described,
    }
    return json.dumps(document, sort_keys=True).encode()


class Registry:
    """The parts of the distribution API that a push needs, over one connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300, blocksize=BLOCK)

    def close(self) -> None:
        self.connection.close()

    def ask(
        self, method: str, path: str, body: bytes | IO[bytes] | None = None, *, ok: int = 0, **headers: str
    ) -> tuple[int, HTTPMessage, bytes]:
        """Status, headers and body of the answer; raises ClusterError for a status other than ``ok``, if given."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body=body, headers=sent)
        answer = self.connection.getresponse()
        content = answer.read()
        if ok and answer.status != ok:
            said = content.decode(errors="replace")[:300]
            raise ClusterError(f"the registry rejected {method} {path}: {answer.status} {said}")
        return answer.status, answer.headers, content

    def has_blob(self, repository: str, digest: str) -> bool:
        return self.ask("HEAD", f"/v2/{repository}/blobs/{digest}")[0] == 200

    def tagged_config(self, repository: str, tag: str) -> str:
        """The digest of the configuration of the image with this tag (its image id), "" if there is none."""
        accept = f"{MANIFEST_TYPE}, {DOCKER_MANIFEST_TYPE}"
        status, _, body = self.ask("GET", f"/v2/{repository}/manifests/{tag}", Accept=accept)
        return str(json.loads(body).get("config", {}).get("digest", "")) if status == 200 else ""

    def mount(self, repository: str, digest: str, source: str) -> bool:
        """Give the repository a blob of another one; returns False if that has none."""
        query = urllib.parse.urlencode({"mount": digest, "from": source})
        return self.ask("POST", f"/v2/{repository}/blobs/uploads/?{query}", Content_Length="0")[0] == 201

    def upload(self, repository: str, blob: Blob) -> None:
        headers = self.ask("POST", f"/v2/{repository}/blobs/uploads/", ok=202, Content_Length="0")[1]
        parts = urllib.parse.urlsplit(headers["Location"])
        query = "&".join(filter(None, (parts.query, urllib.parse.urlencode({"digest": blob.digest}))))
        with blob.path.open("rb") as stream:
            self.ask(
                "PUT", f"{parts.path}?{query}", stream, ok=201,
                Content_Type="application/octet-stream", Content_Length=str(blob.size),
            )  # fmt: skip

    def put_manifest(self, repository: str, tag: str, document: bytes) -> None:
        self.ask("PUT", f"/v2/{repository}/manifests/{tag}", document, ok=201, Content_Type=MANIFEST_TYPE)


class BlobIndex:
    """The repository of each pushed layer, so that another image with the same base needs no second upload.

    The name of each pushed image too, by the digest of its configuration.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.known: dict[str, str] = json.loads(path.read_text())
        except (OSError, ValueError):
            self.known = {}

    def source(self, digest: str) -> str:
        return self.known.get(digest, "")

    def add(self, digest: str, repository: str) -> None:
        self.known[digest] = repository

    def save(self) -> None:
        self.path.write_text(json.dumps(self.known, indent=0, sort_keys=True))


def push_saved(saved: Path, registry: Registry, repository: str, tag: str, index: BlobIndex) -> None:
    """Push the single image of an unpacked ``docker save``, in the old layout or an OCI layout with a manifest.json."""
    listed = json.loads((saved / "manifest.json").read_text())[0]
    config, *layers = (blob_of(saved / name) for name in (listed["Config"], *listed["Layers"]))
    for blob in layers:  # of which a repeated one is a link
        source = index.source(blob.digest)
        if registry.has_blob(repository, blob.digest) or (source and registry.mount(repository, blob.digest, source)):
            continue
        registry.upload(repository, blob)
        index.add(blob.digest, repository)
    if not registry.has_blob(repository, config.digest):
        registry.upload(repository, config)
    registry.put_manifest(repository, tag, manifest(config, layers))


def copy_tag(registry: Registry, source: str, image: str, repository: str, tag: str) -> bool:
    """Add a name to the image that the registry has as ``source`` (REPOSITORY:TAG); returns False if it is missing."""
    known, _, known_tag = source.rpartition(":")
    if not known or registry.tagged_config(known, known_tag) != image:
        return False
    document = registry.ask("GET", f"/v2/{known}/manifests/{known_tag}", Accept=MANIFEST_TYPE)[2]
    parsed = json.loads(document)
    digests = [blob["digest"] for blob in (parsed["config"], *parsed["layers"])]
    if not all(registry.has_blob(repository, each) or registry.mount(repository, each, known) for each in digests):
        return False
    registry.put_manifest(repository, tag, document)
    return True


def push_image(engine: Engine, port: int, image: str, repository: str, tag: str, store: Path) -> bool:
    """Push the local ``image``; returns False if the registry has it. ``store`` holds the index and temporary files."""
    registry = Registry(port)
    try:
        wanted = engine.run("image", "inspect", "--format", "{{.Id}}", image).stdout.strip()
        if registry.tagged_config(repository, tag) == wanted:
            return False
        index = BlobIndex(store / "blobs.json")
        if copy_tag(registry, index.source(wanted), wanted, repository, tag):
            return True
        with tempfile.TemporaryDirectory(dir=store) as saved:
            unpack = ["tar", "-x", "--no-same-owner", "-C", saved]
            shell.pipe([str(engine.docker), "save", image], unpack, env={}, producer_env=engine.env)
            push_saved(Path(saved), registry, repository, tag, index)
        index.add(wanted, f"{repository}:{tag}")
        index.save()
        return True
    except (OSError, http.client.HTTPException) as error:
        raise ClusterError(f"push of {image} to 127.0.0.1:{port} failed: {error}", "see cluster-status") from error
    finally:
        registry.close()
