"""Empty libraries in the place of CUDA's, for a torch that computes on the processor only.

PyPI's torch is linked with 3 GB of CUDA's libraries, without which it does not load. Where no device is, it calls
nothing of them. ``python cuda_stubs.py FOLDER`` writes one stub for each that torch in FOLDER needs and lacks, with
every symbol that torch takes from it, under the same version. It also empties the sections of code for GPUs, so that
the image's layer packs well. Needs gcc and readelf.

torch's own library of CUDA, libtorch_cuda.so, stays: torch.distributed creates one of its objects when it is imported.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

FOREIGN = re.compile(r"lib(cu|nv|nccl)")
"""Names of CUDA's libraries."""
FOREIGN_SYMBOL = re.compile(r"nccl|cu[A-Zs]|nv")
FATBIN = re.compile(r"\] (?:\.nv_fatbin|__nv_relfatbin) +\w+ +\w+ (\w+) (\w+)")
"""Offset and size of a section of code for GPUs."""


def readelf(path: Path) -> str:
    """The sections, the dynamic section, the versions and the dynamic symbols of a library."""
    command = ["readelf", "-SdVW", "--dyn-syms", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def versions(text: str) -> Mapping[str, str]:
    """The library from which each version of symbols is taken."""
    found = {}
    for library, block in re.findall(r"File: (\S+)  Cnt: \d+\n((?:.*Name: .*\n)+)", text):
        found.update(dict.fromkeys(re.findall(r"Name: (\S+)", block), library))
    return found


def undefined(text: str) -> Iterable[tuple[str, str]]:
    """Name and version, or "", of each symbol that a library takes from another."""
    return re.findall(r" UND ([^\s@]+)(?:@+(\S+))?", text)


def write(path: Path, by_version: Mapping[str, set[str]]) -> None:
    """Compile one stub. Its functions return the address of an empty page: an error that is not 0, or a false bool."""
    script = path.with_suffix(".map")
    named = {version: names for version, names in by_version.items() if version}
    script.write_text(
        "".join(f"{v} {{ global: {' '.join(f'{n};' for n in sorted(names))} }};\n" for v, names in named.items())
    )
    extra = [f"-Wl,--version-script={script}"] if named else []
    command = ["gcc", "-shared", "-fPIC", "-w", "-nostdlib", *extra, f"-Wl,-soname={path.name}", "-x", "c", "-"]
    functions = (f"void *{name}(void) {{ return page; }}\n" for names in by_version.values() for name in sorted(names))
    source = "static char page[4096] __attribute__((aligned(4096)));\n" + "".join(functions)
    subprocess.run([*command, "-o", path], input=source, text=True, check=True)
    script.unlink()


def main(folder: Path) -> None:
    lib = folder / "lib"
    texts = {path: readelf(path) for path in (*lib.glob("*.so*"), *folder.glob("_C*.so"))}
    own = {path.name for path in texts}
    needed = {name for text in texts.values() for name in re.findall(r"\(NEEDED\).*\[([^\]]+)\]", text)}
    stubs: dict[str, dict[str, set[str]]] = {name: {"": set()} for name in needed - own if FOREIGN.match(name)}
    for text in texts.values():
        origin = {version: library for version, library in versions(text).items() if library in stubs}
        for version, library in origin.items():
            stubs[library].setdefault(version, set())
        for name, version in undefined(text):
            if version in origin:
                stubs[origin[version]][version].add(name)
            elif not version and FOREIGN_SYMBOL.match(name):
                # the loader looks for a symbol without a version in all libraries: any stub may have it
                min(stubs.items())[1][""].add(name)
    for name, by_version in stubs.items():
        write(lib / name, by_version)
    for path, text in texts.items():
        for offset, size in FATBIN.findall(text):
            with path.open("r+b") as file:
                file.seek(int(offset, 16))
                file.write(bytes(int(size, 16)))
    print(f"stubs: {', '.join(sorted(stubs))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
