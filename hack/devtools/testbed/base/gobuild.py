"""Builds Go programs from committed go.mod and go.sum files into the cache, and reports compiled packages."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from devtools.testbed.base import shell, upstream_module, versions
from devtools.testbed.base.cache import cache_entry, content_key
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.progress import Reporter, Step

VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


@dataclass(frozen=True)
class Addition:
    """A file that a dependency lacks in the version that the module proxy has."""

    file: str
    """Below the program's module folder."""
    module: str
    """The path of the dependency."""
    folder: str
    """The folder of the package in it."""


@dataclass(frozen=True)
class Program:
    """The input of one ``go build``: the module folder under hack/go, and package path -> name of the binary."""

    module: str
    packages: Mapping[str, str]
    ldflags: str = "-s -w"
    kubernetes: str = ""
    """The version of Kubernetes whose own module files are used (`upstream_module`), "" for those of the folder."""
    tags: Sequence[str] = ()
    """Go's build tags."""
    addition: Addition | None = None

    @property
    def binaries(self) -> tuple[str, ...]:
        return tuple(self.packages.values())


def kubernetes_ldflags(version: str) -> str:
    """Linker flags that set the version, without which kubeadm fails and kubectl reports a wrong one."""
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = [f"-X {package}.gitVersion={version}" for package in VERSION_PACKAGES]
    stamps += [f"-X {VERSION_PACKAGES[0]}.gitMajor={major}", f"-X {VERSION_PACKAGES[0]}.gitMinor={minor}"]
    return " ".join(["-s -w", *stamps])


def helm_ldflags(version: str, kubernetes: str) -> str:
    """Linker flags that set Helm's version and the Kubernetes version that it assumes for an unknown cluster."""
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    stamps = [f"-X {p}.k8sVersionMajor={major} -X {p}.k8sVersionMinor={minor}" for p in packages]
    return " ".join(["-s -w", f"-X helm.sh/helm/v3/internal/version.version={version}", *stamps])


KUBERNETES_COMMANDS = (
    "kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
)  # fmt: skip


def kubernetes(minor: str, *commands: str) -> Program:
    """Kubernetes' commands in the version of ``minor``, a key of ``versions.KUBERNETES``; all of them by default."""
    version = versions.KUBERNETES[minor].version
    packages = {f"k8s.io/kubernetes/cmd/{name}": name for name in commands or KUBERNETES_COMMANDS}
    return Program(f"kubernetes-{minor}", packages, kubernetes_ldflags(version), version)


def kubectl(minor: str) -> Program:
    return kubernetes(minor, "kubectl")


KIND = Program("kind", {"sigs.k8s.io/kind": "kind"})
KWOK = Program("kwok", {"sigs.k8s.io/kwok/cmd/kwok": "kwok"})
HELM = Program(
    "helm",
    {"helm.sh/helm/v3/cmd/helm": "helm"},
    helm_ldflags(versions.HELM, versions.KUBERNETES[versions.DEFAULT_KUBERNETES].version),
)
KUEUE = Program(
    "kueue",
    {"sigs.k8s.io/kueue/cmd/kueue": "kueue"},
    f"-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion={versions.KUEUE}",
)
_CONTAINERD = "github.com/containerd/containerd/v2"
CONTAINERD_TAGS = ("no_btrfs", "no_devmapper", "no_tracing", "no_zfs", "urfave_cli_no_docs")
"""Without the snapshotters that no node uses here, as in kind's own build, and without what sends traces."""
CONTAINERD = Program(
    "containerd",
    {".": "containerd"} | {f"{_CONTAINERD}/cmd/{name}": name for name in ("containerd-shim-runc-v2", "ctr")},
    f"-s -w -X {_CONTAINERD}/version.Version={versions.CONTAINERD}",
    tags=CONTAINERD_TAGS,
)
VOLCANO = Program(
    "volcano",
    {f"volcano.sh/volcano/cmd/{name}": f"vc-{name}" for name in ("scheduler", "controller-manager")},
    f"-s -w -X volcano.sh/volcano/pkg/version.Version={versions.VOLCANO}",
    # the version of its API in go.mod is one before, and lacks a constant
    addition=Addition("apis/queue_allocation_gate.go", "volcano.sh/apis", "pkg/apis/scheduling/v1beta1"),
)
ETCD = Program("etcd", {".": "etcd"})
COREDNS = Program("coredns", {".": "coredns"})
PAUSE = Program("pause", {".": "pause"})


def parse_go_version(text: str) -> tuple[int, int] | None:
    """(1, 26) from ``go version go1.26.8 linux/amd64``."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def go_tool() -> str:
    """The path of the go command; raises ClusterError if none can build these modules."""
    wanted = ".".join(map(str, versions.GO_MINIMUM))
    fix = f"install Go {wanted} or newer (https://go.dev/doc/install) and put it on PATH"
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise ClusterError("go: not found; the kind node image cannot be pulled, and building Kubernetes needs Go", fix)
    found = parse_go_version(shell.run([go, "env", "GOVERSION"]).stdout)
    if found is None or found < (1, 21):  # since 1.21 go downloads the toolchain that a go.mod requires
        raise ClusterError(f"go is too old to fetch a newer toolchain by itself: {found}", fix)
    return go


def available() -> bool:
    """Whether there is a go command that can build the modules."""
    try:
        go_tool()
    except ClusterError:
        return False
    return True


def go_env() -> dict[str, str]:
    """Environment for static and reproducible builds.

    With read-only module files every download must match the committed go.sum, regardless of the user's GOSUMDB.
    """
    return {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false", "GOWORK": "off"}


def module_dir(go_dir: Path, module: str, path: str) -> Path:
    """Download and verify the module ``path``, required by the ``module`` here; returns its folder in the cache."""

    def go(*arguments: str) -> str:
        return shell.run([go_tool(), *arguments, path], cwd=go_dir / module, env=go_env()).stdout.strip()

    found = go("list", "-m", "-f", "{{.Dir}}")
    if not found:
        go("mod", "download")
        found = go("list", "-m", "-f", "{{.Dir}}")
    return Path(found)


def pin_kubernetes(go_dir: Path, minor: str) -> Path:
    """Write the checksums of a minor version of Kubernetes, as ``versions.KUBERNETES`` has it; returns the file."""
    program = kubernetes(minor)
    checksums = go_dir / program.module / "go.sum"
    upstream_module.pin(go_tool(), checksums, program.kubernetes)
    return checksums


def program_key(go_dir: Path, program: Program) -> str:
    """Changes with everything that goes into the binaries, except for the version of Go."""
    added = astuple(program.addition) if program.addition else ()
    inputs = (program.module, program.ldflags, *program.packages, *program.tags, *added)
    return content_key(*inputs, trees=[go_dir / program.module])


def program_dir(cache: Path, go_dir: Path, program: Program) -> Path:
    return cache / "go" / f"{program.module}-{program_key(go_dir, program)}"


def built(cache: Path, go_dir: Path, program: Program) -> bool:
    return _is_complete(program_dir(cache, go_dir, program), program)


def _is_complete(folder: Path, program: Program) -> bool:
    return all((folder / name).is_file() for name in program.binaries)


def build(cache: Path, go_dir: Path, program: Program, step: Step | None = None) -> Path:
    """Build the program unless it is cached; returns the folder of its binaries. ``step`` receives the progress."""

    target = program_dir(cache, go_dir, program)

    def make(partial: Path) -> None:
        go = go_tool()
        # An interrupted build goes on from its own compiled packages. They are gigabytes that no other program shares.
        compiled = target.with_name(f".compiled-{target.name}") if program.kubernetes else None
        with _module_folder(go, go_dir, program) as folder:
            partial.mkdir()
            _compile(go, folder, program, partial, step, compiled)
        for path, name in program.packages.items():
            made = program.module if path == "." else path.rpartition("/")[2]
            (partial / made).rename(partial / name)
        if compiled is not None:
            shutil.rmtree(compiled)

    return cache_entry(target, make, lambda found: _is_complete(found, program))


def build_step(cache: Path, go_dir: Path, program: Program, report: Reporter, name: str, title: str) -> Path:
    """The same as a step of a report, skipped if the program is cached."""
    with report.step(name, title) as step:
        if built(cache, go_dir, program):
            step.skip()
        return build(cache, go_dir, program, step)


@contextlib.contextmanager
def _module_folder(go: str, go_dir: Path, program: Program) -> Iterator[Path]:
    """The folder with the program's ``go.mod`` and ``go.sum``; paths of folders do not get into the binaries."""
    if not program.kubernetes and program.addition is None:
        yield go_dir / program.module
        return
    with tempfile.TemporaryDirectory() as folder:
        if program.addition is not None:
            _add(go, go_dir, program, program.addition, Path(folder))
        else:
            checksums = go_dir / program.module / "go.sum"
            upstream_module.write(go, checksums, program.kubernetes, Path(folder))
        yield Path(folder)


def _add(go: str, go_dir: Path, program: Program, addition: Addition, folder: Path) -> None:
    """Fill ``folder`` with the module files, and with a copy of the dependency that has the added file.

    The copy is of what go has compared with the committed checksums.
    """
    origin, copy = go_dir / program.module, folder / "dependency"
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(origin / name, folder / name)
    shutil.copytree(module_dir(go_dir, program.module, addition.module), copy)
    place = copy / addition.folder
    for path in (copy, *copy.rglob("*")):  # go's cache is read-only
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.copy(origin / addition.file, place)
    shell.run([go, "mod", "edit", f"-replace={addition.module}=./{copy.name}"], cwd=folder, env=go_env())


def _compile(go: str, folder: Path, program: Program, out: Path, step: Step | None, compiled: Path | None) -> None:
    """Build into ``out``; ``compiled`` is a build cache of this program alone, in place of the user's."""
    env = go_env() | ({"GOCACHE": str(compiled)} if compiled else {})
    tags = ("-tags", ",".join(program.tags)) if program.tags else ()
    # the packages that the build cache lacks; this downloads the modules that it needs
    stale = shell.run(
        [go, "list", "-deps", *tags, "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *program.packages],
        cwd=folder, env=env, fix="check that the Go module proxy (go env GOPROXY) is reachable",
    ).stdout.split()  # fmt: skip
    child = subprocess.Popen(
        [go, "build", "-v", *tags, "-ldflags", program.ldflags, "-o", f"{out}/", *program.packages],
        cwd=folder, env=shell.merged_env(env), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    lines: list[str] = []
    with child:
        assert child.stderr is not None
        try:
            for line in child.stderr:
                lines.append(line)
                if step is not None and stale:
                    step.update(len(lines), len(stale), "packages")
        except BaseException:
            child.terminate()
            raise
    if child.returncode != 0:
        raise ClusterError(f"go build of {program.module} failed ({child.returncode}):\n{shell.tail(''.join(lines))}")
