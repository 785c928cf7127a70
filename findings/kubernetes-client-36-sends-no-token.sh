#!/usr/bin/env bash
# Library:  kubernetes 36.0.0, the Python client, beside 35.0.0 and 36.0.1.
# Question: does a pod's token, as load_incluster_config reads it, reach the requests?
# Expected: an Authorization header from each version.
# Seen:     35.0.0 and 36.0.1 send one. 36.0.0 sends none, so the API server treats every request as anonymous:
#           the loader writes the key "authorization", and auth_settings reads only "BearerToken".
# Output seen:
#     35.0.0 authorization
#     36.0.0 -
#     36.0.1 authorization
# Consequence here: the package's requirement excludes 36.0.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
cat >"$folder/headers.py" <<'PYTHON'
import pathlib
import sys

import kubernetes
from kubernetes import client
from kubernetes.config.incluster_config import InClusterConfigLoader

folder = pathlib.Path(sys.argv[1])
token, certificate = folder / "token", folder / "ca.crt"
token.write_text("a-token")
certificate.write_text("no certificate is read here\n")
configuration = client.Configuration()
address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
InClusterConfigLoader(
    token_filename=str(token), cert_filename=str(certificate), environ=address
).load_and_set(configuration)
configuration.verify_ssl, configuration.ssl_ca_cert = False, None
headers = {}
client.ApiClient(configuration).update_params_for_auth(headers, [], ["BearerToken"])
print(kubernetes.__version__, *(sorted(headers) or ["-"]))
PYTHON
for version in 35.0.0 36.0.0 36.0.1; do
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "kubernetes==$version"
  "$folder/venv/bin/python" "$folder/headers.py" "$folder"
done | tee "$folder/seen"
diff - "$folder/seen" <<'TEXT'
35.0.0 authorization
36.0.0 -
36.0.1 authorization
TEXT
