"""Pins, pip's command, and single files of wheels."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from devtools.build.images import definition, wheels
from devtools.build.images.errors import ImagesError
from devtools.testbed.base.errors import ClusterError


def test_pins_are_read_without_their_reasons() -> None:
    text = "# all\nmxnet==1.9.1   # the framework; the last\n\n numpy==1.23.5\n"
    assert wheels.pins(text, "3.11") == ("mxnet==1.9.1", "numpy==1.23.5")


def test_markers_are_read_for_the_images_python() -> None:
    text = """a==2; python_version >= "3.12"  # the newest\na==1; python_version < "3.12"   # the newest for 3.9\n"""
    assert [wheels.pins(text, python) for python in ("3.9", "3.11", "3.12")] == [("a==1",), ("a==1",), ("a==2",)]


def test_a_requirement_without_a_pin_is_refused() -> None:
    with pytest.raises(ImagesError, match="numpy>=1: not a pinned requirement"):
        wheels.pins("numpy>=1", "3.11")


def test_every_pin_of_this_repository_has_its_reason() -> None:
    for image in definition.load_all():
        if image.requirements is None:
            continue
        for line in image.requirements.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                assert line.partition("#")[2].strip(), f"{image.requirements}: {line}"


def test_wheels_are_chosen_for_the_image_not_for_the_host() -> None:
    command = wheels.download_command(["numpy==1.23.5"], "3.9", "aarch64", Path("/t"))
    assert "--python-version=3.9" in command
    assert {"--abi=cp39", "--abi=abi3", "--abi=none"} <= set(command)
    assert "--platform=manylinux_2_17_aarch64" in command
    assert not any("x86_64" in word for word in command)
    assert command[-1] == "numpy==1.23.5"


def test_the_place_of_wheels_depends_on_all_that_decides_them(tmp_path: Path) -> None:
    places = {
        wheels.folder(tmp_path, requirements, python, machine)
        for requirements in (["a==1"], ["a==2"], ["a==1", "b==1"])
        for python in ("3.9", "3.11")
        for machine in ("x86_64", "aarch64")
    }
    assert len(places) == 12


def test_a_failed_download_leaves_nothing_that_looks_done(tmp_path: Path) -> None:
    missing = ["file:///no-such-folder/x-1-py3-none-any.whl"]
    with pytest.raises(ClusterError, match="pip download") as failed:
        wheels.download(tmp_path, missing, "3.11")
    assert "has a wheel for this machine" in failed.value.fix
    assert not wheels.folder(tmp_path, missing, "3.11", os.uname().machine).exists()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "data-1-py3-none-any.whl", "w") as archive:
        archive.writestr("data.libs/libx-0a1b.so.1.0.0", "library")
        archive.writestr("data.libs/sub/libx-0a1b.so.1.0.0", "deeper")
        archive.writestr("data/a.csv", "a")
        archive.writestr("data/b.csv", "b")
    return tmp_path


def test_one_file_is_taken_out(folder: Path) -> None:
    wheels.extract(folder, "data.libs/libx-*.so*", folder / "out/lib/libx.so.1")
    assert (folder / "out/lib/libx.so.1").read_text() == "library"


def test_a_folder_is_taken_out(folder: Path) -> None:
    wheels.extract(folder, "data.libs/", folder / "out")
    found = {str(p.relative_to(folder / "out")) for p in (folder / "out").rglob("*") if p.is_file()}
    assert found == {"libx-0a1b.so.1.0.0", "sub/libx-0a1b.so.1.0.0"}


def test_a_missing_folder(folder: Path) -> None:
    with pytest.raises(ImagesError, match="no file in lib/"):
        wheels.extract(folder, "lib/", folder / "out")


def test_a_folder_is_taken_out_of_a_source_archive(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "client-1.tar.gz", "w:gz") as archive:
        for name in ("setup.py", "src/client/__init__.py", "src/client/sub/one.py"):
            member = tarfile.TarInfo(f"client-1/{name}")
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    wheels.extract(tmp_path, "src/client/", tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p.read_text() for p in (tmp_path / "out").rglob("*.py")}
    assert found == {"__init__.py": "src/client/__init__.py", "sub/one.py": "src/client/sub/one.py"}


def test_a_source_archive_is_asked_for_and_kept_apart(tmp_path: Path) -> None:
    command = wheels.download_command(["client==1"], "3.11", "x86_64", Path("/t"), sdist=True)
    assert "--no-binary=:all:" in command
    assert "--only-binary=:all:" not in command
    wheel, source = (wheels.folder(tmp_path, ["client==1"], "3.11", "x86_64", sdist=sdist) for sdist in (False, True))
    assert wheel != source


@pytest.mark.parametrize(("pattern", "count"), [("data/*.csv", 2), ("data/c.csv", 0)])
def test_not_exactly_one_file_is_refused(folder: Path, pattern: str, count: int) -> None:
    with pytest.raises(ImagesError, match=f"{count} files match"):
        wheels.extract(folder, pattern, folder / "out")
