#!/usr/bin/env bash
# The Python client `kubernetes`: which requests go to the proxy of HTTP_PROXY. kubectl is the measure.
#
# Expected, as with kubectl and every other program that uses Go's httpproxy, in each version:
#   loopback    a server on 127.0.0.1 is asked directly, whatever HTTP_PROXY says
#   elsewhere   a server on another host is asked through the proxy of HTTP_PROXY
#   proxy-url   the kubeconfig's `proxy-url` is used, also where NO_PROXY names the server
# Seen:
#   33.1.0  loopback=direct     elsewhere=direct  proxy-url=direct   no variable and no `proxy-url` is read
#   37.0.2  loopback=the-proxy  elsewhere=the-proxy  proxy-url=direct
# Exits with 0 while that is so, with 1 once it has changed. All servers are on 127.0.0.1; the other host is a name that
# no DNS knows, so only a proxy can answer for it.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/ask.py" <<'PYTHON'
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from kubernetes import client, config


def serve(name):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            data = json.dumps({"major": name, "minor": "", "gitVersion": "", "gitCommit": "", "gitTreeState": "",
                               "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def ask(server, **cluster):
    """Who answers a request for the cluster's version: the server, the proxy, or nobody."""
    content = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": server, **cluster}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "users": [{"name": "x", "user": {"token": "t"}}],
    }
    path = os.path.join(sys.argv[1], "kubeconfig")
    with open(path, "w") as file:
        json.dump(content, file)
    made = client.Configuration()
    config.load_kube_config(path, client_configuration=made)
    made.retries = False
    try:
        return client.VersionApi(client.ApiClient(made)).get_code(_request_timeout=5).major
    except Exception:
        return "direct"  # to a host that does not exist


for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]
server, proxy = serve("direct"), serve("the-proxy")
os.environ["HTTP_PROXY"] = proxy
found = [f"loopback={ask(server)}", f"elsewhere={ask('http://cluster.invalid:6443')}"]
del os.environ["HTTP_PROXY"]
os.environ["NO_PROXY"] = "127.0.0.1"
found.append("proxy-url=" + ask(server, **{"proxy-url": proxy}))
print(*found)
PYTHON

as_described=true
check() { # a version, and what is expected of it
  python3 -m venv "$work/$1"
  "$work/$1/bin/pip" --quiet --disable-pip-version-check install "kubernetes==$1"
  found=$("$work/$1/bin/python" "$work/ask.py" "$work" 2>/dev/null)
  echo "$1  $found"
  [ "$found" = "$2" ] || as_described=false
}
check 33.1.0 "loopback=direct elsewhere=direct proxy-url=direct"
check 37.0.2 "loopback=the-proxy elsewhere=the-proxy proxy-url=direct"
if ! $as_described; then
  echo "the behaviour has changed"
  exit 1
fi
echo "as described"
