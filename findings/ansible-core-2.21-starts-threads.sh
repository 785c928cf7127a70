#!/usr/bin/env bash
# Library:  ansible-core 2.21.5, beside 2.20.10. Needs Python 3.12 or newer (PYTHON=python3.12).
# Question: does a process that has run a playbook have one thread, so that it may fork?
# Expected: one thread from each version: the thread that handles results is joined at the end of a play.
# Seen:     one with 2.20.10, three with 2.21.5. The constructor of TaskQueueManager starts an RPC server for the task
#           processes (ansible/_internal/_rpc_host.py); its two threads last as long as the process, and nothing stops them.
# Output seen:
#     2.20.10 1 thread(s)
#     2.21.5 3 thread(s)
# Consequence here: the warm-up in the fork server has an RPC server that was not started, and each run of a child starts
#           one of its own: src/dljob_operator/runner/rpc_server.py.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
cat >"$folder/play.yml" <<'YAML'
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {msg: a task}
YAML
cat >"$folder/threads.py" <<'PYTHON'
import contextlib
import os
import sys
import threading

from ansible.cli.playbook import PlaybookCLI
from ansible.release import __version__

cli = PlaybookCLI(["ansible-playbook", "-i", "localhost,", "-c", "local", sys.argv[1]])
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    code = cli.run()
assert code == 0, code
print(__version__, threading.active_count(), "thread(s)")
PYTHON
for version in 2.20.10 2.21.5; do
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ansible-core==$version"
  "$folder/venv/bin/python" "$folder/threads.py" "$folder/play.yml" | grep 'thread(s)$'
done | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
2.20.10 1 thread(s)
2.21.5 3 thread(s)
TEXT
