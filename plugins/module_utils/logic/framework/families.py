"""Families of API flavors: what the kinds of one operator have in common. A declaration takes it with ``extends``.

``{group}`` is the API group of the flavor, ``{kind_lower}`` its kind in lower case; both are filled in when the
framework is loaded, the other placeholders for each replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    # training-operator v1
    "kubeflow_v1": {
        "replicas_layout": "map",
        "port_name": "{kind_lower}-port",
        "names": "job",
        "status": "v1",
        "fails_by": "any",
        "default_restart_policy": "Never",
        "default_clean_pod_policy": "None",
        "environment_in": "all",
        "exit_codes": {"retryable": ["128-255"], "oom_retryable": True},
        "labels": {
            "training.kubeflow.org/operator-name": "{kind_lower}-controller",
            "training.kubeflow.org/job-name": "{job}",
            "training.kubeflow.org/replica-type": "{type_lower}",
            "training.kubeflow.org/replica-index": "{index}",
            "training.kubeflow.org/job-role": "{role}",
        },
    },
    # the operators before it, such as tf-operator's and mx-operator's v1alpha1
    "v1alpha1_list": {
        "replicas_layout": "list",
        "replicas_fields": ["replicaSpecs"],
        "names": "runtime-id",
        "status": "v1alpha1",
        "fails_by": "target",
        "default_restart_policy": "OnFailure",
        "default_clean_pod_policy": "Running",
        "environment_in": "named",
        "exit_codes": {"retryable": ["128-255"]},
        "labels": {
            "{group}": "",
            "job_type": "{type_upper}",
            "runtime_id": "{runtime_id}",
            "task_index": "{index}",
        },
    },
}
