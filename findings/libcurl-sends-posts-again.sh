#!/usr/bin/env bash
# Library:  pycurl 7.49.0 with its libcurl 8.23.0, beside urllib3 2.8.0
# Question: how often does a server get a POST whose connection it closes without a response?
# Expected: once. The client reports an error, since the server may have done what the POST says.
# Seen:     so with urllib3, and with libcurl on a new connection. On a connection that libcurl has kept from an earlier
#           request, it sends the POST again at once, and reports the second response. No option forbids that; the
#           callback PREREQFUNCTION comes before each sending and may refuse it.
# Output seen:
#     urllib3, kept connection: POST sent 1 times, error
#     libcurl, new connection: POST sent 1 times, error
#     libcurl, kept connection: POST sent 2 times, status 200
#     libcurl, kept connection, refused by the callback: POST sent 1 times, error
# Consequence here: plugins/module_utils/api/transfers.py asks before each sending whether this process still leads.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycurl==7.49.0 urllib3==2.8.0
cat >"$folder/posts.py" <<'PYTHON'
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pycurl
import urllib3


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts += 1
        if self.server.posts == 1:
            self.close_connection = True
            return
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def tried(name, client):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.posts = True, 0
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            result = f"status {client(f'http://127.0.0.1:{server.server_port}/')}"
        except (pycurl.error, urllib3.exceptions.HTTPError):
            result = "error"
        print(f"{name}: POST sent {server.posts} times, {result}")
        server.shutdown()


def by_urllib3(url):
    pool = urllib3.PoolManager(retries=False)
    pool.request("GET", url)
    return pool.request("POST", url, body=b"{}").status


def by_libcurl(url, kept=True, refused=False):
    sent = []

    def before(*_):
        sent.append(1)
        return pycurl.PREREQFUNC_ABORT if refused and len(sent) > 1 else pycurl.PREREQFUNC_OK

    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    if kept:
        curl.perform()
    curl.setopt(pycurl.PREREQFUNCTION, before)
    curl.setopt(pycurl.POSTFIELDS, b"{}")
    curl.perform()
    return curl.getinfo(pycurl.RESPONSE_CODE)


tried("urllib3, kept connection", by_urllib3)
tried("libcurl, new connection", lambda url: by_libcurl(url, kept=False))
tried("libcurl, kept connection", by_libcurl)
tried("libcurl, kept connection, refused by the callback", lambda url: by_libcurl(url, refused=True))
PYTHON
"$folder/venv/bin/python" "$folder/posts.py" | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
urllib3, kept connection: POST sent 1 times, error
libcurl, new connection: POST sent 1 times, error
libcurl, kept connection: POST sent 2 times, status 200
libcurl, kept connection, refused by the callback: POST sent 1 times, error
TEXT
