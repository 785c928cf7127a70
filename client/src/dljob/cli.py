"""The command line ``dljob``, which kubectl finds as ``kubectl dljob``. Flags are named as kubectl's.

Modules that take long to load are imported where they are needed: ``dljob --help`` starts without the API client.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dljob import __version__

if TYPE_CHECKING:
    from dljob.client import Change, Client
    from dljob.view import JobView

OK, ERROR, USAGE, NOT_FOUND, DENIED, NO_CLUSTER, TIMEOUT, JOB_FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130
STATES = (
    *("Queued", "Suspended", "Created", "Starting", "Running"),
    *("Restarting", "Succeeded", "Failed", "Invalid", "Deleting"),
)
SORT_KEYS = (
    *("namespace", "name", "kind", "state", "ready", "gpus", "cpu"),
    *("memory", "restarts", "queue", "running", "progress", "age", "user"),
)
GROUPS = ("namespace", "user", "queue", "kind", "framework", "node")
HISTORY_GROUPS = ("namespace", "user", "queue", "kind", "cluster")
FRAMEWORKS = ("pytorch", "tensorflow", "jax", "mpi", "mxnet", "paddle", "xgboost", "caffe2")
TARGETS = ("kubeflow.org/v1", "dljob", "trainjob")
FORMATS = ("wide", "name", "json", "yaml")
_EPILOG = """\
exit codes:
  0 done  1 refused or failed  2 wrong usage  3 no such job or kind  4 a right or a login is missing
  5 no usable kubeconfig, or the cluster does not answer  6 timeout  7 the job failed  130 interrupted
"""


class _Command(argparse.ArgumentParser):
    """The parser of one command, which takes its words and options in any order, as kubectl does."""

    _is_within = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._is_within:
            return super().parse_known_args(args, namespace)
        self._is_within = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False


def parser() -> argparse.ArgumentParser:
    """The command line."""
    of_cluster = _Command(add_help=False)
    of_cluster.add_argument("--kubeconfig", metavar="FILE", help="(default: KUBECONFIG, ~/.kube/config)")
    of_cluster.add_argument("--context", metavar="NAME", help="a context of the kubeconfig (default: the current one)")
    of_cluster.add_argument("-n", "--namespace", metavar="NAME", help="(default: that of the context)")
    shown = _Command(add_help=False)
    shown.add_argument("-o", "--output", choices=FORMATS, help="another form than the table")
    one = _Command(add_help=False)
    one.add_argument("job", metavar="JOB", help="NAME, or KIND/NAME as in tfjob/digits")
    several = _Command(add_help=False)
    several.add_argument("jobs", metavar="JOB", nargs="+", help="NAME, or KIND/NAME as in tfjob/digits")

    whole = argparse.ArgumentParser(
        prog="dljob",
        description="Shows and steers distributed training jobs of all kinds on Kubernetes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"dljob {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Command)

    def command(name: str, help_: str, *parents: _Command) -> _Command:
        return commands.add_parser(
            name,
            help=help_,
            description=f"{help_[0].upper()}{help_[1:]}.",
            parents=[of_cluster, *parents],
            allow_abbrev=False,
        )

    lists = command("list", "list the jobs of all kinds, or of one", shown)
    lists.add_argument("kind", metavar="KIND", nargs="?", help="such as tfjob, ptj or mxjobs.kubeflow.org")
    lists.add_argument("-A", "--all-namespaces", action="store_true", help="the jobs of all namespaces")
    lists.add_argument("-l", "--selector", metavar="LABELS", default="", help="only jobs with these labels: a=b,c!=d")
    lists.add_argument("-w", "--watch", action="store_true", help="then show each change, without end")
    lists.add_argument("--state", choices=STATES, action="append", default=[], help="only these; repeatable")
    lists.add_argument(
        "--sort-by", metavar="KEY", type=_sort_key, help=f"one of {', '.join(SORT_KEYS)}; --sort-by=-KEY descends"
    )
    command("get", "show jobs, with what their pods say", several, shown)
    command("describe", "show all of a job: replicas, failure, conditions, pods and Events", one)
    command("why", "say why a job does not start, does not go on, or has failed, and what to do", one).add_argument(
        "-o", "--output", choices=("json", "yaml"), help="all causes with their evidence, for a program"
    )
    command("events", "show the Events of a job and its pods", one)
    logs = command("logs", "show the logs of all replicas of a job as one, in the order of time", one)
    logs.add_argument(
        "replicas", metavar="REPLICA", nargs="*", help="only these: worker, master-0, or a pod (default: all)"
    )
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    which = logs.add_mutually_exclusive_group()
    which.add_argument(
        "-c", "--container", metavar="NAME", action="append", default=[],
        help="repeatable (default: the one that runs the framework)",
    )  # fmt: skip
    which.add_argument("--all-containers", action="store_true", help="init containers and sidecars too")
    logs.add_argument("-p", "--previous", action="store_true", help="of the containers before their last restart")
    logs.add_argument("--since", type=_seconds, metavar="TIME", help="only lines of the last 30s, 5m, 1h")
    logs.add_argument("--tail", type=_count, metavar="N", help="only the last N lines of each container")
    logs.add_argument("--grep", type=_pattern, metavar="REGEX", help="only lines in which it is found")
    logs.add_argument("--unsorted", action="store_true", help="lines as they arrive, not in the order of time")
    logs.add_argument("--timestamps", action="store_true", help="show when each line was written")
    logs.add_argument("-o", "--output", choices=("raw", "json"), help="raw: without the replica's name")
    top = command("top", "show the GPUs, processors and memory that jobs hold and use, the largest first")
    top.add_argument("kind", metavar="KIND", nargs="?", help="such as tfjob, ptj or mxjobs.kubeflow.org")
    top.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces, and the cluster's GPUs")
    top.add_argument("-l", "--selector", metavar="LABELS", default="", help="only jobs with these labels: a=b,c!=d")
    top.add_argument(
        "--by", type=_groups, metavar="KEYS", default=(), help=f"sums instead of jobs: {', '.join(GROUPS)}, or several"
    )
    top.add_argument("-o", "--output", choices=("json", "yaml"), help="another form than the table")
    usage = command("usage", "show what jobs have used so far, and what interruptions have cost, the most GPUs first")
    usage.add_argument("kind", metavar="KIND", nargs="?", help="such as tfjob, ptj or mxjobs.kubeflow.org")
    usage.add_argument("-A", "--all-namespaces", action="store_true", help="the jobs of all namespaces")
    usage.add_argument("-l", "--selector", metavar="LABELS", default="", help="only jobs with these labels: a=b,c!=d")
    keys = [name for name in GROUPS if name != "node"]
    usage.add_argument(
        "--by", type=_usage_groups, metavar="KEYS", default=(), help=f"sums instead of jobs: {', '.join(keys)}"
    )
    usage.add_argument(
        "--prices", metavar="CONFIGMAP", default="", help="NAME or NAMESPACE/NAME, with prices an hour: adds the cost"
    )
    usage.add_argument("-o", "--output", choices=("json", "yaml"), help="another form than the table")
    _add_history(command("history", "show the jobs that have ended, also deleted ones, or the report of a month"))
    tui = command("tui", "watch and steer jobs in the terminal (pip install dljob[tui])")
    tui.add_argument("kind", metavar="KIND", nargs="?", help="such as tfjob, ptj or mxjobs.kubeflow.org")
    tui.add_argument("-A", "--all-namespaces", action="store_true", help="the jobs of all namespaces")
    tui.add_argument("-l", "--selector", metavar="LABELS", default="", help="only jobs with these labels: a=b,c!=d")
    page = command("ui", "serve a page with the jobs on this machine (pip install dljob[web])")
    page.add_argument("--port", type=_port, default=0, metavar="PORT", help="of 127.0.0.1 (default: any free one)")
    page.add_argument("--no-browser", action="store_true", help="print the address only")
    page.add_argument(
        "--history-database", metavar="URL", default="",
        help="show ended jobs too, on this machine only (default: DLJOB_HISTORY_DATABASE)",
    )  # fmt: skip
    shared = page.add_argument_group("in a pod, for many users, each with the rights of a token of their own")
    shared.add_argument("--in-cluster", action="store_true", help="serve in a pod; TLS is a proxy's in front of it")
    shared.add_argument(
        "--host", metavar="NAME", action="append", default=[],
        help="where browsers reach it, as in jobs.example.com or localhost:8080; repeatable, at least one",
    )  # fmt: skip
    shared.add_argument("--address", metavar="HOST:PORT", default=":8080", help="to listen at (default: :8080)")
    shared.add_argument(
        "--ca", metavar="FILE", default="/etc/dljob/ca.crt",
        help="certificates of the API server (default: /etc/dljob/ca.crt)",
    )  # fmt: skip
    shared.add_argument(
        "--insecure-cookie", action="store_true", help="also for plain HTTP, as with kubectl port-forward"
    )
    wait = command("wait", "wait for a state of a job", one, shown)
    wait.add_argument(
        "--for", dest="until", metavar="STATE", type=_until, default="finished",
        help="finished (default: exits with 0 if the job succeeded, else with 7), or a state such as Running",
    )  # fmt: skip
    wait.add_argument("--timeout", type=_seconds, metavar="TIME", help="30s, 5m, 1h (default: without end)")
    command("suspend", "suspend jobs: their pods are deleted", several)
    command("resume", "resume suspended jobs", several)
    restart = command("restart", "start all replicas of jobs anew, also of jobs that have ended", several)
    restart.add_argument("--timeout", type=_seconds, metavar="TIME", default=300.0, help="(default: 5m)")
    command("delete", "delete jobs with their pods", several)
    submit = command("submit", "check manifests at the API server, show what changes, and create or apply them", shown)
    submit.add_argument("-f", "--filename", metavar="FILE", action="append", required=True, help="- for standard input")
    submit.add_argument("--dry-run", choices=("none", "server"), default="none", help="server: change nothing")
    submit.add_argument("--diff", action="store_true", help="show what changes in jobs that exist")
    submit.add_argument("--force-conflicts", action="store_true", help="take over fields of other programs")
    submit.add_argument(
        "-w", "--watch", action="store_true", help="follow the jobs to their end: 0 if all succeed, else 7"
    )
    new = commands.add_parser(
        "new", help="print the manifest of a new job, for `dljob submit -f -`", allow_abbrev=False,
        description="Print the manifest of a new job.",
        usage="dljob new FRAMEWORK --image IMAGE [options] [-- COMMAND [ARGUMENT...]]",
    )  # fmt: skip
    new.add_argument("framework", metavar="FRAMEWORK", choices=FRAMEWORKS, help=f"one of {', '.join(FRAMEWORKS)}")
    new.add_argument("--image", required=True, help="of all replicas")
    new.add_argument("--name", metavar="NAME", help="(default: the framework)")
    new.add_argument("-n", "--namespace", metavar="NAME", help="(default: none, that of who submits it)")
    new.add_argument(
        "--workers", type=_count, default=1, metavar="N",
        help="(default: 1); of PyTorch and XGBoost the first one is the master",
    )  # fmt: skip
    new.add_argument("--servers", type=_count, default=0, metavar="N", help="parameter servers of TensorFlow and MXNet")
    new.add_argument("--gpus", type=_count, default=0, metavar="N", help="of each worker (default: 0)")
    new.add_argument("--gpu-resource", default="nvidia.com/gpu", metavar="NAME", help="(default: nvidia.com/gpu)")
    new.add_argument("--cpu", default="", metavar="CORES", help="that each replica requests, such as 500m or 4")
    new.add_argument("--memory", default="", metavar="SIZE", help="that each replica requests and may use: 8Gi")
    new.add_argument("--env", type=_variable, action="append", default=[], metavar="NAME=VALUE", help="repeatable")
    new.add_argument("--redis", default="", metavar="HOST", help="where several workers of Caffe2 meet")
    new.add_argument("--queue", default="", metavar="NAME", help="the LocalQueue of Kueue")
    new.add_argument("-o", "--output", choices=("json", "yaml"), help="(default: yaml)")
    new.set_defaults(program=[])
    convert = commands.add_parser(
        "convert", help="convert manifests of jobs to another API, without a cluster", allow_abbrev=False,
        description="Convert the jobs of files, and print the manifests. What is lost is reported with the field and "
        "the reason, and then the exit code is 1. Other objects are printed unchanged, comments are lost.",
    )  # fmt: skip
    convert.add_argument(
        "--to", required=True, choices=TARGETS,
        help="kubeflow.org/v1; dljob: DLJob of dljob-operator; trainjob: TrainJob of Kubeflow Trainer v2",
    )  # fmt: skip
    convert.add_argument("files", nargs="*", metavar="FILE", help="with one or more objects; - for standard input")
    convert.add_argument("-f", "--filename", metavar="FILE", action="append", default=[], help="the same; repeatable")
    completion = commands.add_parser("completion", help="print the completion of a shell", allow_abbrev=False)
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    return whole


def _add_history(history: _Command) -> None:
    history.add_argument(
        "what", metavar="WHAT", nargs="?", choices=("list", "report"), default="list",
        help="list (default): the jobs that ended last; report: the sums of a month, of all namespaces without -n",
    )  # fmt: skip
    history.add_argument("--database", metavar="URL", default="", help="(default: DLJOB_HISTORY_DATABASE)")
    history.add_argument("-A", "--all-namespaces", action="store_true", help="the jobs of all namespaces")
    history.add_argument("--limit", type=_positive, metavar="N", default=50, help="jobs of the list (default: 50)")
    history.add_argument("--since", type=_seconds, metavar="TIME", help="only jobs that ended in the last 12h, 7d")
    history.add_argument("--state", choices=("Succeeded", "Failed", "Deleted"), default="", help="of the list")
    history.add_argument("--user", metavar="NAME", default="", help="only jobs of this user")
    history.add_argument("--kind", metavar="KIND", default="", help="only jobs of this kind, such as TFJob")
    history.add_argument("--cluster", metavar="NAME", default="", help="where several clusters share the database")
    history.add_argument("--month", type=_month, metavar="YYYY-MM", help="of the report, in UTC (default: this one)")
    history.add_argument(
        "--by", type=_history_groups, metavar="KEYS", default=("namespace", "user"),
        help=f"groups of the report: {', '.join(HISTORY_GROUPS)}, or several (default: namespace,user)",
    )  # fmt: skip
    history.add_argument(
        "--prices", metavar="CONFIGMAP", default="", help="NAME or NAMESPACE/NAME, with prices an hour: adds the cost"
    )
    history.add_argument("-o", "--output", choices=("wide", "json", "yaml"), help="another form than the table")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["__complete"]:
        from dljob.completion import answer

        return answer(words[1:])
    program: list[str] = []
    if words[:1] == ["new"] and "--" in words:  # all after it is the program's, whatever it looks like
        words, program = words[: words.index("--")], words[words.index("--") + 1 :]
    given = parser().parse_args(words)
    if program:
        given.program = program
    if given.command == "completion":
        from dljob.completion import script

        print(script(given.shell))
        return OK
    from dljob.errors import DljobError

    try:
        return int(_COMMANDS[given.command](given))
    except DljobError as e:
        return _report(e)
    except RecursionError:
        return _report(DljobError("The API server's answer, or a manifest, is nested too deeply."))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `dljob list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _report(error: Exception) -> int:
    from dljob import errors
    from dljob.output import printable, rescue

    print(f"error: {printable(error)}", file=sys.stderr)
    if isinstance(error, errors.NotCreated):
        print(rescue(error), file=sys.stderr)
    if isinstance(error, errors.ApiError):
        return DENIED if error.status in (401, 403) else NOT_FOUND if error.status == 404 else ERROR
    codes: dict[type[Exception], int] = {
        errors.NotFound: NOT_FOUND,
        errors.ConfigError: NO_CLUSTER,
        errors.ConnectionFailed: NO_CLUSTER,
        errors.TimedOut: TIMEOUT,
    }
    return codes.get(type(error), ERROR)


def _warn(sentences: Iterable[str]) -> None:
    from dljob.output import printable

    for sentence in sentences:
        if sentence:
            print(f"warning: {printable(sentence)}", file=sys.stderr)


# --- arguments


def _seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    try:
        value = float(number) * unit
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 30s, 5m or 1h")
    return value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines")
    return int(text)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100000")
    return int(text)


def _month(text: str) -> tuple[int, int]:
    from dljob.history import month_of

    found = month_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no month: write 2026-11")
    return found


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {e}") from None


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"{text!r} is no variable: write NAME=VALUE")
    return name, value


def _groups(text: str, known: Sequence[str] = GROUPS) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.lower().split(",")))
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is no key: write some of {', '.join(known)}")
    return names


def _history_groups(text: str) -> tuple[str, ...]:
    return _groups(text, HISTORY_GROUPS)


def _usage_groups(text: str) -> tuple[str, ...]:
    names = _groups(text)
    if "node" in names:
        raise argparse.ArgumentTypeError("an account is of a job, and not of its nodes: leave node out")
    return names


def _until(text: str) -> str:
    name = text.removeprefix("condition=").removeprefix("state=").lower()
    found = {state.lower(): state for state in (*STATES, "finished")}
    if name not in found:
        raise argparse.ArgumentTypeError(f"{text!r} is no state: write finished, {', '.join(STATES)}")
    return found[name]


def _sort_key(text: str) -> str:
    if text.lower().removeprefix("-") not in SORT_KEYS:
        raise argparse.ArgumentTypeError(f"{text!r} is no key: write one of {', '.join(SORT_KEYS)}, with - to descend")
    return text.lower()


def _client(given: argparse.Namespace) -> Client:
    from dljob.client import Client

    return Client(given.kubeconfig, given.context, given.namespace)


# --- commands


def _list(given: argparse.Namespace) -> int:
    client = _client(given)
    where = {"all_namespaces": given.all_namespaces, "selector": given.selector}
    if given.watch:
        return _watch_list(given, client.watch(given.kind, tell=_warn, **where))
    jobs = client.list(given.kind, pods=given.output in ("wide", "json", "yaml"), **where)
    _warn(jobs.problems)
    chosen = [job for job in jobs if not given.state or job.state in given.state]
    if given.sort_by:
        from dljob.output import SORT_KEYS as KEYS

        chosen.sort(key=KEYS[given.sort_by.removeprefix("-")], reverse=given.sort_by.startswith("-"))
    if not chosen and given.output in (None, "wide"):
        where_text = "in any namespace" if given.all_namespaces else f"in the namespace {client.namespace}"
        print(f"There are no such jobs {where_text}.", file=sys.stderr)
        return OK
    _show(chosen, given.output, namespaces=given.all_namespaces)
    return OK


def _watch_list(given: argparse.Namespace, changes: Iterator[Change]) -> int:
    from dljob.output import JobTable, colors_wanted, printable, structured

    table = JobTable(wide=given.output == "wide", namespaces=given.all_namespaces, colored=colors_wanted(sys.stdout))
    shown: dict[str, list[str]] = {}
    for change in changes:
        job = change.job
        if given.state and job.state not in given.state:
            continue
        if given.output == "name":
            lines = [printable(job.key)]
        elif given.output in ("json", "yaml"):
            lines = [structured({"type": change.type, "job": job.as_dict()}, given.output)]
        else:
            lines = table.lines([job])
        if shown.get(job.uid) != lines or change.type == "DELETED":
            print("\n".join(lines), flush=True)
        shown[job.uid] = lines
    return OK


def _show(jobs: Sequence[JobView], form: str | None, *, namespaces: bool = False, single: bool = False) -> None:
    from dljob.output import JobTable, colors_wanted, printable, structured

    if form in ("json", "yaml"):
        data: Any = [job.as_dict() for job in jobs]
        print(structured(data[0] if single else data, form))
    elif form == "name":
        sys.stdout.writelines(f"{printable(job.key)}\n" for job in jobs)
    else:
        table = JobTable(wide=form == "wide", namespaces=namespaces, colored=colors_wanted(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in table.lines(jobs))


def _get(given: argparse.Namespace) -> int:
    client = _client(given)
    jobs = [client.get(name) for name in given.jobs]
    _show(jobs, given.output, single=len(jobs) == 1)
    if given.output in (None, "wide"):
        from dljob.output import printable, progress_text

        for job in jobs:
            if text := progress_text(job):
                print(printable(f"Progress{f' of {job.key}' if len(jobs) > 1 else ''}: {text}"))
    return OK


def _describe(given: argparse.Namespace) -> int:
    from dljob.logs.progress import log_progress
    from dljob.output import described, event_lines
    from dljob.view import view

    client = _client(given)
    job = client.object(given.job)
    around = client.around(job)
    events = around.events
    seen = view(job, around.pods)
    found = log_progress(client.api, job, around.pods)
    lines = described(seen, job, around.pods, event_lines(events) if events else [], found.sentence if found else "")
    print("\n".join(lines))
    _warn(around.warnings)
    return OK


def _why(given: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from dljob.output import colors_wanted, structured
    from dljob.view import view
    from dljob.why import explain
    from dljob.why.read import snapshot
    from dljob.why.show import data, lines

    client = _client(given)
    job = client.object(given.job)
    read = snapshot(client.api, job, datetime.now(UTC))
    causes = explain(read)
    if given.output:
        print(structured(data(causes), given.output))
    else:
        print("\n".join(lines(view(job, read.pods), causes, read.now, colored=colors_wanted(sys.stdout))))
    rights = ", ".join(sorted({one.right for one in read.unread}))
    _warn([f"Some causes may stay hidden, since you may not {rights}." if rights else ""])
    return OK


def _events(given: argparse.Namespace) -> int:
    from dljob.errors import ApiError
    from dljob.output import event_lines

    client = _client(given)
    around = client.around(client.object(given.job))
    if refused := around.refused.get("events"):
        raise ApiError(refused.status, refused.reason, around.warnings[-1])
    if events := around.events:
        print("\n".join(event_lines(events)))
    else:
        print("There are no Events: the API server keeps them for an hour by default.", file=sys.stderr)
    return OK


def _logs(given: argparse.Namespace) -> int:
    from dljob.commands import logs

    return logs.run(given, _client(given), lambda sentence: _warn([sentence]))


def _table(given: argparse.Namespace) -> int:
    """top and usage."""
    from dljob.commands import top, usage

    run = top.run if given.command == "top" else usage.run
    code, problems = run(given, _client(given))
    _warn(problems)
    return code


def _history(given: argparse.Namespace) -> int:
    from dljob.commands import history

    return history.run(given)


def _tui(given: argparse.Namespace) -> int:
    from dljob.commands import tui

    return tui.run(given, _client(given))


def _ui(given: argparse.Namespace) -> int:
    from dljob.commands import ui

    return ui.run_in_cluster(given) if given.in_cluster else ui.run(given, _client(given))


def _new(given: argparse.Namespace) -> int:
    from dljob.commands import new

    return new.run(given)


def _convert(given: argparse.Namespace) -> int:
    from dljob.commands import convert

    files = [*given.filename, *given.files]
    if not files:
        print("error: name a file to convert, or - for standard input", file=sys.stderr)
        return USAGE
    return convert.run(files, given.to)


def _wait(given: argparse.Namespace) -> int:
    from dljob.output import Progress

    progress = Progress() if sys.stderr.isatty() else None
    job = _client(given).wait(given.job, until=given.until, timeout=given.timeout, progress=progress)
    _show([job], given.output, single=True)
    return _outcome([job]) if given.until == "finished" else OK


def _outcome(jobs: Sequence[JobView]) -> int:
    return OK if all(job.state == "Succeeded" for job in jobs) else JOB_FAILED


def _steer(given: argparse.Namespace) -> int:
    """suspend, resume, restart and delete: each job, whatever becomes of the others."""
    from dljob.errors import DljobError
    from dljob.output import printable

    client = _client(given)
    more = {"timeout": given.timeout} if given.command == "restart" else {}
    past = {"suspend": "suspended", "resume": "resumed", "restart": "restarted", "delete": "deleted"}[given.command]
    codes = []
    for name in given.jobs:
        try:
            job = getattr(client, given.command)(name, **more)
            print(f"{printable(job.key)} {past}")
        except DljobError as e:
            codes.append(_report(e))
    return codes[0] if codes else OK


def _submit(given: argparse.Namespace) -> int:
    from dljob.output import printable

    client = _client(given)
    manifests = [manifest for name in given.filename for manifest in _manifests(name)]
    options: dict[str, Any] = {"force": given.force_conflicts}
    checked = [client.submit(manifest, dry_run=True, **options) for manifest in manifests]  # all, before any is created
    if given.diff:
        for one in checked:
            sys.stdout.writelines(f"{printable(line)}\n" for line in _diff(one.before, one.after))
    if given.dry_run == "server":
        done, note = checked, " (dry run)"
    else:
        done, note = [client.submit(manifest, **options) for manifest in manifests], ""
    if given.output:
        _show([one.job for one in done], given.output, single=len(done) == 1)
    else:
        for one in done:
            print(f"{printable(one.job.key)} {'created' if one.is_new else 'applied'}{note}", flush=True)
    if not given.watch or note:
        return OK
    return _outcome([_follow(client, one.job) for one in done])


def _follow(client: Client, job: JobView) -> JobView:
    from dljob.output import Progress, printable

    ended = client.wait(job.key, namespace=job.namespace, progress=Progress())
    if ended.failure:
        ended = client.get(job.key, namespace=job.namespace)
        failure = ended.failure
        if failure:
            where = f"{failure.pod}: " if failure.pod else ""
            print(printable(f"{where}{failure.reason}: {failure.message}"), file=sys.stderr)
    return ended


def _manifests(name: str) -> list[dict[str, Any]]:
    import yaml

    from dljob import shared
    from dljob.errors import Refused

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        found = list(shared.module(shared.MANIFEST_READER).read_objects(text))
    except (OSError, ValueError, yaml.YAMLError) as e:
        raise Refused(f"{name} cannot be read: {' '.join(str(e).split())}") from None
    if not found:
        raise Refused(f"{name} has no manifest.")
    for number, one in found:
        _check(f"{name}: document {number}", one)
    return [one for _, one in found]


def _check(where: str, manifest: dict[str, Any]) -> None:
    from dljob.errors import Refused
    from dljob.kinds import UnknownKind, kind_of

    try:
        kind = kind_of(manifest)
    except UnknownKind as e:
        raise Refused(f"{where}: {e}.") from None
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise Refused(f"{where}: The manifest of a {kind.kind} has no metadata.name.")


def _diff(before: Any, after: Any) -> Iterator[str]:
    import difflib

    import yaml

    def text(resource: Any) -> list[str]:
        if resource is None:
            return []
        hidden = ("managedFields", "generation", "resourceVersion", "uid", "creationTimestamp")
        metadata = {key: value for key, value in resource["metadata"].items() if key not in hidden}
        kept = {**{key: value for key, value in resource.items() if key != "status"}, "metadata": metadata}
        return str(yaml.safe_dump(kept, width=1000)).splitlines()

    return difflib.unified_diff(text(before), text(after), "on the cluster", "submitted", lineterm="")


_COMMANDS: dict[str, Any] = {
    "list": _list,
    "get": _get,
    "describe": _describe,
    "events": _events,
    "why": _why,
    "logs": _logs,
    **dict.fromkeys(("top", "usage"), _table),
    "history": _history,
    "tui": _tui,
    "ui": _ui,
    "new": _new,
    "convert": _convert,
    "wait": _wait,
    **dict.fromkeys(("suspend", "resume", "restart", "delete"), _steer),
    "submit": _submit,
}
