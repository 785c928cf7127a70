"""What `docker save` writes becomes blobs and a manifest in the local registry."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.cluster import push
from devtools.testbed.cluster.push import Blob, BlobIndex

SAVED = {"one/layer.tar": b"L" * 2_000_000, "two/layer.tar": b"small", "c.json": b'{"config": {}}'}
LAYERS = ("one/layer.tar", "two/layer.tar")


class Recorder(push.Registry):
    """Records uploads instead of sending them."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.mounted: list[tuple[str, str]] = []
        self.manifests: dict[str, Any] = {}

    def has_blob(self, repository: str, digest: str) -> bool:
        return digest in self.blobs

    def mount(self, repository: str, digest: str, source: str) -> bool:
        self.mounted.append((digest, source))
        return source == "elsewhere"

    def upload(self, repository: str, blob: Blob) -> None:
        self.blobs[blob.digest] = blob.path.read_bytes()
        assert blob.digest == push.blob_of(blob.path).digest and blob.size == len(self.blobs[blob.digest])

    def put_manifest(self, repository: str, tag: str, document: bytes) -> None:
        self.manifests[f"{repository}:{tag}"] = json.loads(document)


def saved(folder: Path, config: str = "c.json", layers: tuple[str, ...] = LAYERS, **files: bytes) -> Path:
    """An unpacked `docker save` of one image."""
    document = [{"Config": config, "RepoTags": ["b:1"], "Layers": layers}]
    for name, content in {**(files or SAVED), "manifest.json": json.dumps(document).encode()}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def pushed(folder: Path, registry: Recorder, **sources: str) -> Any:
    index = BlobIndex(folder / "blobs.json")
    index.known.update(sources)
    push.push_saved(folder, registry, "registry.example/a/b", "1", index)
    return registry.manifests["registry.example/a/b:1"]


def test_plain_layers_are_uploaded_once(tmp_path: Path) -> None:
    registry = Recorder()
    manifest = pushed(saved(tmp_path), registry)
    assert [registry.blobs[each["digest"]] for each in manifest["layers"]] == [SAVED[name] for name in LAYERS]
    assert [each["size"] for each in manifest["layers"]] == [2_000_000, 5]
    assert {each["mediaType"] for each in manifest["layers"]} == {push.LAYER_TYPE}
    assert registry.blobs[manifest["config"]["digest"]] == SAVED["c.json"]
    registry.upload = lambda *_: pytest.fail("it is there")  # type: ignore[method-assign]
    assert pushed(tmp_path, registry) == manifest


def test_a_layer_of_another_image_is_mounted(tmp_path: Path) -> None:
    registry = Recorder()
    saved(tmp_path)
    large, small = (push.blob_of(tmp_path / name).digest for name in LAYERS)
    pushed(tmp_path, registry, **{large: "elsewhere", small: "collected"})
    assert registry.mounted == [(large, "elsewhere"), (small, "collected")]
    assert large not in registry.blobs and small in registry.blobs, "what the registry has no longer is sent"


def test_a_repeated_layer_is_a_link(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "two/layer.tar").unlink()
    (tmp_path / "two/layer.tar").symlink_to("../one/layer.tar")
    first, second = pushed(tmp_path, Recorder())["layers"]
    assert first == second


def test_compressed_layers_of_an_oci_layout_stay_compressed(tmp_path: Path) -> None:
    packed = gzip.compress(b"layer" * 1000)
    files = {"blobs/sha256/l": packed, "blobs/sha256/c": b"{}", "oci-layout": b"{}"}
    saved(tmp_path, "blobs/sha256/c", ("blobs/sha256/l",), **files)
    (only,) = pushed(tmp_path, Recorder())["layers"]
    assert only["mediaType"] == push.LAYER_TYPE + "+gzip" and only["size"] == len(packed)


@pytest.mark.parametrize(
    ("head", "compression"),
    [(b"\x1f\x8b\x08", "+gzip"), (b"\x28\xb5\x2f\xfd", "+zstd"), (b"usr/", ""), (b"", "")],
)
def test_compression(head: bytes, compression: str) -> None:
    assert push.compression_of(head) == compression


CLIENT = """#!/bin/sh
case $1 in
  image) echo sha256:1 ;;
  *) echo no space left >&2; exit 1 ;;
esac
"""


def test_a_failed_export_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "docker"
    client.write_text(CLIENT)
    client.chmod(0o755)
    monkeypatch.setattr(push.Registry, "tagged_config", lambda *_: "")
    with pytest.raises(ClusterError, match="docker save b:1"):
        push.push_image(Engine("own", client, {}), 1, "b:1", "registry.example/a/b", "1", tmp_path)
    assert list(tmp_path.iterdir()) == [client]
