#!/usr/bin/env bash
# Library:  transformers 5.24.0, whose Trainer reports its progress by KubeflowCallback (Python 3.11)
# Question: what does it report, when, and what does a slow endpoint cost the training?
# Expected: report_to="none" sends nothing. Otherwise one report in five seconds, with the state of the training, as its
#           documentation says: "automatic throttling", "silent failures - network issues won't interrupt training".
# Seen:     - The variables of the endpoint alone make it report: report_to="none" does not hinder it. It takes
#             DISABLE_KUBEFLOW_INTEGRATION=TRUE.
#           - A training that goes on from a checkpoint first reports 0%. Then it divides the time since its restart by all
#             steps, also those before, so that its time left is far too short.
#           - A training that stops early reports 100%. Metrics that are no numbers come as "nan".
#           - A report waits in its step for the answer, up to 5 s, and the interval of 5 s begins before the wait. So the
#             next step waits again: with an endpoint that takes 5 s, every step takes 5 s.
# Output seen:
#     report_to="none": reports to ['kubeflow']
#     goes on at step 9000 of 10000: 0%
#     10 steps and 5 s later: 90%, 0 s left, 3 metrics, loss=nan
#     stops at step 9010: 100%, 0 s left
#     3 steps of 0.2 s, answers with 503 after 4.9 s: 3 reports, 15 s
# Consequence here: the endpoint answers at once (src/dljob_operator/engine/serving/progress), and takes a lower percentage
#           for a new beginning (src/dljob_operator/engine/progress/board.py).
# Needs no PyTorch: it calls the callback as the Trainer does. Takes half a minute. Exits with 1 if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0
cat >"$folder/steps.py" <<'PYTHON'
import json
import os
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

reports, answer = [], {"status": 200, "delay": 0.0}


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        reports.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["trainerStatus"])
        time.sleep(answer["delay"])
        self.send_response(answer["status"])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
token = tempfile.NamedTemporaryFile("w")
token.write("a token")
token.flush()
os.environ["KUBEFLOW_TRAINER_SERVER_URL"] = f"http://127.0.0.1:{server.server_port}/"
os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"] = token.name

from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import KubeflowCallback

arguments = TrainingArguments(output_dir=tempfile.gettempdir(), report_to="none")
print(f'report_to="none": reports to {arguments.report_to}')
callback, control = KubeflowCallback(), TrainerControl()
state = TrainerState(global_step=9000, max_steps=10000, is_world_process_zero=True)
callback.on_train_begin(arguments, state, control)
print(f"goes on at step 9000 of 10000: {reports[-1]['progressPercentage']}%")
time.sleep(5.1)
state.global_step = 9010
callback.on_log(arguments, state, control, logs={"loss": float("nan")})
callback.on_step_end(arguments, state, control)
percent, left = (reports[-1][name] for name in ("progressPercentage", "estimatedRemainingSeconds"))
metrics = {one["name"]: one["value"] for one in reports[-1]["metrics"] if "epoch" not in one["name"]}
print(f"10 steps and 5 s later: {percent}%, {left} s left, {len(metrics)} metrics, loss={metrics['loss']}")
callback.on_train_end(arguments, state, control)
percent, left = (reports[-1][name] for name in ("progressPercentage", "estimatedRemainingSeconds"))
print(f"stops at step 9010: {percent}%, {left} s left")

answer.update(status=503, delay=4.9)
time.sleep(5.1)
before, begin = len(reports), time.monotonic()
for step in (1, 2, 3):
    time.sleep(0.2)
    state.global_step += 1
    callback.on_step_end(arguments, state, control)
seconds = time.monotonic() - begin
print(f"3 steps of 0.2 s, answers with 503 after 4.9 s: {len(reports) - before} reports, {seconds:.0f} s")
PYTHON
"$folder/venv/bin/python" "$folder/steps.py" 2>/dev/null | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
report_to="none": reports to ['kubeflow']
goes on at step 9000 of 10000: 0%
10 steps and 5 s later: 90%, 0 s left, 3 metrics, loss=nan
stops at step 9010: 100%, 0 s left
3 steps of 0.2 s, answers with 503 after 4.9 s: 3 reports, 15 s
TEXT
