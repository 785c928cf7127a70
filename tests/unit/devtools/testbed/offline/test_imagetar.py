"""Images written without an engine: the format, and reproducibility."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import IO

from devtools.testbed.offline.imagetar import Image, Layer, existing_layer, write_archive, write_layer


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
    first = Image(("registry.example/a:1", "registry.example/a:2"), (shared,), ("/a", "serve"))
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
    assert entries[0]["RepoTags"] == ["registry.example/a:1", "registry.example/a:2"]
    assert configs[0]["config"]["Entrypoint"] == ["/a", "serve"]
    assert "Entrypoint" not in configs[1]["config"] and configs[1]["config"]["StopSignal"] == "SIGRTMIN+3"
    assert configs[1]["rootfs"]["diff_ids"] == [shared.digest, own.digest]


def test_existing_layer_is_digested(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"abc")
    assert existing_layer(tmp_path / "l").digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()
