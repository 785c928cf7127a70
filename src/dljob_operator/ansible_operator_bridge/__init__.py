"""Run beside ansible-operator: serve its runs from the fork server, and requeue jobs whose owned objects change.

ansible-operator looks up `ansible-runner` on PATH for each run and receives events on a unix socket. The program `shim`
has that name and passes the run to this process, which has loaded Ansible. ansible-operator also does not reconcile
when the status of a pod changes, so this process watches pods, and reconciles their job or writes an annotation on it.

    shim                 what ansible-operator starts as `ansible-runner` where the compiled one (build/shim) is missing
    command              parses its command line and the input directory; pure except for reading files
    events               posts the events of a run to ansible-operator's socket
    annotate             writes annotations of a job
    artifacts            writes the artifacts of a run to disk
    harmful_annotations  removes the annotations of jobs that end ansible-operator
    input_folders        deletes ansible-operator's directories of deleted jobs
    requeue_queue        decides when to requeue which job
    run_queue            the runs that wait for a long-lived worker, and which of them share a batch
    worker_runs          gives these runs and requeued jobs to the workers, and each shim the outcome of its job
    controller           the controller: caches, snapshots, requeue annotations, and the other runs for the shim
    split                finds the entries of watches.yaml that ansible-operator cannot load
    server               the socket for the shim
    supervise            runs ansible-operator as a child process
    watchdog             ends it where the liveness probe of the embedded engine would fail
"""

from __future__ import annotations
