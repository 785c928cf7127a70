"""Beside ansible-operator: its runs made warm, and its blindness for what a job owns made up for.

ansible-operator looks `ansible-runner` up on PATH at every run, and posts to no one but a unix socket; so a
program of the same name (`shim`) may hand the run to this process, which has Ansible warm. And it reconciles
when a job or its annotations change, but not when a pod's status does; so this process, which watches pods,
writes an annotation on the job.

    shim        what ansible-operator finds as `ansible-runner`: no imports of ours, milliseconds
    command     its command lines and the input directory; pure but for reading files
    events      what ansible-operator is told of a run, over its socket
    artifacts   what is left of a run on disk
    requeues      which job's annotation is to be written, and when
    control     the controller: caches, snapshots, requeues, and the runs that the shim asks for
    split       the entries of watches.yaml that ansible-operator cannot take
    server      the socket at which the shim asks
    supervise   the child process that all this is for
"""

from __future__ import annotations
