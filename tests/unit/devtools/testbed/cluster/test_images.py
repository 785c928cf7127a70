"""Images written without an engine: the format, and reproducibility."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import IO, Any

import pytest
from devtools.testbed.cluster import push
from devtools.testbed.cluster.errors import ClusterError
from devtools.testbed.cluster.imagetar import Image, Layer, existing_layer, write_archive, write_layer
from devtools.testbed.cluster.push import Blob


def layer(tmp_path: Path, name: str, text: str) -> Layer:
    source = tmp_path / f"{name}.bin"
    source.write_text(text)
    return write_layer(tmp_path / f"{name}.layer", {f"usr/bin/{name}": source}, {f"bin/{name}": f"../usr/bin/{name}"})


def archive_of(*images: Image) -> bytes:
    stream = io.BytesIO()
    write_archive(stream, images, "amd64")
    return stream.getvalue()


def member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    content = tar.extractfile(name)
    assert content is not None
    return content


def test_layer_holds_executables_and_links_of_root(tmp_path: Path) -> None:
    made = layer(tmp_path, "a", "hello")
    assert made.digest == "sha256:" + hashlib.sha256(made.path.read_bytes()).hexdigest()
    with tarfile.open(made.path) as tar:
        file, link = tar.getmember("usr/bin/a"), tar.getmember("bin/a")
        content = tar.extractfile(file)
        assert content is not None and content.read() == b"hello"
    assert (file.mode, file.uid, file.gid, file.mtime) == (0o755, 0, 0, 0)
    assert link.issym() and link.linkname == "../usr/bin/a"


def test_equal_input_is_an_equal_image(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    images = [Image(("x:1",), (layer(tmp_path / place, "a", "hello"),), ("/a",)) for place in "12"]
    assert archive_of(images[0]) == archive_of(images[1])


def test_archive_is_what_docker_load_reads(tmp_path: Path) -> None:
    shared, own = layer(tmp_path, "a", "shared"), layer(tmp_path, "b", "own")
    first = Image(("registry.k8s.io/a:1", "registry.k8s.io/a:2"), (shared,), ("/a", "serve"))
    second = Image(("b:1",), (shared, own), (), ("container=docker",), {"StopSignal": "SIGRTMIN+3"})
    with tarfile.open(fileobj=io.BytesIO(archive_of(first, second))) as tar:
        names = tar.getnames()
        entries = json.load(member(tar, "manifest.json"))
        configs = [json.load(member(tar, e["Config"])) for e in entries]
        for entry, image in zip(entries, (first, second), strict=True):
            for path, expected in zip(entry["Layers"], image.layers, strict=True):
                data = member(tar, path).read()
                assert "sha256:" + hashlib.sha256(data).hexdigest() == expected.digest
    assert len(names) == len(set(names)), "a shared layer is written once"
    assert entries[0]["RepoTags"] == ["registry.k8s.io/a:1", "registry.k8s.io/a:2"]
    assert configs[0]["config"]["Entrypoint"] == ["/a", "serve"]
    assert "Entrypoint" not in configs[1]["config"] and configs[1]["config"]["StopSignal"] == "SIGRTMIN+3"
    assert configs[1]["rootfs"]["diff_ids"] == [shared.digest, own.digest]


class Recorder(push.Registry):
    """Records uploads instead of sending them."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, Any] = {}
        self.uploads = 0

    def has_blob(self, repository: str, digest: str) -> bool:
        return digest in self.blobs

    def upload(self, repository: str, blob: Blob, content: Any, source: str) -> None:
        data = content if isinstance(content, bytes) else content.read()
        assert blob.digest == "sha256:" + hashlib.sha256(data).hexdigest() and blob.size == len(data)
        self.blobs[blob.digest] = data
        self.uploads += 1

    def put_manifest(self, repository: str, tag: str, document: bytes) -> None:
        self.manifests[f"{repository}:{tag}"] = json.loads(document)


def pushed(data: bytes, tmp_path: Path, registry: Recorder | None = None) -> Recorder:
    registry = registry or Recorder()
    index = push.BlobIndex(tmp_path / "blobs.json")
    push.push_saved(io.BytesIO(data), registry, "docker.io/a/b", "1", index, tmp_path)
    return registry


def test_push_of_docker_save_uploads_plain_layers_once(tmp_path: Path) -> None:
    one, two = layer(tmp_path, "a", "x" * 2_000_000), layer(tmp_path, "b", "small")
    data = archive_of(Image(("b:1",), (one, two), ("/a",)))
    registry = pushed(data, tmp_path)
    manifest = registry.manifests["docker.io/a/b:1"]
    assert [x["digest"] for x in manifest["layers"]] == [one.digest, two.digest]
    assert {x["mediaType"] for x in manifest["layers"]} == {push.LAYER_TYPE}
    config = json.loads(registry.blobs[manifest["config"]["digest"]])
    assert config["config"]["Entrypoint"] == ["/a"]
    before = registry.uploads
    pushed(data, tmp_path, registry)
    assert registry.uploads == before


def saved(entries: dict[str, bytes | str]) -> bytes:
    """A tar of files (bytes) and symbolic links (str)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_push_follows_the_links_of_repeated_layers(tmp_path: Path) -> None:
    manifest = [{"Config": "c.json", "RepoTags": ["b:1"], "Layers": ["one/layer.tar", "two/layer.tar"]}]
    data = saved(
        {"one/layer.tar": b"L" * 9, "two/layer.tar": "../one/layer.tar", "c.json": b"{}",
         "manifest.json": json.dumps(manifest).encode()}
    )  # fmt: skip
    layers = pushed(data, tmp_path).manifests["docker.io/a/b:1"]["layers"]
    assert len(layers) == 2 and layers[0] == layers[1]


def test_push_keeps_compressed_layers_of_an_oci_layout_compressed(tmp_path: Path) -> None:
    packed = gzip.compress(b"layer" * 1000)
    manifest = [{"Config": "blobs/sha256/c", "RepoTags": ["b:1"], "Layers": ["blobs/sha256/l"]}]
    data = saved(
        {
            "blobs/sha256/l": packed,
            "blobs/sha256/c": b"{}",
            "manifest.json": json.dumps(manifest).encode(),
            "oci-layout": b"{}",
        }
    )
    (only,) = pushed(data, tmp_path).manifests["docker.io/a/b:1"]["layers"]
    assert only["mediaType"] == push.LAYER_TYPE + "+gzip" and only["size"] == len(packed)


def test_circular_links_are_an_error() -> None:
    with pytest.raises(ClusterError, match="circular links"):
        push.resolve("a/x", {"a/x": "../b/x", "b/x": "../a/x"})


@pytest.mark.parametrize(
    ("head", "compression"),
    [(b"\x1f\x8b\x08", "+gzip"), (b"\x28\xb5\x2f\xfd", "+zstd"), (b"usr/", ""), (b"", "")],
)
def test_compression(head: bytes, compression: str) -> None:
    assert push.compression_of(head) == compression


def test_existing_layer_is_digested(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"abc")
    assert existing_layer(tmp_path / "l").digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()
