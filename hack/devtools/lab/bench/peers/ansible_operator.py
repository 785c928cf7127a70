"""This operator in the image's default engine: `dljob-operator serve` around a real ansible-operator.

The binary is not served by the module proxies, so this peer takes part only where DLJOB_ANSIBLE_OPERATOR names one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from devtools.checks.suite.session import ANSIBLE_OPERATOR, ansible_operator_command
from devtools.lab.bench.peers.base import Limits, Peer
from devtools.lab.bench.peers.ours import RESTS_AFTER
from devtools.lab.bench.workloads import OTHER_KINDS

NAME = "ansible-operator"


def peers(environment: Mapping[str, str] = os.environ) -> tuple[Peer, ...]:
    """The peer, or none."""
    binary = environment.get(ANSIBLE_OPERATOR, "")
    if not binary:
        return ()
    return (
        Peer(
            name=NAME,
            title="this operator with ansible-operator (not in CI)",
            command=lambda kubeconfig, scratch: list(ansible_operator_command(binary)),
            ready="Starting workers",
            limits=Limits(lasting=False),
            kinds=OTHER_KINDS,
            rests_after=RESTS_AFTER,
        ),
    )
