"""The stock Ansible way: a role of kubernetes.core tasks, a new ansible-runner for each job, as in ansible-operator.

The events and the command line are ansible-operator's; its Go binary, which adds a caching proxy, is not used.
kubernetes.core comes from the project's environment (hack/devtools/build/collection/dependencies.py).
"""

from __future__ import annotations

import sys

from devtools.lab.bench.peers.base import PROGRAMS, Limits, Peer

PEER = Peer(
    name="stock-ansible",
    title="stock Ansible (cold ansible-runner)",
    command=lambda kubeconfig, scratch: [sys.executable, str(PROGRAMS / "stock" / "cold_operator.py")],
    ready="ready",
    limits=Limits(singles=2, jobs=6, replicas=0, heavy=False, lasting=False, timeout=300.0),
    reports_running=False,
)
