#!/usr/bin/env bash
# Library:  kubeflow 0.5.0, the SDK of Kubeflow (Python 3.11)
# Question: how many reports does a loop send that calls update_trainjob_status after each step?
# Expected: one in five seconds, as its documentation says: "automatic throttling (max 1 update per 5 seconds)".
# Seen:     so while the endpoint answers with 200. After any other answer the next call sends again: the interval begins
#           with a success. Each call waits for its answer, up to 5 s, so an endpoint that is slow slows down every step.
#           A call within the interval returns False and its report is dropped, also the last one of a program.
# Output seen:
#     20 steps, answers with 200: at most 4 reports, the last call is dropped
#     20 steps, answers with 503: 20 reports, the last call is sent
#     3 steps, answers with 503 after 1 s: 3 reports, a call waits for the answer
# Consequence here: the endpoint answers a report that it drops with 200 (src/dljob_operator/engine/serving/progress).
# Takes half a minute. Exits with 1 if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kubeflow==0.5.0
cat >"$folder/loop.py" <<'PYTHON'
import os
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

status, steps, seconds, delay = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
reports = []


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        reports.append(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(delay)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
with tempfile.NamedTemporaryFile("w") as token:
    token.write("a token")
    token.flush()
    os.environ["KUBEFLOW_TRAINER_SERVER_URL"] = f"http://127.0.0.1:{server.server_port}/"
    os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"] = token.name
    from kubeflow.trainer import update_trainjob_status

    longest = 0.0
    for step in range(1, steps + 1):
        time.sleep(seconds)
        sent, begin = len(reports), time.monotonic()
        update_trainjob_status(progress_percent=100 * step // steps, metrics={"loss": 1 / step})
        longest = max(longest, time.monotonic() - begin)
count = "at most 4" if status == 200 and 2 <= len(reports) <= 4 else len(reports)
if delay:
    last = "a call waits for the answer" if longest >= delay else f"no call takes longer than {longest:.1f} s"
else:
    last = f"the last call is {'sent' if len(reports) > sent else 'dropped'}"
after = f" after {delay:.0f} s" if delay else ""
print(f"{steps} steps, answers with {status}{after}: {count} reports, {last}")
PYTHON
for arguments in "200 20 0.6 0" "503 20 0.1 0" "503 3 0.1 1"; do
    # shellcheck disable=SC2086
    "$folder/venv/bin/python" "$folder/loop.py" $arguments 2>/dev/null
done | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
20 steps, answers with 200: at most 4 reports, the last call is dropped
20 steps, answers with 503: 20 reports, the last call is sent
3 steps, answers with 503 after 1 s: 3 reports, a call waits for the answer
TEXT
