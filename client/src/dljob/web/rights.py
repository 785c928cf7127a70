"""What the user of a token may do, in the API server's own words."""

from __future__ import annotations

from collections.abc import Sequence

from dljob import kinds
from dljob.api import Api, Request
from dljob.errors import ApiError
from dljob.kinds import Kind

VERBS = ("list", "watch")
_ANONYMOUS = "system:anonymous"


def user(api: Api) -> str:
    """The name of the token's user. Raises ApiError, with the status 401 for a token that is wrong or has expired."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = api.send(Request("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, "POST", body))
    name = str(((found.get("status") or {}).get("userInfo") or {}).get("username") or "")
    if name in ("", _ANONYMOUS):
        raise ApiError(401, "Unauthorized", "The cluster does not say whose token this is.")
    return name


def watchable(api: Api, namespace: str) -> Sequence[Kind]:
    """The kinds whose jobs the user may list and watch in a namespace, or for "" in all. Raises ApiError."""
    asked = [
        (kind, {"group": kind.group, "resource": kind.plural, "verb": verb}) for kind in kinds.ALL for verb in VERBS
    ]
    answers = _may(api, [{**what, "namespace": namespace} for _, what in asked])
    denied = {kind.resource for (kind, _), answer in zip(asked, answers, strict=True) if not answer}
    return [kind for kind in kinds.ALL if kind.resource not in denied]


def reads_logs(api: Api, namespace: str) -> bool:
    """Whether the user may read logs in the namespace. Raises ApiError."""
    return _may(api, [{"resource": "pods", "subresource": "log", "verb": "get", "namespace": namespace}])[0]


def _may(api: Api, attributes: Sequence[dict[str, str]]) -> Sequence[bool]:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    bodies = [{**head, "spec": {"resourceAttributes": one}} for one in attributes]
    answers = []
    for response in api.send_all([Request(path, {}, "POST", body) for body in bodies]):
        if error := response.error():
            raise error
        answers.append((response.json().get("status") or {}).get("allowed") is True)
    return answers
