"""The embedded engine of dljob-operator: it watches the kinds in watches.yaml and runs their roles.

Layers, lowest first. No module imports from a higher layer; import-linter checks this:

    collection           checks that the collection is there; its package `shared` is all that is imported of it
    durations, logs      Go durations, as Kubernetes writes them; structured log lines
    watches, variables   watches.yaml and the variables of a role; pure except for looking up roles on disk
    runner               Ansible runs in forked processes; has no Kubernetes code
    engine               caches, queue and controller; has no Ansible code
    cli                  the command line
"""

from __future__ import annotations

import sys

from dljob_operator import collection

collection.require(sys.path)

__version__ = "0.1.0"
