"""Builds kind's node image from package registries: Debian, Go modules, and the base files in kind's own module.

The counterpart of ``kind build node-image``, which starts from images in a container registry.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from devtools.testbed.base import gobuild, process, shell, versions
from devtools.testbed.base.cache import cache_entry, content_key
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.settings import Settings
from devtools.testbed.offline import notify, packages
from devtools.testbed.offline.imagetar import DEFAULT_PATH, Image, Layer, existing_layer, write_archive, write_layer

NODE_PACKAGES = (
    # the packages of kind's base image, with Debian's runc and network plugins instead of kind's builds, with crun, and
    # without the storage clients (NFS, iSCSI), which are not used here
    "systemd", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", "libseccomp2",
    "bash", "ca-certificates", "curl", "jq", "procps", "runc", "crun", "containernetworking-plugins", "socat",
)  # fmt: skip
KUBE_PROXY_PACKAGES = (
    "iptables", "nftables", "conntrack", "libc6", "base-files", "kmod", "coreutils", "bash", "dash",
)  # fmt: skip
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
IPTABLES = tuple(f"{family}{action}" for family in ("iptables", "ip6tables") for action in ("", "-save", "-restore"))
BUILT = "-dljob-"
"""In the tags of the images that are built here."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
UNUSED_PLUGINS = (
    "grpc.v1.cri", "cri.v1.images", "cri.v1.runtime", "nri.v1.nri", "internal.v1.opt", "snapshotter.v1.blockfile",
    "snapshotter.v1.erofs",
)  # fmt: skip
"""Of a containerd that only stores images: CRI, plugins of others, snapshotters that need the machine."""


def architecture() -> str:
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


# ---- names, by content


def image_key(settings: Settings) -> str:
    """Changes with everything that goes into the node image from this repository or from the host's release."""
    host, here = packages.distribution(), Path(__file__).parent
    return content_key(
        version(settings), versions.KIND, architecture(), host.id, host.version, *NODE_PACKAGES, *KUBE_PROXY_PACKAGES,
        *(gobuild.program_key(settings.go_dir, program) for program in programs(settings).values()),
        trees=[
            settings.go_dir / "kind", settings.node_dir / "files", settings.node_dir / "setup.sh",
            here / "nodeimage.py", here / "imagetar.py",
        ],
    )  # fmt: skip


def version(settings: Settings) -> str:
    """The version of Kubernetes in an image that is built here."""
    return versions.KUBERNETES[settings.kubernetes].version


def programs(settings: Settings) -> dict[str, gobuild.Program]:
    """The Go programs of the image, by the name of the step that builds them."""
    return {
        "kubernetes": gobuild.kubernetes(settings.kubernetes),
        "containerd": gobuild.CONTAINERD,
        "coredns": gobuild.COREDNS,
        "etcd": gobuild.ETCD,
        "pause": gobuild.PAUSE,
    }


def image_name(settings: Settings) -> str:
    return f"kindest/node:{version(settings)}{BUILT}{image_key(settings)}"


def archive_path(settings: Settings) -> Path:
    return settings.cache_dir / "node" / f"node-{settings.kubernetes}-{image_key(settings)}.tar.zst"


def rootfs_path(settings: Settings, variant: str, include: Sequence[str]) -> Path:
    host = packages.distribution()
    return settings.cache_dir / "rootfs" / f"{variant}-{content_key(host.id, host.version, variant, *include)}.tar"


def is_earlier(settings: Settings, node_image: str) -> bool:
    """Whether an image of a node was built here, from build files that have changed since."""
    return not settings.node_image and BUILT in node_image and node_image != image_name(settings)


def forget_older(settings: Settings) -> None:
    """Remove the archives of earlier node images: a changed line in one of its files makes a new one of 300 MB.

    Those of other minor versions of Kubernetes stay.
    """
    current = archive_path(settings)
    for archive in current.parent.glob(f"node-{settings.kubernetes}-*.tar.zst"):
        if archive != current:
            archive.unlink(missing_ok=True)


# ---- what others have written, read


def pinned_images(listing: str) -> dict[str, str]:
    """Short name (``etcd``, ``coredns`` ...) -> full name, from the output of ``kubeadm config images list``."""
    names = [line.strip() for line in listing.splitlines() if re.fullmatch(r"\S+/\S+:\S+", line.strip())]
    return {name.rpartition("/")[2].rpartition(":")[0]: name for name in names}


def sandbox_image(containerd_config: str) -> str:
    """The pause image that kind's containerd configuration names."""
    match = re.search(r'^\s*sandbox_image\s*=\s*"([^"]+)"', containerd_config, re.MULTILINE)
    if match is None:
        fix = f"this tool expects kind {versions.KIND}"
        raise ClusterError("kind's containerd configuration names no sandbox image", fix)
    return match[1]


def containerd_config(root: Path, state: Path) -> str:
    """A containerd that only stores images."""
    disabled = ", ".join(f'"io.containerd.{name}"' for name in UNUSED_PLUGINS)
    return (
        f'version = 3\nroot = "{root}"\nstate = "{state}"\ndisabled_plugins = [{disabled}]\n'
        f'[grpc]\n  address = "{state}/containerd.sock"\n'
    )


# ---- the build


def plan(settings: Settings) -> list[str]:
    """The steps of a build that the cache does not spare."""
    cache, go_dir = settings.cache_dir, settings.go_dir
    steps = [
        name
        for name, program in programs(settings).items()
        if name != "pause" and not gobuild.built(cache, go_dir, program)
    ]
    tars = (rootfs_path(settings, "minbase", NODE_PACKAGES), rootfs_path(settings, "extract", KUBE_PROXY_PACKAGES))
    return [*steps, *([] if all(tar.is_file() for tar in tars) else ["rootfs"]), "assemble"]


def build(settings: Settings, report: Reporter) -> Path:
    """The node image as a compressed ``docker save`` archive; built unless the cache has it. Needs root."""
    archive = archive_path(settings)
    if archive.is_file():
        return archive
    if os.geteuid() != 0:
        raise ClusterError(
            "kindest/node cannot be pulled, and building the node image needs root",
            "run once as root, or set KIND_NODE_IMAGE to a node image that your Docker has",
        )
    packages.require_apt()
    binaries = _programs(settings, report)
    with report.step("rootfs", "Debian for the node, by mmdebstrap") as step:
        if "rootfs" not in plan(settings):
            step.skip()
        tools = packages.build_tools(settings.cache_dir)
        node_tar = _debian(settings, tools, "minbase", NODE_PACKAGES)
        proxy_tar = _debian(settings, tools, "extract", KUBE_PROXY_PACKAGES)
    with report.step("assemble", "node image"):
        _assemble(settings, tools, binaries, node_tar, proxy_tar, archive)
    return archive


def load(settings: Settings, engine: Engine, archive: Path) -> None:
    """Load a built image. The private engine then loses those built from earlier files, unless a node uses one."""
    shell.pipe(
        ["zstd", "-dcq", archive], [engine.docker, "load", "-q"], env=engine.env,
        producer_env=packages.build_tools(settings.cache_dir),
    )  # fmt: skip
    if engine.kind != "own":
        return
    reference = f"reference=kindest/node:v{settings.kubernetes}.*{BUILT}*"
    listed = engine.run("images", "--filter", reference, "--format", "{{.Repository}}:{{.Tag}}")
    for name in listed.stdout.split():
        if name != image_name(settings):
            engine.run("image", "rm", name, check=False)


def _programs(settings: Settings, report: Reporter) -> dict[str, Path]:
    """Build all Go programs of the image; name -> file."""
    titles = {
        "kubernetes": f"Kubernetes {version(settings)}",
        "containerd": f"containerd {versions.CONTAINERD}",
        "coredns": "CoreDNS",
    }
    binaries = {}
    for name, program in programs(settings).items():
        title = f"{titles.get(name, name)}, compiled"
        folder = gobuild.build_step(settings.cache_dir, settings.go_dir, program, report, name, title)
        binaries.update({binary: folder / binary for binary in program.binaries})
    return binaries


def _debian(settings: Settings, env: Mapping[str, str], variant: str, include: Sequence[str]) -> Path:
    """A root file system as a tar file in the cache."""
    codename = packages.distribution().codename

    def make(partial: Path) -> None:
        sources = packages.apt_sources()
        shell.run(packages.mmdebstrap_command(variant, include, codename, partial, sources), env=env)

    return cache_entry(rootfs_path(settings, variant, include), make)


def _assemble(
    settings: Settings,
    env: Mapping[str, str],
    binaries: Mapping[str, Path],
    node_tar: Path,
    proxy_tar: Path,
    archive: Path,
) -> None:
    for left in (settings.cache_dir / "work").glob("node-*"):
        if process.identify(int(left.name.removeprefix("node-"))) is None:  # it was killed
            shutil.rmtree(left, ignore_errors=True)
    work = settings.cache_dir / "work" / f"node-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    root = work / "root"
    root.mkdir(parents=True)
    try:
        shell.run(["tar", "-C", root, "-xpf", node_tar])
        _install(settings, root, binaries)
        listing = shell.run(
            [binaries["kubeadm"], "config", "images", "list", "--kubernetes-version", version(settings)]
        )
        sandbox = sandbox_image((root / "etc/containerd/config.toml").read_text())
        images = _control_plane(work, binaries, proxy_tar, pinned_images(listing.stdout), sandbox)
        _preload(work, root, images, binaries, env)
        _save(work, root, settings, archive, env)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _install(settings: Settings, root: Path, binaries: Mapping[str, Path]) -> None:
    """Everything that is a file, then the setup script inside."""
    kind_files = gobuild.module_dir(settings.go_dir, "kind", "sigs.k8s.io/kind") / "images/base/files"
    for tree in (kind_files, settings.node_dir / "files"):
        _copy_tree(tree, root, ("usr/local/bin", "kind/bin"))
    places = dict.fromkeys(("kubeadm", "kubelet", "kubectl"), "usr/bin")
    places |= dict.fromkeys(gobuild.CONTAINERD.binaries, "usr/local/bin")  # the place in kind's unit
    for name, folder in places.items():
        shutil.copyfile(binaries[name], root / folder / name)
        (root / folder / name).chmod(0o755)
    (root / "kind/version").write_text(version(settings))
    setup = root / "setup.sh"
    shutil.copyfile(settings.node_dir / "setup.sh", setup)
    with _devices(root):
        path = {"PATH": DEFAULT_PATH.removeprefix("PATH=")}
        shell.run(["chroot", root, "/bin/bash", "/setup.sh"], env=path)
    setup.unlink()


def _copy_tree(source: Path, target: Path, executable_dirs: Sequence[str]) -> None:
    """Copy files as kind's Dockerfile does: scripts 0755, the rest 0644, writable unlike those of a module cache."""
    for file in sorted(p for p in source.rglob("*") if p.is_file()):
        relative = file.relative_to(source)
        place = target / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        place.chmod(0o755 if str(relative.parent) in executable_dirs else 0o644)


@contextlib.contextmanager
def _devices(root: Path) -> Iterator[None]:
    """A /dev/null while the setup script runs; the image itself has an empty /dev."""
    null = root / "dev/null"
    null.parent.mkdir(exist_ok=True)
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    try:
        yield
    finally:
        null.unlink()


def _control_plane(
    work: Path, binaries: Mapping[str, Path], proxy_tar: Path, pinned: Mapping[str, str], sandbox: str
) -> list[Image]:
    """The images that kubeadm and containerd would pull, under the names by which they ask for them."""

    def program(name: str, place: str = "usr/local/bin/", **links: str) -> Layer:
        return write_layer(work / f"{name}.layer", {f"{place}{name}": binaries[name]}, links)

    images = [Image((pinned[name],), (program(name),)) for name in (*CONTROL_PLANE, "etcd")]
    images.append(Image((pinned["coredns"],), (program("coredns", place=""),), ("/coredns",)))
    pause = tuple(dict.fromkeys((pinned["pause"], sandbox)))
    images.append(Image(pause, (program("pause", place=""),), ("/pause",)))
    links = {f"usr/sbin/{name}": "xtables-nft-multi" for name in IPTABLES}
    images.append(Image((pinned["kube-proxy"],), (existing_layer(proxy_tar), program("kube-proxy", **links))))
    return images


def _preload(
    work: Path, root: Path, images: Sequence[Image], binaries: Mapping[str, Path], env: Mapping[str, str]
) -> None:
    """Import the images into the node's containerd store, with the node's containerd, which runs for just that."""
    archive, state, config = work / "images.tar", work / "state", work / "containerd.toml"
    with archive.open("wb") as stream:
        write_archive(stream, images, architecture())
    state.mkdir()
    config.write_text(containerd_config(root / "var/lib/containerd", state))
    command: list[str | Path] = [binaries["containerd"], "--config", config]
    child = notify.start(command, work / "containerd.log", work / "ready.sock", 60, shell.merged_env(env))
    try:
        ctr: list[str | Path] = [binaries["ctr"], "--address", f"{state}/containerd.sock", "--namespace", "k8s.io"]
        shell.run([*ctr, "images", "import", "--all-platforms", "--no-unpack", archive], env=env)
    finally:
        process.end(process.identity(child), 10)
        child.wait()
    archive.unlink()
    for leftover in ("io.containerd.runtime.v2.task", "io.containerd.sandbox.controller.v1.shim", "tmpmounts"):
        shutil.rmtree(root / "var/lib/containerd" / leftover, ignore_errors=True)


def _save(work: Path, root: Path, settings: Settings, archive: Path, env: Mapping[str, str]) -> None:
    """Pack the root file system as a one-layer image and compress the archive into its place in the cache."""
    tar = work / "node.layer"
    shell.run(["tar", "-C", root, "--numeric-owner", "--sort=name", "-cf", tar, "."])
    image = Image(
        (image_name(settings),), (existing_layer(tar),), ("/usr/local/bin/entrypoint", "/sbin/init"),
        ("container=docker", DEFAULT_PATH), {"StopSignal": "SIGRTMIN+3"},
    )  # fmt: skip

    def compress(partial: Path) -> None:
        command = ["zstd", "-q", "-3", "-T0", "-o", str(partial)]
        zstd = subprocess.Popen(command, stdin=subprocess.PIPE, env=shell.merged_env(env))
        with contextlib.suppress(BrokenPipeError), zstd:  # of a zstd that has failed; its exit status says so below
            assert zstd.stdin is not None
            write_archive(zstd.stdin, [image], architecture())
        if zstd.returncode != 0:
            raise ClusterError("zstd could not write the node image", f"check the free space in {archive.parent}")

    cache_entry(archive, compress)
