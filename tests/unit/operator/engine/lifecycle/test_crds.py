"""Installing the definitions: which files, how they are created or applied, and how the wait for them ends."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.lifecycle.crds import CRDS, CREATED_BY, Installed, install_crds, is_current, read_crds

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "jobs"},
        "versions": [{"name": "v1", "served": True}],
    },
}
SERVED = {"conditions": [{"type": "Established", "status": "True"}]}
ESTABLISHED = {"type": "MODIFIED", "object": {**DEFINITION, "status": SERVED}}
DIFFERENT = {
    **DEFINITION,
    "metadata": {"name": "jobs.example.com", "uid": "old"},
    "spec": {**DEFINITION["spec"], "names": {"plural": "jobs", "shortNames": ["j"]}},
}
"""What exists under the name, and must be changed."""
GONE = {
    "type": "ERROR",
    "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410},
}


class Api(KubeApi):
    """Accepts every definition, and sends these events. `present` has the definitions that exist, by name.

    `requests` are the writes, which fail with `error`. A read finds what exists, unless it fails with `unreadable`.
    """

    def __init__(self, *events: Any, present: Mapping[str, Any] | None = None) -> None:
        self._events = events
        self._present = present or {}
        self.requests: list[dict[str, Any]] = []
        self.watched: list[tuple[str, dict[str, Any], float]] = []
        self.error: ApiError | None = None
        self.unreadable: ApiError | None = None

    def request(
        self, method: str, path: str, body: Any = None, *, query: Any = None, content_type: str = ""
    ) -> dict[str, Any]:
        if method == "GET":
            return self._read(path)
        self.requests.append(
            {"method": method, "path": path, "body": body, "query": query, "content_type": content_type}
        )
        if self.error:
            raise self.error
        name = body["metadata"]["name"]
        if method == "POST" and name in self._present:
            raise ApiError(409, "AlreadyExists", f"{name} already exists")
        kept = self._present.get(name, {"metadata": {**body["metadata"], "uid": f"uid of {name}"}})
        return {**kept, **body, "metadata": kept["metadata"]}

    def _read(self, path: str) -> dict[str, Any]:
        name = path.removeprefix(f"{CRDS.collection()}/")
        if self.unreadable:
            raise self.unreadable
        if name not in self._present:
            raise ApiError(404, "NotFound", f"{name} not found")
        return dict(self._present[name])

    @contextlib.contextmanager
    def watch(self, path: str, query: Mapping[str, Any], quiet_for: float) -> Iterator[Any]:
        self.watched.append((path, dict(query), quiet_for))
        yield iter(self._events)


def write(folder: Path, *definitions: Any) -> None:
    for number, definition in enumerate(definitions):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(definition))


def install(tmp_path: Path, *events: Any) -> list[str]:
    write(tmp_path, DEFINITION)
    return [one.name for one in install_crds(Api(*events), tmp_path)]


def test_an_established_definition_is_installed(tmp_path: Path) -> None:
    assert install(tmp_path, {"type": "ADDED", "object": DEFINITION}, ESTABLISHED) == ["jobs.example.com"]


def test_a_watch_that_ends_with_an_error_is_an_error_of_the_api_server(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="too old") as raised:
        install(tmp_path, GONE)
    assert raised.value.status == 410


def test_a_definition_that_is_never_established_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiConnectionError, match=r"jobs\.example\.com was not served"):
        install(tmp_path)


def test_the_name_of_a_definition_that_is_not_served_leads_to_its_conditions(tmp_path: Path) -> None:
    with pytest.raises(ApiConnectionError, match=r"within 30 s; see kubectl describe crd jobs\.example\.com"):
        install(tmp_path)


@pytest.mark.parametrize(
    "conditions",
    [
        None,
        [{"type": "Established", "status": "False"}],
        [{"type": "NamesAccepted", "status": "True"}],
    ],
)
def test_a_definition_is_not_established_before_its_condition_is_true(
    tmp_path: Path, conditions: list[dict[str, str]] | None
) -> None:
    definition = {**DEFINITION, "status": {"conditions": conditions}}
    with pytest.raises(ApiConnectionError):
        install(tmp_path, {"type": "MODIFIED", "object": definition})


def test_an_error_without_details_is_that_of_the_server(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="the watch ended") as raised:
        install(tmp_path, {"type": "ERROR", "object": {}})
    assert (raised.value.status, raised.value.reason) == (500, "")
    with pytest.raises(ApiError) as raised:
        install(tmp_path, GONE)
    assert raised.value.reason == "Expired"


def test_the_wait_selects_the_definition_and_ends(tmp_path: Path) -> None:
    api = Api(ESTABLISHED)
    write(tmp_path, DEFINITION)
    install_crds(api, tmp_path)
    query = {"fieldSelector": "metadata.name=jobs.example.com", "timeoutSeconds": 30}
    assert api.watched == [("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", query, 30.0)]


# --- files


def test_the_definitions_of_a_directory_are_read_in_the_order_of_their_files(tmp_path: Path) -> None:
    def crd(name: str) -> dict[str, Any]:
        return {"kind": "CustomResourceDefinition", "metadata": {"name": name}}

    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([crd("second"), crd("third")]))
    (tmp_path / "a.yml").write_text(yaml.safe_dump_all([None, {"kind": "List"}, ["text"], crd("first \u00fc")]))
    (tmp_path / "c.json").write_text("{}")
    assert [one["metadata"]["name"] for one in read_crds(tmp_path)] == ["first \u00fc", "second", "third"]


def test_a_directory_without_definitions_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{tmp_path} has no CustomResourceDefinition; .*--crds-dir"):
        read_crds(tmp_path)


# --- created or applied


def test_without_a_mark_definitions_are_applied(tmp_path: Path) -> None:
    api = Api(ESTABLISHED)
    write(tmp_path, DEFINITION)
    (found,) = install_crds(api, tmp_path)
    assert api.requests == [
        {
            "method": "PATCH",
            "path": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobs.example.com",
            "body": DEFINITION,
            "query": {"fieldManager": "dljob-operator", "force": "true"},
            "content_type": "application/apply-patch+yaml",
        }
    ]
    assert found == Installed("jobs.example.com", "uid of jobs.example.com", False, "example.com", "v1", "jobs", True)


def test_what_is_installed_has_the_version_and_the_scope_that_are_served(tmp_path: Path) -> None:
    versions = [{"name": "v1alpha1", "served": False}, {"name": "v1", "served": True}, {"name": "v2", "served": True}]
    write(tmp_path, {**DEFINITION, "spec": {**DEFINITION["spec"], "scope": "Cluster", "versions": versions}})
    (found,) = install_crds(Api(ESTABLISHED), tmp_path)
    assert (found.version, found.namespaced) == ("v1", False)


@pytest.mark.parametrize("annotations", [None, {"example.com/a": "b"}])
def test_with_a_mark_a_definition_is_created_and_carries_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, annotations: dict[str, str] | None
) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    definition = {**DEFINITION, "metadata": {**DEFINITION["metadata"], "annotations": annotations}}
    api = Api(ESTABLISHED)
    write(tmp_path, definition)
    (found,) = install_crds(api, tmp_path, "this process")
    (request,) = api.requests
    assert (request["method"], request["path"]) == (
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    )
    assert request["query"] == {"fieldManager": "dljob-operator"}
    assert request["body"]["metadata"]["annotations"] == {**(annotations or {}), CREATED_BY: "this process"}
    assert request["body"]["spec"] == DEFINITION["spec"]
    assert found.created
    assert [(record.message, record.__dict__["dljob_fields"]) for record in caplog.records] == [
        ("CustomResourceDefinition installed", {"crd": "jobs.example.com", "created": True})
    ]


@pytest.mark.parametrize(
    ("mark", "annotations", "expected"),
    [
        ("this process", {CREATED_BY: "another process"}, ["another process"]),
        ("this process", {}, []),
        ("this process", None, []),
        ("", {CREATED_BY: "another process"}, []),
    ],
)
def test_a_definition_that_exists_is_updated_and_not_taken_over(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    mark: str,
    annotations: dict[str, str] | None,
    expected: list[str],
) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    present = {**DIFFERENT, "metadata": {**DIFFERENT["metadata"], "annotations": annotations}}
    api = Api(ESTABLISHED, present={"jobs.example.com": present})
    write(tmp_path, DEFINITION)
    (found,) = install_crds(api, tmp_path, mark)
    assert [request["method"] for request in api.requests] == ["PATCH"]
    assert (found.uid, found.created) == ("old", False)
    *notes, last = [record.__dict__["dljob_fields"] for record in caplog.records]
    assert notes == [{"crd": "jobs.example.com", "created_by": creator} for creator in expected]
    assert last == {"crd": "jobs.example.com", "created": False}


def test_a_definition_that_appears_after_the_read_is_applied(tmp_path: Path) -> None:
    """The API server refuses to create it a second time."""
    api = Api(ESTABLISHED, present={"jobs.example.com": DIFFERENT})
    api.unreadable = ApiError(404, "NotFound", "not yet")
    write(tmp_path, DEFINITION)
    (found,) = install_crds(api, tmp_path, "this process")
    assert [request["method"] for request in api.requests] == ["POST", "PATCH"]
    assert (found.uid, found.created) == ("old", False)


@pytest.mark.parametrize(("mark", "writes"), [("", ["PATCH"]), ("this process", ["POST", "PATCH"])])
def test_a_definition_that_this_process_may_not_read_is_written(tmp_path: Path, mark: str, writes: list[str]) -> None:
    api = Api(
        ESTABLISHED, present={"jobs.example.com": {**DEFINITION, "metadata": {**DEFINITION["metadata"], "uid": "u"}}}
    )
    api.unreadable = ApiError(403, "Forbidden", "not yours")
    write(tmp_path, DEFINITION)
    install_crds(api, tmp_path, mark)
    assert [request["method"] for request in api.requests] == writes


def test_an_error_of_the_read_is_one_of_the_installation(tmp_path: Path) -> None:
    api = Api(ESTABLISHED)
    api.unreadable = ApiError(500, "InternalError", "etcd is away")
    write(tmp_path, DEFINITION)
    with pytest.raises(ApiError, match="etcd is away"):
        install_crds(api, tmp_path)
    assert api.requests == []


def test_another_error_of_the_creation_is_one_of_the_installation(tmp_path: Path) -> None:
    api = Api(ESTABLISHED)
    api.error = ApiError(403, "Forbidden", "not yours")
    write(tmp_path, DEFINITION)
    with pytest.raises(ApiError, match="not yours"):
        install_crds(api, tmp_path, "this process")


REFUSAL = (
    'CustomResourceDefinition.apiextensions.k8s.io "jobs.example.com" is invalid: status.storedVersions[0]: Invalid '
    'value: "v1alpha1": missing from spec.versions; v1alpha1 was previously a storage version'
)


@pytest.mark.parametrize("mark", ["", "this process"])
def test_a_definition_of_another_operator_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mark: str
) -> None:
    class Conflicting(Api):
        def request(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
            if method == "PATCH" and path.endswith("/jobs.example.com"):
                raise ApiError(422, "Invalid", REFUSAL)
            return super().request(method, path, body, **more)

    second = {**DEFINITION, "metadata": {"name": "others.example.com"}}
    write(tmp_path, DEFINITION, second)
    found = install_crds(Conflicting(ESTABLISHED, present={"jobs.example.com": DIFFERENT}), tmp_path, mark)
    assert [one.name for one in found] == ["others.example.com"]
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "delete it if it has no objects" in warning.message
    fields = warning.__dict__["dljob_fields"]
    assert (fields["crd"], str(fields["error"])) == ("jobs.example.com", REFUSAL)


@pytest.mark.parametrize(
    "message",
    [
        "spec.versions: Invalid value: must have exactly one version marked as storage",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ],
)
def test_a_definition_that_is_invalid_otherwise_is_an_error(tmp_path: Path, message: str) -> None:
    api = Api(ESTABLISHED)
    api.error = ApiError(422, "Invalid", message)
    write(tmp_path, DEFINITION)
    with pytest.raises(ApiError, match="Invalid value"):
        install_crds(api, tmp_path)


def test_what_was_created_before_an_error_is_known_to_the_caller(tmp_path: Path) -> None:
    second = {**DEFINITION, "metadata": {"name": "others.example.com"}}
    write(tmp_path, DEFINITION, second)
    installed: list[Installed] = []
    with pytest.raises(ApiConnectionError):
        install_crds(Api(), tmp_path, "this process", installed)
    assert [(one.name, one.created) for one in installed] == [("jobs.example.com", True)]
    assert install_crds(Api(ESTABLISHED), tmp_path, installed=installed) == installed
    assert [one.name for one in installed] == ["jobs.example.com", "jobs.example.com", "others.example.com"]


# --- compared first

WHOLE: dict[str, Any] = {
    **DEFINITION,
    "metadata": {"name": "jobs.example.com", "labels": {"part-of": "us"}, "annotations": {"a": "b"}},
    "spec": {
        **DEFINITION["spec"],
        "versions": [
            {
                "name": "v1",
                "served": True,
                "schema": {"properties": {"n": {"minimum": 1, "default": 1}, "on": {"default": True}, "e": {}}},
            }
        ],
    },
}


def stored(**metadata: Any) -> dict[str, Any]:
    """The definition as the API server returns it, with what it and others add."""
    found: dict[str, Any] = copy.deepcopy(WHOLE)
    found["status"] = SERVED
    found["metadata"] |= {"uid": "u", "generation": 3, "managedFields": [{"manager": "x"}], **metadata}
    return found


def changed(*path: Any, to: Any = None) -> dict[str, Any]:
    """What is stored, with another value at the path, or without it."""
    found = stored()
    place = found
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return found


@pytest.mark.parametrize("mark", ["", "this process"])
def test_a_definition_that_is_there_already_is_only_read(tmp_path: Path, mark: str) -> None:
    api = Api(present={"jobs.example.com": stored()})
    write(tmp_path, WHOLE)
    (found,) = install_crds(api, tmp_path, mark)
    assert (api.requests, api.watched) == ([], [])
    assert found == Installed("jobs.example.com", "u", False, "example.com", "v1", "jobs", True)


def test_one_that_is_there_and_not_served_is_waited_for(tmp_path: Path) -> None:
    api = Api(ESTABLISHED, present={"jobs.example.com": {**stored(), "status": {}}})
    write(tmp_path, WHOLE)
    install_crds(api, tmp_path)
    assert (api.requests, len(api.watched)) == ([], 1)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"part-of": "us", "theirs": "1"}},
        {"annotations": {"a": "b", CREATED_BY: "another process"}},
        {"ownerReferences": [{"uid": "1"}], "finalizers": ["x"]},
    ],
)
def test_what_others_add_to_the_metadata_is_theirs(metadata: dict[str, Any]) -> None:
    assert is_current(WHOLE, stored(**metadata))


SCHEMA = ("spec", "versions", 0, "schema", "properties")


@pytest.mark.parametrize(
    "present",
    [
        None,
        changed("spec"),
        changed("apiVersion", to="apiextensions.k8s.io/v2"),
        changed("spec", "scope", to="Cluster"),
        changed("spec", "conversion", to={"strategy": "Webhook"}),
        changed("spec", "names", "singular", to="job"),
        changed("spec", "versions", 0, "served", to=False),
        changed("spec", "versions", to=[]),
        changed("spec", "versions", to=[*WHOLE["spec"]["versions"], {"name": "v2"}]),
        changed(*SCHEMA, "n"),
        changed(*SCHEMA, "n", "minimum"),
        changed(*SCHEMA, "n", "minimum", to=2),
        changed(*SCHEMA, "n", "minimum", to=1.0),
        changed(*SCHEMA, "n", "minimum", to="1"),
        changed(*SCHEMA, "n", "default", to=True),
        changed(*SCHEMA, "n", "maximum", to=2),
        changed(*SCHEMA, "on", "default", to=1),
        changed(*SCHEMA, "e", to=[]),
        changed(*SCHEMA, "more", to={}),
        changed("metadata", "labels"),
        changed("metadata", "labels", to={}),
        changed("metadata", "labels", "part-of", to="them"),
        changed("metadata", "annotations", "a", to="c"),
    ],
    ids=lambda present: "",
)
def test_every_difference_counts(tmp_path: Path, present: dict[str, Any] | None) -> None:
    assert not is_current(WHOLE, present)
    assert is_current(WHOLE, stored())
    api = Api(ESTABLISHED, present={"jobs.example.com": present} if present and "spec" in present else {})
    write(tmp_path, WHOLE)
    install_crds(api, tmp_path)
    assert [request["body"] for request in api.requests] == [WHOLE]


def test_a_definition_without_a_spec_is_the_api_servers_to_refuse() -> None:
    bare = {key: value for key, value in WHOLE.items() if key != "spec"}
    assert not is_current(bare, stored())


def test_only_what_differs_is_applied(tmp_path: Path) -> None:
    second = {**DEFINITION, "metadata": {"name": "others.example.com"}}
    write(tmp_path, WHOLE, second)
    api = Api(ESTABLISHED, present={"jobs.example.com": stored()})
    assert [one.name for one in install_crds(api, tmp_path)] == ["jobs.example.com", "others.example.com"]
    assert [request["body"]["metadata"]["name"] for request in api.requests] == ["others.example.com"]
