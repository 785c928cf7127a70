"""The stages by which kwok plays the kubelet for a run's pods. Pure.

A pod becomes Running, and ends as its annotations say (:mod:`.shapes`). The annotation TIME replaces the node's clock
in all timestamps of the pod's status. The operator's own clock cannot be changed: Linux's time namespaces have no
CLOCK_REALTIME, and Debian's libfaketime is not among this project's packages.
"""

from __future__ import annotations

from typing import Any

from devtools.lab.chaos.shapes import EXIT, FIRST_EXIT, SECONDS, TIME, UNLUCKY, UNLUCKY_EXIT

ATTEMPT = "dljob.operator/attempt"


def _filled(template: str) -> str:
    """The template with the names of annotations and labels; the braces of Go templates rule out str.format."""
    for word, text in (
        ("TIME", TIME),
        ("FIRST_EXIT", FIRST_EXIT),
        ("LAST_EXIT", EXIT),
        ("UNLUCKY_EXIT", UNLUCKY_EXIT),
        ("UNLUCKY", UNLUCKY),
        ("ATTEMPT", ATTEMPT),
    ):
        template = template.replace(f'"{word}"', f'"{text}"')
    return template


_NOW = '{{ $annotations := .metadata.annotations }}{{ $now := or (index $annotations "TIME") Now }}'

_READY = _filled(
    _NOW
    + """
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
phase: Running
startTime: {{ $now | Quote }}
"""
)

_EXIT = """
{{ $exit := index $annotations "LAST_EXIT" }}
{{ $first := index $annotations "FIRST_EXIT" }}
{{ if and $first (eq (index .metadata.labels "ATTEMPT") "0") }}{{ $exit = $first }}{{ end }}
{{ $unlucky := index $annotations "UNLUCKY_EXIT" }}
{{ if and $unlucky (regexMatch "UNLUCKY" .metadata.name) }}{{ $exit = $unlucky }}{{ end }}
"""

_KILLED = """
{{ $exit := "137" }}
"""

_STATUS = """
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ $exit }}
      reason: {{ if eq $exit "0" }}Completed{{ else }}Error{{ end }}
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
phase: {{ if eq $exit "0" }}Succeeded{{ else }}Failed{{ end }}
"""

_ENDED = _filled(_NOW + _EXIT + _STATUS)
_DELETED = _filled(_NOW + _KILLED + _STATUS)


def _stage(
    name: str, conditions: list[dict[str, Any]], delay: dict[str, Any], action: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": conditions},
            "delay": delay,
            "next": action,
        },
    }


def _is(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def pod_stages() -> list[dict[str, Any]]:
    """A pod's stages: ready, ended, killed, deleted.

    As a kubelet does, kwok reports the end of a pod before it deletes it, and leaves the finalizers to their owner: the
    controller of batch Jobs counts a pod by its phase, and has one until it has counted it.
    """
    deleted = _is(".metadata.deletionTimestamp", "Exists")
    first = f'.metadata.annotations["{FIRST_EXIT}"]'
    alive = _is(".metadata.deletionTimestamp", "DoesNotExist")
    seconds = f'.metadata.annotations["{SECONDS}"]'
    return [
        _stage(
            "chaos-pod-ready",
            [alive, _is(".status.podIP", "DoesNotExist")],
            {"durationMilliseconds": 100, "jitterDurationMilliseconds": 1200},
            {"statusTemplate": _READY},
        ),
        _stage(
            "chaos-pod-ended",
            [alive, _is(".status.phase", "In", "Running"), _is(f'.metadata.annotations["{EXIT}"]', "Exists")],
            {"durationMilliseconds": 2000, "durationFrom": {"expressionFrom": seconds}},
            {"statusTemplate": _ENDED},
        ),
        _stage(
            "chaos-pod-ended-once",
            [
                alive,
                _is(".status.phase", "In", "Running"),
                _is(f'.metadata.annotations["{EXIT}"]', "DoesNotExist"),
                _is(first, "Exists"),
                _is(f'.metadata.labels["{ATTEMPT}"]', "In", "0"),
            ],
            {"durationMilliseconds": 2000, "durationFrom": {"expressionFrom": seconds}},
            {"statusTemplate": _ENDED},
        ),
        _stage(
            "chaos-pod-killed",
            [deleted, _is(".status.phase", "In", "Pending", "Running")],
            {"durationMilliseconds": 50, "jitterDurationMilliseconds": 1000},
            {"statusTemplate": _DELETED},
        ),
        _stage(
            "chaos-pod-deleted",
            [deleted, _is(".status.phase", "In", "Succeeded", "Failed")],
            {"durationMilliseconds": 50, "jitterDurationMilliseconds": 500},
            {"delete": True},
        ),
    ]
