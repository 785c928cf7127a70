"""`dljob-operator preflight`: which running jobs of training-operator v1 this operator can adopt without a restart.

`logic/preflight.py` of the collection judges a job by the objects that are there. The modules here load the frameworks
(`frameworks`), read the cluster (`cluster`) and write the report (`report`). No other command needs the logic of the
collection, so they are imported when the command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import GANG_SCHEDULER_NAME, Setting

from dljob_operator.engine.kube import ApiConnectionError, KubeApi, NoCluster, find_kubeconfig
from dljob_operator.options import KUBECONFIG, NAMESPACE, add_options

OUTPUTS = ("text", "json")
SERVICE_ACCOUNT = "dljob-system:dljob-operator"
ALL, SOME, ERROR = 0, 1, 2
"""The exit codes: all running jobs can be adopted, some cannot, or there is no answer."""

HELP = """\
Lists the running jobs of training-operator v1 and whether this operator can adopt them with their pods, so that nothing
restarts when training-operator is stopped and this operator is started. Of a job that it cannot adopt it prints the
field or the object and the fix. It stores nothing in the cluster: it reads definitions, jobs, pods and Services, and
asks which permissions the operator's service account has. The exit code is 0 if all jobs can be adopted, 1 if some
cannot, and 2 if the command line is wrong or the cluster cannot be read."""


def _account(text: str) -> str:
    namespace, _, name = text.partition(":")
    if text and not (namespace and name and ":" not in name):
        raise ValueError(f'{text!r} is not NAMESPACE:NAME, such as {SERVICE_ACCOUNT}, or ""')
    return text


SETTINGS: tuple[Setting[object], ...] = (
    KUBECONFIG,
    replace(NAMESPACE, variable="", description="comma-separated namespaces of the jobs"),
    Setting(
        "--service-account",
        _account,
        'the operator\'s service account, which needs the permission to patch pods and Services; "" does not check it',
        default=SERVICE_ACCOUNT,
        metavar="NAMESPACE:NAME",
    ),
    replace(
        GANG_SCHEDULER_NAME, description="the gang scheduler that the operator will have, which takes over PodGroups"
    ),
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of `dljob-operator`."""
    parser = commands.add_parser(
        "preflight", help="list which running jobs of training-operator v1 can be adopted", description=HELP
    )
    parser.set_defaults(do=run, log_level="warning", log_format="text")
    add_options(parser, SETTINGS)
    parser.add_argument("-o", "--output", choices=OUTPUTS, default=OUTPUTS[0], help="(default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Print the report and return the exit code."""
    try:
        return check(KubeApi.connect(find_kubeconfig(options.kubeconfig, os.environ)), options)
    except NoCluster as error:
        print(f"dljob-operator: {error}", file=sys.stderr)
    except (ApiError, ApiConnectionError) as error:
        print(f"dljob-operator: the API server returned an error: {error}", file=sys.stderr)
    except Exception as error:  # 1 would say that jobs cannot be adopted
        print(f"dljob-operator: preflight failed: {type(error).__name__}: {error}", file=sys.stderr)
    return ERROR


def check(api: KubeApi, options: argparse.Namespace) -> int:
    """Like `run`, with the API server `api`. Raises ApiError and ApiConnectionError."""
    from dljob_operator.preflight import cluster, frameworks, report

    reader = cluster.ClusterReader(api, options.service_account, options.namespace)
    answer = cluster.judge_all(reader, frameworks.load(), datetime.now(UTC), options.gang_scheduler_name)
    (report.write_json if options.output == "json" else report.write_text)(answer, sys.stdout)
    return ALL if all(verdict.can_be_adopted for verdict in answer.verdicts) else SOME
