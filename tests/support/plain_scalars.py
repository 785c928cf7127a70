"""A job whose plain scalars PyYAML reads otherwise than kubectl, for all that reads manifests."""

from __future__ import annotations

from typing import Any

MANIFEST = """\
# the values are strings to kubectl; to PyYAML a date, a number, and a number
apiVersion: kubeflow.org/v1
kind: MXJob
metadata:
  name: first
  annotations: {since: 2024-01-15, at: 12:30, quoted: "12:30", run: '0644', template: "{{ 6 * 7 }}"}
spec: {mode: 0644, rate: 1e-3, size: 10.0, on: yes}
"""
ANNOTATIONS: dict[str, Any] = {
    "since": "2024-01-15",
    "at": "12:30",
    "quoted": "12:30",
    "run": "0644",
    "template": "{{ 6 * 7 }}",
}
SPEC = '{"mode": 420, "rate": 0.001, "size": 10, "true": true}'
"""As JSON: a comparison of values would take 10 for 10.0."""
