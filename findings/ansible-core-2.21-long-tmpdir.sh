#!/usr/bin/env bash
# Library:  ansible-core 2.21.5, beside 2.20.10. Needs Python 3.12 or newer (PYTHON=python3.12); seen with 3.12.1 and 3.13.0.
# Question: does a playbook run where TMPDIR is a path of 90 bytes?
# Expected: yes, with each version.
# Seen:     with 2.20.10. With 2.21.5 ansible-playbook waits for five seconds and fails: its RPC server listens on a socket
#           in a folder below TMPDIR, and the path of a socket has at most 107 bytes. The error does not name the cause.
# Output seen:
#     2.20.10 exit status 0
#     2.21.5 exit status 250, Local RPC server did not start.
# Consequence here: docs/troubleshooting.md names it.
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
long=$folder/$(printf '%*s' $((89 - ${#folder})) '' | tr ' ' x)
mkdir "$long"
export ANSIBLE_HOME=$folder/ansible
for version in 2.20.10 2.21.5; do
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ansible-core==$version"
  status=0
  TMPDIR=$long "$folder/venv/bin/ansible-playbook" -i localhost, -c local "$folder/play.yml" >"$folder/said" 2>&1 || status=$?
  echo "$version exit status $status$(grep -o 'Local RPC server did not start\.' "$folder/said" | head -1 | sed 's/^/, /')"
done | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
2.20.10 exit status 0
2.21.5 exit status 250, Local RPC server did not start.
TEXT
