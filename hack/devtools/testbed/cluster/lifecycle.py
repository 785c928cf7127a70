"""``up``, ``down`` and their steps, in order. Each started component is recorded before another depends on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devtools.testbed.client import Client, Refused
from devtools.testbed.cluster import engine as engines
from devtools.testbed.cluster import (
    gobuild,
    kindcluster,
    kwok,
    machine,
    network,
    nodeimage,
    packages,
    process,
    registry,
    shell,
    slots,
    versions,
)
from devtools.testbed.cluster.engine import Engine
from devtools.testbed.cluster.errors import ClusterError
from devtools.testbed.cluster.kindcluster import Kind
from devtools.testbed.cluster.progress import Reporter
from devtools.testbed.cluster.settings import Settings
from devtools.testbed.cluster.state import State, StateFile

REGISTRY_HOST_NUMBER = 250
"""Offset of the registry's address in the private engine's subnet; Docker assigns addresses from the bottom."""

MOLECULE_CREATED = "molecule-created"
"""molecule's record that it has created the cluster, so that its destroy deletes it."""

LEAST_ROOM = 8 * 2**30
"""Bytes that a cluster writes when its images exist already: the node's own copy of each image, logs and etcd."""


@contextlib.contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Allow one command at a time to change a cluster; the kernel releases the lock when its holder exits."""
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    with (settings.state_dir / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another cluster command is running for this folder; waiting for it", flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


# ---- tools


def link(settings: Settings, name: str, target: Path) -> None:
    """Link a program into .cluster/bin."""
    settings.bin_dir.mkdir(parents=True, exist_ok=True)
    place = settings.bin_dir / name
    if place.is_symlink() and target.parent.resolve() / target.name == place:
        return  # found through the PATH of .cluster/env: the link would point to itself
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def ensure_tool(settings: Settings, program: gobuild.Program, report: Reporter, step_name: str, title: str) -> Path:
    go_dir = settings.node_dir / "go"
    with report.step(step_name, title) as step:
        if gobuild.built(settings.cache_dir, go_dir, program):
            step.skip()
        folder = gobuild.build(settings.cache_dir, go_dir, program, step)
    name = program.binaries[0]
    link(settings, name, folder / name)
    return folder / name


def compiled(settings: Settings, program: gobuild.Program, name: str) -> Path:
    """The first binary of a program beside the cluster, compiled if necessary. Starts the cluster if it is not up."""
    session = up(settings)
    with locked(settings):
        return ensure_tool(settings, program, session.report, name.lower(), f"{name}, compiled")


def ensure_kubectl(settings: Settings, report: Reporter) -> Path:
    """kubectl of the cluster's version: from the Kubernetes build if there is one, else built separately."""
    go_dir = settings.node_dir / "go"
    everything = gobuild.kubernetes(settings.kubernetes)
    if gobuild.built(settings.cache_dir, go_dir, everything):
        path = gobuild.program_dir(settings.cache_dir, go_dir, everything) / "kubectl"
        link(settings, "kubectl", path)
        return path
    return ensure_tool(settings, gobuild.kubectl(settings.kubernetes), report, "kubectl", "kubectl, compiled")


# ---- engine


@dataclass
class Session:
    """One command invocation: the settings, the recorded state, and the progress reporter."""

    settings: Settings
    file: StateFile
    state: State
    report: Reporter

    def record(self, **changes: object) -> None:
        self.state = self.file.save(self.state.replace(**changes))


def open_session(settings: Settings) -> Session:
    file = StateFile(settings.state_dir)
    return Session(settings, file, file.load(), Reporter(settings.cache_dir / "durations.json"))


def recorded_engine(session: Session) -> Engine | None:
    """The engine in the recorded state, if it responds."""
    if session.state.engine == "own":
        if not process.alive(session.state.supervisor):
            return None
        engine = engines.own_engine(session.settings, session.settings.bin_dir / "docker")
        return engine if engines.answers(engine) else None
    if session.state.engine == "user":
        env = {"DOCKER_HOST": session.state.docker_host} if session.state.docker_host else dict(os.environ)
        return engines.user_engine(env)
    return None


def users_engine_gone(settings: Settings) -> ClusterError:
    return ClusterError(
        "the Docker that this cluster was created on does not respond",
        f"start that Docker again; or, if it no longer exists, drop the cluster's record: rm -r {settings.state_dir}",
    )


def ensure_engine(session: Session) -> Engine:
    """The recorded engine, restarted if it has died; else the user's; else a new private engine."""
    settings, state = session.settings, session.state
    engine = recorded_engine(session)
    if engine is None and state.engine == "user":
        raise users_engine_gone(settings)
    if engine is None and not state.engine:
        engine = engines.user_engine(os.environ)
        if engine is not None:
            session.record(name=settings.name, engine="user", docker_host=os.environ.get("DOCKER_HOST", ""))
    if engine is None:
        engine = start_own_engine(session)
    link(settings, "docker", engine.docker)
    return engine


def start_own_engine(session: Session) -> Engine:
    settings = session.settings
    engines.require_rights()
    with session.report.step("engine", "Docker's packages, unpacked") as step:
        if (settings.cache_dir / "packages").is_dir() and list((settings.cache_dir / "packages").glob("engine-*")):
            step.skip()
        tree = engines.ensure_packages(settings)
    with session.report.step("engine-start", "Docker engine, started"):
        # an earlier engine may hang, or may have been killed while it stopped
        engines.stop(settings, session.state.supervisor)
        session.record(name=settings.name, engine="own")  # before the registration, which only `down` removes
        chosen = machine.enter(settings.ident, engines.PRIVATE_RUN_DIRS, lambda others: choose_block(session, others))
        session.record(block=chosen)
        claim = slots.claim(settings.cache_dir, settings.state_dir, session.state.slot)
        make_room(session)
        session.record(slot=claim.number, docker_host=f"unix://{settings.run_dir}/docker.sock")
        if claim.slot.is_foreign():
            engines.disarm(claim.slot.docker)
        block = network.Network(session.state.block)
        engines.start(settings, claim, block, lambda supervisor: session.record(supervisor=supervisor))
        if claim.slot.is_foreign():
            engines.remove_containers_and_volumes(engines.own_engine(settings))
            claim.slot.set_clean()
    if not network.add_egress(settings.nft_table, block, packages.tool_env(tree)):
        session.report.say("  note: this kernel has no nftables NAT; pods cannot reach anything outside the cluster")
    return engines.own_engine(settings)


def make_room(session: Session) -> None:
    """Once this cluster holds its own slot: remove what earlier clusters left in others, if the disk is nearly full."""
    settings = session.settings
    emptied = slots.make_room(settings.cache_dir)
    if emptied:
        session.report.say(
            f"  removed the images of {len(emptied)} earlier clusters from {settings.cache_dir / 'engines'}:"
            " the disk was nearly full"
        )
    free = slots.free_bytes(settings.cache_dir)
    if free < LEAST_ROOM:
        session.report.say(
            f"  warning: {free / 2**30:.1f} GiB are free in {settings.cache_dir}, and a cluster with all images writes"
            f" {LEAST_ROOM // 2**30} GiB: pods and the API server fail on a full disk"
        )


def choose_block(session: Session, others: list[str]) -> str:
    """The recorded block of this cluster, else one that neither ``others``, clusters that start, nor a route uses."""
    taken, block = [*network.routes(), *map(network.Network, others)], session.state.block
    if not block:
        return str(network.choose_block(taken))
    # after a crash the old bridge still has the block; after a reboot another network may use it
    if not network.link_exists(session.settings.bridge) and any(network.Network(block).overlaps(x) for x in taken):
        raise ClusterError(
            f"another network now uses the cluster's addresses {block}", "run cluster-down, then cluster"
        )
    return block


# ---- node image


def official_image(settings: Settings) -> str:
    return versions.KUBERNETES[settings.kubernetes].node_image


def has_image(engine: Engine, name: str) -> bool:
    return engine.run("image", "inspect", name, check=False).returncode == 0


def ensure_node_image(session: Session, engine: Engine) -> str:
    """Ensure that the engine has a node image: the user's, one built earlier, the official one, or one built now."""
    settings, report = session.settings, session.report
    if settings.node_image:
        if not has_image(engine, settings.node_image):
            with report.step("pull", f"{settings.node_image}, pulled"):
                engine.run("pull", "-q", settings.node_image, fix="load it into Docker, or unset KIND_NODE_IMAGE")
        return settings.node_image
    built = nodeimage.image_name(settings)
    if has_image(engine, built):
        return built
    archive = nodeimage.archive_path(settings)
    if not archive.is_file():
        official = official_image(settings)
        if has_image(engine, official):
            return official
        with report.step("pull", "official node image") as step:
            if engine.run("pull", "-q", official, check=False).returncode == 0:
                return official
            step.skip()
        report.say("  the official node image cannot be pulled here: building one (once)")
        report.expect([*nodeimage.plan(settings), "load", "registry", "create", "ready"])
        archive = nodeimage.build(settings, report)
        nodeimage.forget_older(settings)
    with report.step("load", "node image, loaded into Docker"):
        env = packages.tool_env(
            packages.unpack(settings.cache_dir, "build-tools", nodeimage.TOOL_PACKAGES, with_dependencies=True)
        )
        shell.pipe(["zstd", "-dcq", archive], [engine.docker, "load", "-q"], env=engine.env, producer_env=env)
        if engine.kind == "own":
            _forget_older_images(engine, built, settings.kubernetes)
    return built


def is_earlier(settings: Settings, node_image: str) -> bool:
    """Whether an image of a node was built here, from build files that have changed since."""
    return not settings.node_image and nodeimage.BUILT in node_image and node_image != nodeimage.image_name(settings)


def report_earlier(session: Session) -> None:
    """Say that the node stays as it is: a new one would have none of the cluster's objects."""
    session.report.say(
        f"  note: the node has the image {session.state.node_image}, whose build files have changed since;"
        " cluster-down, then cluster makes a node of the new ones"
    )


def _forget_older_images(engine: Engine, current: str, minor: str) -> None:
    """Remove the node images of this minor version built from earlier build files, unless a node uses them."""
    reference = f"reference=kindest/node:v{minor}.*{nodeimage.BUILT}*"
    listed = engine.run("images", "--filter", reference, "--format", "{{.Repository}}:{{.Tag}}")
    for name in listed.stdout.split():
        if name != current:
            engine.run("image", "rm", name, check=False)


# ---- registry


def registry_address(state: State) -> str:
    return str(network.cluster_subnet(network.Network(state.block))[REGISTRY_HOST_NUMBER]) if state.block else ""


def ensure_registry(session: Session, engine: Engine) -> None:
    with session.report.step("registry", "registry") as step:
        if not session.state.registry_port:
            session.record(registry_port=registry.free_port(session.state.slot))
        port = session.state.registry_port
        if registry.running(session.settings, engine) and registry.serves(port):
            step.skip()
            return
        registry.start(session.settings, engine, port, registry_address(session.state))


# ---- node


def ensure_node(session: Session, kind: Kind) -> None:
    """Ensure a Ready node: keep the running one, restart a stopped one, or create a new one."""
    settings, report = session.settings, session.report
    state = kindcluster.node_state(settings, kind.engine)
    if state and not session.state.creation:
        raise ClusterError(
            f"this Docker has a kind cluster {settings.name} that was not created from {settings.state_dir}",
            f"choose another name (DLJOB_CLUSTER_NAME=...), or remove it: kind delete cluster --name {settings.name}",
        )
    if state and session.state.creation == "done":
        if (
            state == "running"
            and settings.kubeconfig.exists()
            and kindcluster.serves(kind)
            and kindcluster.wait_ready(kind, 60)
        ):
            return
        with report.step("restart", "node, started again"):
            recovered = kindcluster.start_node(kind) and kindcluster.recovers(kind)
        if recovered:
            return
        report.say("  the node does not restart; creating a new one, all objects of the cluster are lost")
    if state:
        kindcluster.delete(kind)
    session.record(creation="begun")
    with report.step("create", "kind create cluster"):
        image = session.state.node_image
        own = image == nodeimage.image_name(kind.settings)
        kindcluster.create(kind, image or None, own_image=own)
    session.record(creation="done")
    with report.step("ready", "cluster DNS"):
        if not kindcluster.wait_ready(kind, 120):
            raise ClusterError(
                "the cluster's DNS is not ready in time",
                f"see {settings.log_dir} and kubectl -n kube-system get pods",
            )


# ---- kwok


def ensure_kwok(session: Session) -> None:
    """Restart kwok, if the recorded state has kwok nodes and it is not running."""
    state = session.state
    if state.kwok_nodes and not process.alive(state.kwok):
        kwok_nodes(session, state.kwok_nodes)


def kwok_nodes(session: Session, count: int) -> None:
    """Create or remove kwok nodes until there are ``count``; kwok runs while there is at least one."""
    settings = session.settings
    session.record(kwok_nodes=count)
    program = ensure_tool(settings, gobuild.KWOK, session.report, "kwok", "kwok, compiled") if count else None
    api = Client(settings.kubeconfig)
    try:
        if len(kwok.present(api)) > count or not process.alive(session.state.kwok):
            process.end(session.state.kwok, 10)
            session.record(kwok=None)
            kwok.remove_surplus(api, count)
        if program is not None:
            if session.state.kwok is None:
                session.record(kwok=kwok.start(settings, program))
            kwok.add_missing(api, count, timeout=60 + count // 5)
    except (Refused, OSError) as error:
        raise ClusterError(f"the API server does not answer: {error}", "see cluster-status") from error


# ---- the commands


def env_lines(settings: Settings, state: State) -> list[str]:
    """Shell commands that configure a shell for this cluster."""
    lines = [
        f"export KUBECONFIG='{settings.kubeconfig}'",
        f"export PATH='{settings.bin_dir}':\"$PATH\"",
        f"export DLJOB_REGISTRY='127.0.0.1:{state.registry_port}'",
        f"export DLJOB_CLUSTER_NODE='{settings.node}'",
    ]
    if state.docker_host:
        lines.append(f"export DOCKER_HOST='{state.docker_host}'")
    return lines


def open_kind(session: Session, engine: Engine) -> Kind:
    """Kind with the programs that ``up`` has linked, so that read-only commands never compile anything."""
    settings = session.settings
    program = settings.bin_dir / "kind"
    if not program.exists():
        program = ensure_tool(settings, gobuild.KIND, session.report, "tools", "kind, compiled")
    return Kind(settings, engine, program, settings.bin_dir / "kubectl")


def up(settings: Settings) -> Session:
    """Create the cluster, or start the parts of it that are down; returns when it is ready."""
    with locked(settings):
        session = open_session(settings)
        for folder in (settings.log_dir, settings.bin_dir, settings.certs_dir):
            folder.mkdir(parents=True, exist_ok=True)
        session.report.expect(["engine-start", "registry", "create", "ready"])
        engine = ensure_engine(session)
        ensure_tool(settings, gobuild.KIND, session.report, "tools", "kind, compiled")
        if kindcluster.node_state(settings, engine) == "" or session.state.creation != "done":
            session.record(node_image=ensure_node_image(session, engine))
        elif is_earlier(settings, session.state.node_image):
            report_earlier(session)
        ensure_kubectl(settings, session.report)
        kind = open_kind(session, engine)
        block = network.Network(session.state.block) if session.state.block else None
        kindcluster.ensure_network(settings, engine, network.cluster_subnet(block) if block else None)
        ensure_registry(session, engine)
        ensure_node(session, kind)
        ensure_kwok(session)
        (settings.state_dir / "env").write_text("\n".join(env_lines(settings, session.state)) + "\n")
        return session


def exists(settings: Settings) -> bool:
    """Whether a cluster was created, and not deleted since: one that does not answer now is still its owner's.

    Waits for another command that is creating it.
    """
    with locked(settings):
        return StateFile(settings.state_dir).load().creation == "done"


def down(settings: Settings) -> None:
    """Stop everything that ``up`` started, and the operators that molecule's scenarios started on it.

    Built programs, images and the registry's content stay in the cache.
    """
    with locked(settings):
        session = open_session(settings)
        state = session.state
        for record in settings.operator_records():
            process.end_recorded(record)
        engine = recorded_engine(session)
        if engine is None and state.engine == "user":
            raise users_engine_gone(settings)
        process.end(state.kwok, 10)
        if engine is not None:
            _delete_containers(session, engine)
            if state.slot is not None:
                slots.slot(settings.cache_dir, state.slot).release()
        if state.engine == "own":
            engines.stop(settings, state.supervisor)
            engines.remove_traces(settings)
            failed = machine.leave(settings.ident)
            if failed:
                session.report.say(f"  note: could not restore {', '.join(failed)}")
        session.file.remove()
        written = ("kubeconfig", "kubeconfig.lock", "env", "kind.yaml", "registry.yaml", "kwok.yaml", MOLECULE_CREATED)
        for name in written:
            (settings.state_dir / name).unlink(missing_ok=True)
        for folder in (settings.bin_dir, settings.certs_dir):
            shutil.rmtree(folder, ignore_errors=True)


def _delete_containers(session: Session, engine: Engine) -> None:
    settings = session.settings
    registry.collect_garbage(settings, engine)
    kindcluster.delete(open_kind(session, engine))
    engine.run("rm", "--force", "--volumes", settings.registry, check=False)
    engine.run("network", "rm", settings.network, check=False)


def existing(settings: Settings) -> tuple[Session, Kind]:
    """The running cluster's session, for commands that need one."""
    session = open_session(settings)
    engine = recorded_engine(session)
    if engine is None or kindcluster.node_state(settings, engine) != "running":
        raise ClusterError("no cluster is up", "make cluster")
    return session, open_kind(session, engine)


@dataclass(frozen=True)
class Part:
    """One line of the status: a component, whether it works, and details."""

    name: str
    good: bool
    detail: str


def status(settings: Settings) -> list[Part]:
    """The state of each component; starts and changes nothing."""
    session = open_session(settings)
    state = session.state
    if not state.engine:
        return [Part("cluster", False, "down")]
    engine = recorded_engine(session)
    owner = (
        "yours"
        if state.engine == "user"
        else f"started here, process {state.supervisor.pid if state.supervisor else '?'}"
    )
    parts = [Part("docker", engine is not None, f"{owner}, {state.docker_host or 'default host'}")]
    if engine is None:
        return parts
    node = kindcluster.node_state(settings, engine)
    parts.append(Part("node", node == "running", f"{settings.node}: {node or 'not created'}, {state.node_image}"))
    if node == "running":
        kind = open_kind(session, engine)
        ready = kindcluster.serves(kind)
        nodes = kindcluster.nodes(kind) if ready else []
        version = next(
            (n["status"]["nodeInfo"]["kubeletVersion"] for n in nodes if n["metadata"]["name"] == settings.node),
            "",
        )
        parts.append(Part("api", ready, f"{len(nodes)} nodes, Kubernetes {version or 'unknown'}"))
    port = state.registry_port
    parts.append(Part("registry", registry.serves(port), f"127.0.0.1:{port}"))
    if state.kwok_nodes:
        pid = state.kwok.pid if state.kwok else "?"
        parts.append(Part("kwok", process.alive(state.kwok), f"{state.kwok_nodes} nodes, process {pid}"))
    return parts
