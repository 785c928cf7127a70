"""The stock Ansible way: a role of kubernetes.core tasks, a cold ansible-runner for each job, as ansible-operator does.

The events and the command line are ansible-operator's; its Go binary, which adds a proxy with a cache, is not here.
"""

from __future__ import annotations

import sys

from bench import tools
from bench.peers.base import PROGRAMS, Limits, Peer

PEER = Peer(
    name="stock-ansible",
    title="stock Ansible (cold ansible-runner)",
    command=lambda kubeconfig, scratch: [sys.executable, str(PROGRAMS / "stock" / "cold_operator.py")],
    ready="ready",
    environment={"ANSIBLE_COLLECTIONS_PATH": str(tools.collections_path())},
    limits=Limits(singles=2, jobs=6, replicas=0, heavy=False, lasting=False, patience=300.0),
    prepare=lambda kubeconfig: tools.ensure_collections(),
    reports_running=False,
)
