"""The embedded engine of dljob-operator: it watches what watches.yaml names and runs the roles warm.

Layers, lowest first; nothing imports upward (import-linter holds it to that):

    durations            Go durations, as Kubernetes writes them
    watches, variables   watches.yaml and what a role is handed; pure but for looking roles up on disk
    warm                 forked Ansible runs behind a socket; knows nothing of Kubernetes
    engine               caches, queue and controller; knows nothing of Ansible
    cli                  the command line
"""

from __future__ import annotations

__version__ = "0.1.0"
