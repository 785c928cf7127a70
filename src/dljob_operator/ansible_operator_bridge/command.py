"""Parse the command lines with which ansible-operator starts ansible-runner, and their input directory.

Anything else raises UnsupportedRun with the reason, and the real ansible-runner handles it.
"""

from __future__ import annotations

import argparse
import functools
import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dljob_operator.engine.cache import nesting
from dljob_operator.variables import RESERVED, object_variable
from dljob_operator.watches import GVK

_UNSAFE = "__ansible_unsafe"
_KUBECONFIGS = frozenset({"KUBECONFIG", "K8S_AUTH_KUBECONFIG"})


class UnsupportedRun(Exception):
    """A run that only the real ansible-runner supports; the message is the reason."""


@dataclass(frozen=True)
class Command:
    """One `ansible-runner run`. `path` is the role's directory or the playbook's file."""

    folder: Path
    ident: str
    path: Path
    rotate: int = 0
    facts: bool = False
    verbosity: int = 0

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts" / self.ident


class JobNestedTooDeeply(Exception):
    """The object of a run is nested so deeply that the operator ignores it: there is nothing to run.

    `asked` is the run, `socket` and `path` are the destination of its events, as in `Input`.
    """

    def __init__(self, asked: Command, socket: str, path: str) -> None:
        super().__init__("the object is nested too deeply")
        self.asked = asked
        self.socket = socket
        self.path = path


@dataclass(frozen=True)
class Variables:
    """Extra variables by name, and the names of those with strings that must not be templated."""

    values: Mapping[str, Any]
    unsafe: frozenset[str]


@dataclass(frozen=True)
class Input:
    """The input that ansible-operator has written for the run.

    `wrapped` are the variables as they were written, with the wrappers of `markUnsafe`; `resource` is the object that
    the run is for, without them, `name` the variable that holds it; `socket` and `path` are the destination of events
    ("" for none).
    """

    wrapped: Mapping[str, Any]
    name: str
    resource: Mapping[str, Any]
    socket: str = ""
    path: str = "/"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UnsupportedRun(message)


def parse(argv: Sequence[str], cwd: Path) -> Command:
    """Read a command line. Raises UnsupportedRun for arguments that ansible-operator does not pass by default."""
    given = _parser().parse_args(list(argv))
    if bool(given.role) == bool(given.playbook):
        raise UnsupportedRun("exactly one of --role and -p is required")
    if "/" in given.ident or given.ident in ("", ".", ".."):
        raise UnsupportedRun(f"the ident {given.ident!r} is no name of a directory")
    path = given.playbook or given.roles_path / given.role
    return Command(
        cwd / given.folder,
        given.ident,
        cwd / path,
        given.rotate_artifacts,
        bool(given.role) and not given.role_skip_facts,
        given.verbosity,
    )


@functools.cache
def _parser() -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("action", choices=["run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rotate-artifacts", type=int, default=0)
    parser.add_argument("-i", "--ident", required=True)
    parser.add_argument("--role")
    parser.add_argument("--roles-path", type=Path, default=Path("roles"))
    parser.add_argument("--hosts", choices=["localhost"], default="localhost")
    parser.add_argument("--role-skip-facts", action="store_true")
    parser.add_argument("-p", "--playbook", type=Path)
    parser.add_argument("-v", action="count", default=0, dest="verbosity")
    return parser


def read(command: Command) -> Input:
    """Read the input directory.

    Raises UnsupportedRun for settings that ansible-operator does not write by default, and JobNestedTooDeeply.
    """
    env = command.folder / "env"
    if (env / "cmdline").exists():
        raise UnsupportedRun("--ansible-args: arguments for ansible-playbook")
    others = set(_mapping(env / "envvars")) - _KUBECONFIGS
    if others:
        raise UnsupportedRun(f"env/envvars sets {', '.join(sorted(others))}")
    settings = _mapping(env / "settings")
    socket = str(settings.get("runner_http_url") or "")
    if socket and not _is_socket(Path(socket)):
        raise UnsupportedRun(f"runner_http_url is no unix socket: {socket}")
    path = str(settings.get("runner_http_path") or "/")
    try:
        wrapped = _mapping(env / "extravars")
        name, resource = _job(wrapped, command.folder)
    except RecursionError:
        raise JobNestedTooDeeply(command, socket, path) from None
    if nesting.is_too_deep(resource):
        raise JobNestedTooDeeply(command, socket, path)
    return Input(wrapped, name, resource, socket, path)


def variables(given: Input, resource: Mapping[str, Any], fixed: Mapping[str, Any]) -> Variables:
    """Return the run's variables, with `resource` instead of the object in the input.

    Keys of the job's spec that begin with `ansible_` or `dljob_` are omitted, as in the embedded engine: as extra
    variables they could change the operator's connection or framework. The variables `fixed` from watches.yaml stay.
    """
    values, unsafe = {}, set()
    for name, value in given.wrapped.items():
        values[name], was_wrapped = _unwrap(value)
        if was_wrapped:
            unsafe.add(name)
    spec = values.get(f"{given.name}_spec")
    foreign = {key for key in spec if key.startswith(RESERVED)} if isinstance(spec, Mapping) else set()
    kept = {name: value for name, value in values.items() if name not in foreign - set(fixed)}
    new_spec = resource.get("spec")
    kept |= {given.name: resource, f"{given.name}_spec": new_spec if isinstance(new_spec, Mapping) else {}}
    return Variables(kept, frozenset(unsafe))


def _job(wrapped: Mapping[str, Any], folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Find the object, in the variable of the kind that the folder .../<group>/<version>/<kind>/<namespace>/<name> has.

    Keys of a spec are variables too, and may look like the object of another kind. The kind's own variable they cannot
    replace, since ansible-operator sets it last.
    """
    group, _, kind = ("", "", "", *folder.parts)[-5:-2]
    own = object_variable(GVK(group, "", kind))
    for name in (own, *wrapped):
        value = wrapped.get(name)
        if name.startswith("_") and f"{name}_spec" in wrapped and isinstance(value, Mapping) and "metadata" in value:
            return name, _unwrap(value)[0]
    raise UnsupportedRun("env/extravars contains no object, so this is no run of ansible-operator")


def _mapping(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UnsupportedRun(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise UnsupportedRun(f"{path} is no mapping")
    return found


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _unwrap(value: Any) -> tuple[Any, bool]:
    """Remove the wrappers that `markUnsafe` puts around strings; return whether there were any."""
    if isinstance(value, dict):
        if set(value) == {_UNSAFE}:
            return _unwrap(value[_UNSAFE])[0], True
        pairs = {key: _unwrap(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, any(wrapped for _, wrapped in pairs.values())
    if isinstance(value, list):
        items = [_unwrap(item) for item in value]
        return [item for item, _ in items], any(wrapped for _, wrapped in items)
    return value, False
