"""Completion for bash, zsh, fish and, as the program ``kubectl_complete-dljob``, kubectl.

``dljob __complete WORD...`` prints what may stand in place of the last word, one a line, and then a directive, as
programs of cobra do: kubectl asks its plugins so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from dljob import cli

_NO_FILES, _FILES = ":4", ":0"
"""Directives of cobra: whether names of files may follow too."""
_SCRIPTS = {
    "bash": """\
_dljob() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* ]] || COMPREPLY+=("$line")
  done < <(dljob __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _dljob dljob""",
    "zsh": """\
#compdef dljob
_dljob() {
  local -a found
  found=("${(@f)$(dljob __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -- ${found:#:*} || _files
}
compdef _dljob dljob""",
    "fish": """\
function __dljob
    set -l words (commandline -opc) (commandline -ct)
    dljob __complete $words[2..] 2>/dev/null | string match -v ':*'
end
complete -c dljob -a '(__dljob)'""",
}


def script(shell: str) -> str:
    """What a shell evaluates once: ``source <(dljob completion bash)``."""
    return _SCRIPTS[shell]


def answer(words: Sequence[str]) -> int:
    """Print the candidates for the last of ``words``."""
    found, directive = candidates(words or [""])
    for one in found:
        print(one)
    print(directive)
    return 0


def candidates(words: Sequence[str]) -> tuple[list[str], str]:
    """What may stand in place of the last word, and the directive."""
    *before, current = words
    if current == "=":  # bash takes a flag, the sign and the value as three words
        current = ""
    elif before and before[-1] == "=":
        before.pop()
    top = cli.parser()
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    name = next((word for word in before if not word.startswith("-")), "")
    if name not in commands.choices:
        return _starting(current, [*commands.choices, "--help", "--version"]), _NO_FILES
    command: argparse.ArgumentParser = commands.choices[name]
    options = {text: action for action in command._actions for text in action.option_strings}  # noqa: SLF001
    flag, given, value = current.partition("=")
    if given and flag in options:
        return [f"{flag}={one}" for one in _starting(value, _values(options[flag], before))], _NO_FILES
    if before and before[-1] in options and options[before[-1]].nargs != 0:
        if options[before[-1]].dest in ("filename", "kubeconfig"):
            return [], _FILES
        return _starting(current, _values(options[before[-1]], before)), _NO_FILES
    if current.startswith("-"):
        return _starting(current, [text for text in options if text.startswith("--") or len(current) < 2]), _NO_FILES
    positional = [action for action in command._actions if not action.option_strings]  # noqa: SLF001
    if not positional or positional[0].dest == "files":
        return [], _FILES
    return _starting(current, _values(positional[0], before)), _NO_FILES


def _values(action: argparse.Action, before: Sequence[str]) -> Iterable[str]:
    if action.choices:
        return list(action.choices)
    match action.dest:
        case "until":
            return ("finished", *cli.STATES)
        case "sort_by":
            return cli.SORT_KEYS
        case "kind":
            from dljob import kinds

            return sorted({name for kind in kinds.ALL for name in (kind.kind.lower(), kind.resource)})
        case "job" | "jobs" | "namespace" | "context":
            return _from_cluster(action.dest, before)
    return ()


def _from_cluster(what: str, before: Sequence[str]) -> list[str]:
    """Names of contexts, namespaces or jobs; none where the cluster does not tell."""
    from dljob import config
    from dljob.client import Client
    from dljob.errors import DljobError

    def option(*names: str) -> str | None:
        pairs = zip(before, [*before[1:], ""], strict=True)
        found = [value for word, value in pairs if word in names]
        found += [word.partition("=")[2] for word in before if word.partition("=")[0] in names and "=" in word]
        return found[-1] if found else None

    try:
        if what == "context":
            return config.contexts(option("--kubeconfig"))
        client = Client(option("--kubeconfig"), option("--context"), option("-n", "--namespace"))
        if what == "namespace":
            return [item["metadata"]["name"] for item in client.api.get("/api/v1/namespaces")["items"]]
        jobs = list(client.list())
        names = [job.name for job in jobs]
        return [job.name if names.count(job.name) == 1 else job.key for job in jobs]
    except DljobError:
        return []


def _starting(prefix: str, found: Iterable[str]) -> list[str]:
    return [one for one in found if one.startswith(prefix) and one.isprintable()]


def for_kubectl() -> NoReturn:
    """The program ``kubectl_complete-dljob``: its arguments are the words after ``kubectl dljob``."""
    sys.exit(answer(sys.argv[1:]))
