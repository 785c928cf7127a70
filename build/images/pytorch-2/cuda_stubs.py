"""Empty libraries in the place of CUDA's, for a torch that computes on the processor only.

PyPI's torch is linked with CUDA's libraries, so that it does not load without them, and calls nothing of them where no
device is. ``python cuda_stubs.py FOLDER`` writes one library for each that those in FOLDER need and lack, and replaces
torch's own CUDA kernels. A stub has every symbol that the other libraries take from it, under the same version. Needs
gcc and readelf.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

FOREIGN = re.compile(r"lib(cu|nv|nccl)")
"""Names of CUDA's libraries."""
KERNELS = ("libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so")
"""torch's own libraries that only a GPU needs."""
OBJECT_BYTES = 4096
"""Size of a variable: more than that of any that torch takes from another library."""


def readelf(path: Path) -> str:
    """The dynamic section, the versions and the dynamic symbols of a library."""
    return subprocess.run(["readelf", "-dVW", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout


def needed(text: str) -> list[str]:
    """The names of the libraries that a library loads."""
    return re.findall(r"\(NEEDED\).*\[([^\]]+)\]", text)


def symbols(text: str) -> Iterable[tuple[bool, str, str, str]]:
    """Of each dynamic symbol: whether the library defines it, its type, its name, and its version or ""."""
    for kind, place, name, version in re.findall(
        r"^ *\d+: \S+ +\S+ (\w+) +\w+ +\w+ +(\w+) ([^\s@]+)(?:@+(\S+))?", text, re.MULTILINE
    ):
        yield place != "UND", kind, name, version


def versions(text: str) -> Mapping[str, str]:
    """The library from which each version of symbols is taken."""
    found = {}
    for library, block in re.findall(r"File: (\S+)  Cnt: \d+\n((?:.*Name: .*\n)+)", text):
        found.update(dict.fromkeys(re.findall(r"Name: (\S+)", block), library))
    return found


def source(wanted: Mapping[str, str]) -> str:
    """C for the symbols, each with its type: a function that returns an error, or an empty variable."""
    lines = []
    for name, kind in sorted(wanted.items()):
        if kind == "TLS":
            lines.append(f"__thread char {name}[64];")
        elif kind == "OBJECT":
            lines.append(f"char {name}[{OBJECT_BYTES}];")
        else:
            lines.append(f"int {name}(void) {{ return 1; }}")
    return "\n".join(lines)


def write(path: Path, by_version: Mapping[str, Mapping[str, str]]) -> None:
    """Compile one stub with the symbols of each version."""
    script = path.with_suffix(".map")
    named = {version: wanted for version, wanted in by_version.items() if version}
    script.write_text(
        "".join(f"{v} {{ global: {' '.join(f'{n};' for n in sorted(w))} }};\n" for v, w in named.items())
    )
    extra = [f"-Wl,--version-script={script}"] if named else []
    command = ["gcc", "-shared", "-fPIC", "-w", "-nostdlib", *extra, f"-Wl,-soname={path.name}", "-x", "c", "-"]
    wanted = {name: kind for symbols_ in by_version.values() for name, kind in symbols_.items()}
    subprocess.run([*command, "-o", path], input=source(wanted), text=True, check=True)
    script.unlink()


def main(folder: Path) -> None:
    lib = folder / "lib"
    texts = {path: readelf(path) for path in (*lib.glob("*.so*"), *folder.glob("_C*.so"))}
    kernels = {path: text for path, text in texts.items() if path.name in KERNELS}
    kept = {path: text for path, text in texts.items() if path not in kernels}
    own = {path.name for path in kept}
    missing = {name for text in kept.values() for name in needed(text) if name not in own and FOREIGN.match(name)}
    missing |= {path.name for path in kernels}
    owner = {name: path.name for path, text in kernels.items() for here, _, name, _ in symbols(text) if here}
    types = {name: kind for text in kernels.values() for here, kind, name, _ in symbols(text) if here}
    stubs: dict[str, dict[str, dict[str, str]]] = {name: {"": {}} for name in missing}
    unversioned: dict[str, str] = {}
    for text in kept.values():
        origin = versions(text)
        for version, library in origin.items():
            if library in missing:
                stubs[library].setdefault(version, {})
        for here, kind, name, version in symbols(text):
            if here:
                continue
            if origin.get(version) in missing:
                stubs[origin[version]][version][name] = kind
            elif not version and name in owner:
                stubs[owner[name]][""][name] = types[name]
            elif not version and re.match("nccl|cu[A-Zs]|cudnn|nv", name):
                unversioned[name] = kind
    # those without a version may be in any library: the loader looks through all
    first = sorted(missing - {path.name for path in kernels})[0]
    stubs[first][""].update(unversioned)
    for path in kernels:
        path.unlink()
    for name, by_version in stubs.items():
        write(lib / name, by_version)
    print(f"{len(stubs)} stubs: {', '.join(sorted(stubs))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
