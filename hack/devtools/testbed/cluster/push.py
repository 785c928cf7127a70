"""Pushes images into the local registry without compressing them.

``docker push`` compresses every layer and the node then decompresses it: half a minute of CPU time for 700 MB that
never leave the machine. The registry accepts uncompressed layers, so they are sent as ``docker save`` writes them.

Why not ``crane push`` (go-containerregistry): it has no image source in Docker, only a file or an OCI layout on disk,
so each push would first write ``docker save`` there; and it compresses the layers. An image of 430 MB took crane 0.22
10.3 s of processor time, and this module 2.2 s. For the same image again crane took 3.2 s, to hash the file, where one
request for the tag tells this module that there is nothing to do. That check and the copying of tags would remain here,
and crane would have to be compiled.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import tarfile
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devtools.testbed.cluster import shell
from devtools.testbed.cluster.engine import Engine
from devtools.testbed.cluster.errors import ClusterError

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 20


@dataclass(frozen=True)
class Blob:
    """A blob's digest (``sha256:...``), size in bytes, and how it is compressed ("", "+gzip", "+zstd")."""

    digest: str
    size: int
    compression: str = ""


def compression_of(head: bytes) -> str:
    if head.startswith(GZIP):
        return "+gzip"
    return "+zstd" if head.startswith(ZSTD) else ""


def manifest(config: Blob, layers: Sequence[Blob]) -> bytes:
    """The OCI manifest of one image."""
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": config.digest, "size": config.size},
            "layers": [
                {"mediaType": LAYER_TYPE + layer.compression, "digest": layer.digest, "size": layer.size}
                for layer in layers
            ],
        },
        sort_keys=True,
    ).encode()


def resolve(name: str, links: Mapping[str, str]) -> str:
    """The member that ``name`` refers to: Docker writes a layer that occurs twice as a relative link."""
    for _ in range(len(links) + 1):
        if name not in links:
            return name
        parts: list[str] = []
        for part in [*name.split("/")[:-1], *links[name].split("/")]:
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        name = "/".join(parts)
    raise ClusterError(f"docker save: circular links at {name}")


class Registry:
    """The parts of the distribution API that a push needs, over one connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300, blocksize=BLOCK)

    def close(self) -> None:
        self.connection.close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        self.connection.request(method, path, body=body, headers=dict(headers or {}))
        answer = self.connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()

    def has_blob(self, repository: str, digest: str) -> bool:
        return self.ask("HEAD", f"/v2/{repository}/blobs/{digest}")[0] == 200

    def tagged_config(self, repository: str, tag: str) -> str:
        """The digest of the configuration of the image with this tag (its image id), "" if there is none."""
        accept = {"Accept": f"{MANIFEST_TYPE}, {DOCKER_MANIFEST_TYPE}"}
        status, _, body = self.ask("GET", f"/v2/{repository}/manifests/{tag}", headers=accept)
        return str(json.loads(body).get("config", {}).get("digest", "")) if status == 200 else ""

    def mount(self, repository: str, digest: str, source: str) -> str | None:
        """Mount the blob from another repository; returns the upload URL if that is not possible, else None."""
        query = f"?{urllib.parse.urlencode({'mount': digest, 'from': source})}" if source else ""
        status, headers, body = self.ask(
            "POST", f"/v2/{repository}/blobs/uploads/{query}", headers={"Content-Length": "0"}
        )
        if status == 201:
            return None
        if status != 202:
            raise ClusterError(
                f"the registry rejected the upload to {repository}: {status} {body.decode(errors='replace')[:300]}"
            )
        return headers["location"]

    def upload(self, repository: str, blob: Blob, content: IO[bytes] | bytes, source: str) -> None:
        location = self.mount(repository, blob.digest, source)
        if location is None:
            return
        parts = urllib.parse.urlsplit(location)
        query = "&".join(filter(None, (parts.query, urllib.parse.urlencode({"digest": blob.digest}))))
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)}
        status, _, body = self.ask("PUT", f"{parts.path}?{query}", content, headers)
        if status != 201:
            raise ClusterError(f"the registry rejected {blob.digest}: {status} {body.decode(errors='replace')[:300]}")

    def put_manifest(self, repository: str, tag: str, document: bytes) -> None:
        status, _, body = self.ask(
            "PUT", f"/v2/{repository}/manifests/{tag}", document, {"Content-Type": MANIFEST_TYPE}
        )
        if status != 201:
            raise ClusterError(
                f"the registry rejected {repository}:{tag}: {status} {body.decode(errors='replace')[:300]}"
            )


class BlobIndex:
    """The repository of each pushed blob, so that another image with the same base needs no second upload."""

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


def spool(stream: IO[bytes], target: IO[bytes]) -> Blob:
    """Copy a tar member to ``target``, rewind it, and return its digest, size and compression."""
    digest, size, head = hashlib.sha256(), 0, b""
    while block := stream.read(BLOCK):
        head = head or block[:4]
        digest.update(block)
        target.write(block)
        size += len(block)
    target.seek(0)
    return Blob(f"sha256:{digest.hexdigest()}", size, compression_of(head))


def push_saved(
    archive: IO[bytes], registry: Registry, repository: str, tag: str, index: BlobIndex, scratch: Path
) -> None:
    """Push the single image of a ``docker save`` stream, in the old layout or as an OCI layout with a manifest.json."""
    blobs: dict[str, Blob] = {}
    small: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for member, content in members(archive):
        if member.issym() or member.islnk():
            links[member.name] = member.linkname if member.issym() else f"/{member.linkname}"
            continue
        if content is None:
            continue
        if member.size < BLOCK and (member.name.endswith(".json") or member.name.startswith("blobs/")):
            small[member.name] = content.read()
            continue
        with tempfile.TemporaryFile(dir=scratch) as spooled:
            blob = blobs[member.name] = spool(content, spooled)
            if not registry.has_blob(repository, blob.digest):
                registry.upload(repository, blob, spooled, index.source(blob.digest))
            index.add(blob.digest, repository)
    saved = json.loads(small["manifest.json"])[0]

    def send_small(name: str) -> Blob:
        data = small[name]
        blob = Blob(f"sha256:{hashlib.sha256(data).hexdigest()}", len(data), compression_of(data))
        if not registry.has_blob(repository, blob.digest):
            registry.upload(repository, blob, data, "")
        return blob

    layers = []
    for path in saved["Layers"]:
        name = resolve(path, links)
        layers.append(blobs[name] if name in blobs else send_small(name))
    registry.put_manifest(repository, tag, manifest(send_small(saved["Config"]), layers))


def copy_tag(registry: Registry, source: str, image: str, repository: str, tag: str) -> bool:
    """Add a name to the image that the registry has as ``source`` (REPOSITORY:TAG); returns False if it is missing."""
    known, _, known_tag = source.rpartition(":")
    if not known or registry.tagged_config(known, known_tag) != image:
        return False
    _, _, document = registry.ask("GET", f"/v2/{known}/manifests/{known_tag}", headers={"Accept": MANIFEST_TYPE})
    parsed = json.loads(document)
    for blob in (parsed["config"], *parsed["layers"]):
        if (
            not registry.has_blob(repository, blob["digest"])
            and registry.mount(repository, blob["digest"], known) is not None
        ):
            return False
    registry.put_manifest(repository, tag, document)
    return True


def members(archive: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        for member in tar:
            yield member, tar.extractfile(member) if member.isfile() else None


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
        with subprocess.Popen(
            [str(engine.docker), "save", image], env=shell.merged_env(engine.env), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as save:  # fmt: skip
            assert save.stdout is not None and save.stderr is not None
            try:
                push_saved(save.stdout, registry, repository, tag, index, store)
            except tarfile.TarError as error:
                raise ClusterError(
                    f"docker save {image}: {save.stderr.read().decode(errors='replace') or error}"
                ) from error
        index.add(wanted, f"{repository}:{tag}")
        index.save()
        return True
    except (OSError, http.client.HTTPException) as error:
        raise ClusterError(f"push of {image} to 127.0.0.1:{port} failed: {error}", "see cluster-status") from error
    finally:
        registry.close()
