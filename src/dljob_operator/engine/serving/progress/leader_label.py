"""The label of the pod that serves the endpoint: the Service selects only the leader, who knows the jobs."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import own_namespace
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.kube import ApiConnectionError, KubeApi

_LOG = logging.getLogger(__name__)
LABEL = "dljob.operator/serves-progress"


def set_label(api: KubeApi, environ: Mapping[str, str], *, serves: bool) -> None:
    """Label this process's own pod, or remove the label. Outside a pod (no POD_NAME) it does nothing.

    A failure is logged: the jobs matter more than their progress.
    """
    name, namespace = environ.get("POD_NAME", ""), own_namespace(environ)
    if not (name and namespace):
        return
    body = {"metadata": {"labels": {LABEL: "true" if serves else None}}}
    try:
        api.request("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", body, content_type=MERGE_PATCH)
    except (ApiError, ApiConnectionError) as error:
        _LOG.warning("cannot label the operator's own pod", extra=logs.fields(label=LABEL, error=str(error)))
