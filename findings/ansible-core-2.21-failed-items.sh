#!/usr/bin/env bash
# Library:  ansible-core 2.21.5, beside 2.20.10. Needs Python 3.12 or newer (PYTHON=python3.12).
# Question: can a callback tell from the result of a failed loop which of its items have failed?
# Expected: `failed` is true in the result of each failed item, as in a registered variable.
# Seen:     so with 2.20.10. The results that callbacks of 2.21.5 get have no key `failed`. With both versions the callback
#           v2_runner_item_on_failed gets each failed item, here 2.
# Output seen:
#     2.20.10 items [False, True], item_on_failed 2
#     2.21.5 items [None, None], item_on_failed 2
# Consequence here: the messages of failed items come from that callback: src/dljob_operator/runner/collect.py.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
cat >"$folder/play.yml" <<'YAML'
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.assert: {that: item < 2, quiet: true}
      loop: [1, 2]
YAML
mkdir "$folder/callbacks"
cat >"$folder/callbacks/items.py" <<'PYTHON'
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = """
name: items
type: stdout
short_description: prints what it is told about failed items
description: prints what it is told about failed items
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "stdout", "items"

    def v2_runner_item_on_failed(self, result):
        self.failed_item = result._result["item"]

    def v2_runner_on_failed(self, result, ignore_errors=False):
        items = [item.get("failed") for item in result._result["results"]]
        print(__version__, f"items {items}, item_on_failed {self.failed_item}")
PYTHON
export ANSIBLE_CALLBACK_PLUGINS=$folder/callbacks ANSIBLE_STDOUT_CALLBACK=items ANSIBLE_LOCALHOST_WARNING=false
for version in 2.20.10 2.21.5; do
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ansible-core==$version"
  "$folder/venv/bin/ansible-playbook" -i localhost, -c local "$folder/play.yml" 2>"$folder/errors" || [ $? -eq 2 ]
done | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
2.20.10 items [False, True], item_on_failed 2
2.21.5 items [None, None], item_on_failed 2
TEXT
