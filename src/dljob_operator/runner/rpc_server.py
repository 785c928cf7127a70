"""The RPC server of ansible-core 2.21: not in the fork server, but in each of its children.

From 2.21 on, the first run in a process starts two threads, which wait for the requests of task processes to add hosts
or groups. They last as long as the process. A fork has none of them, only a record that they run.
"""

from __future__ import annotations

try:
    from ansible._internal._rpc_host import LocalManager
except ImportError:  # before ansible-core 2.21, where task processes return such changes with their results
    LocalManager = None


def put_off() -> None:
    """Let runs in this process do without the server, so that it stays single-threaded.

    Their tasks cannot add hosts or groups. Ansible has no setting for it: its runs take the manager that is there,
    and this one is made without `start`.
    """
    if LocalManager is not None:
        LocalManager._shared_instance = LocalManager()


def start_with_next_run() -> None:
    """After a fork, let Ansible start a server of this process with its next run, as it does in any new process."""
    if LocalManager is not None:
        LocalManager._shared_instance = None
