"""The cluster info that a reconcile reads: only what it needs, and how it reports missing permissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import cluster_info
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    GPU,
    GRPC_SERVER_FILE,
    ClusterInfo,
    RequiredInfo,
)

CONFIG = RequiredInfo(config=True)
NODES = RequiredInfo(config=True, nodes=True)
SERVER = RequiredInfo(config=True, settings=frozenset({GRPC_SERVER_FILE}))
HERE = "ConfigMap default/tf-job-operator-config, data.controller_config_file.yaml"


def config_map(text: str, namespace: str = "default", key: str = "controller_config_file.yaml") -> dict[str, Any]:
    return {"metadata": {"name": "tf-job-operator-config", "namespace": namespace}, "data": {key: text}}


def resources(*names: str) -> str:
    return "accelerators: {" + ", ".join(f"{name}: {{}}" for name in names) + "}"


class Api(RestClient):
    """A fake API server with responses by path (and continue token). Unknown paths are 404. It records the requests."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self._answers = dict(answers or {})
        self.asked: list[str] = []

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        assert method == "GET"
        key = path + (f"?{query['continue']}" if query and "continue" in query else "")
        self.asked.append(key)
        answer = self._answers.get(key, ApiError(404, "NotFound", "not found"))
        if isinstance(answer, ApiError):
            raise answer
        return answer


def path(namespace: str = "default", name: str = "tf-job-operator-config") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def in_default(**settings: str) -> OperatorSettings:
    return OperatorSettings(config_namespaces=("default",), **settings)  # type: ignore[arg-type]


def read(api: Api, needs: RequiredInfo, **settings: str) -> ClusterInfo:
    made, remarks = cluster_info.read(api, needs, in_default(**settings), cache_snapshot.cluster_info())
    assert remarks == ()
    return made


@pytest.fixture(autouse=True)
def nothing_published() -> Iterator[None]:
    yield
    cache_snapshot.publish(None)


class TestTheConfigMap:
    @pytest.mark.parametrize(
        ("namespaces", "found", "asked"),
        [
            (("ml", "default"), {"ml": GPU, "default": ALPHA_GPU}, ["ml"]),
            (("ml", "default"), {"default": ALPHA_GPU}, ["ml", "default"]),
            # whoever may write in another namespace configures no host paths
            (("ml",), {"default": ALPHA_GPU}, ["ml"]),
            ((), {"default": ALPHA_GPU}, []),
        ],
    )
    def test_is_read_from_no_namespace_that_is_not_named(
        self, namespaces: tuple[str, ...], found: dict[str, str], asked: list[str]
    ) -> None:
        api = Api({path(where): config_map(resources(name), where) for where, name in found.items()})
        made, _ = cluster_info.read(api, CONFIG, OperatorSettings(config_namespaces=namespaces))
        assert list(made.config.accelerators) == [found[where] for where in asked if where in found]
        assert api.asked == [path(where) for where in asked]

    def test_then_the_clouds_preset(self) -> None:
        made = read(Api(), CONFIG, cloud="gke").config
        assert (list(made.accelerators), made.preset) == ([ALPHA_GPU], True)
        assert read(Api(), CONFIG) == ClusterInfo()

    def test_takes_precedence_over_the_preset(self) -> None:
        made = read(Api({path(): config_map("accelerators: {}")}), CONFIG, cloud="gke").config
        assert (made.accelerators, made.preset) == ({}, False)

    def test_may_have_another_name(self) -> None:
        api = Api({path(name="gpus"): config_map(resources(GPU))})
        assert GPU in read(api, CONFIG, config_map="gpus").config.accelerators

    def test_may_hold_the_manifest_that_it_was_made_from(self) -> None:
        text = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n"
            f"  controller_config_file.yaml: |\n    {resources(GPU)}\n"
        )
        api = Api({path(): config_map(text, key="config.yaml")})
        assert list(read(api, CONFIG).config.accelerators) == [GPU]

    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            (
                {"controller_config_file.yaml": "accelerators:\n  a: [b\nc: d\n"},
                "ConfigMap default/tf-job-operator-config, data.controller_config_file.yaml is not valid YAML: expected ',' or "
                "']', but got ':', in line 3",
            ),
            ({"controller_config_file.yaml": "- a\n"}, f"{HERE}: the file must be a map, not ['a']"),
            (
                None,
                "ConfigMap default/tf-job-operator-config: data.controller_config_file.yaml is missing: put the "
                "accelerators there, in YAML",
            ),
            (
                {"controller_config_file.yaml": "kind: ConfigMap\n"},
                f"{HERE}: data.controller_config_file.yaml is missing: put the accelerators there, in YAML",
            ),
        ],
    )
    def test_errors_are_reported(self, data: Any, problem: str) -> None:
        api = Api({path(): {**config_map(""), "data": data}})
        assert read(api, CONFIG).config.problems == {"": problem}

    def test_a_denial_is_only_reported(self) -> None:
        api = Api({path(): ApiError(403, "Forbidden", 'cannot get resource "configmaps"')})
        made, remarks = cluster_info.read(api, CONFIG, in_default())
        assert made == ClusterInfo()
        assert remarks == (
            'cannot get resource "configmaps"; without it the accelerators of default/tf-job-operator-config are not '
            "configured",
        )

    def test_no_answer_is_an_error(self) -> None:
        with pytest.raises(ApiError, match="timeout"):
            read(Api({path(): ApiError(0, "NoAnswer", "timeout")}), CONFIG)


class TestTheNodes:
    def test_all_pages_of_them(self) -> None:
        first = {"items": [{"status": {"capacity": {GPU: "1"}}}], "metadata": {"continue": "t"}}
        second = {"items": [{"status": {"capacity": {ALPHA_GPU: "1"}}}], "metadata": {}}
        api = Api({"/api/v1/nodes": first, "/api/v1/nodes?t": second})
        assert read(api, NODES).advertised == {GPU, ALPHA_GPU}

    def test_only_where_they_matter(self) -> None:
        api = Api({"/api/v1/nodes": {"items": []}})
        assert read(api, CONFIG).advertised is None
        assert api.asked == [path()]

    def test_a_denial_is_only_reported(self) -> None:
        api = Api({"/api/v1/nodes": ApiError(403, "Forbidden", 'cannot list resource "nodes"')})
        made, remarks = cluster_info.read(api, NODES, in_default())
        assert made.advertised is None
        assert remarks == (
            'cannot list resource "nodes"; without it the operator does not replace alpha resource names',
        )


class TestAnEngineThatWatches:
    def published(self, *found: Any, names: list[str] | None = None) -> None:
        site_seen = {"config_map": "tf-job-operator-config", "config_maps": list(found), "resources": names}
        cache_snapshot.publish({}, site_seen)

    def test_makes_every_read_unnecessary(self) -> None:
        self.published(config_map(resources(GPU), "ml"), config_map(resources(ALPHA_GPU)), names=[GPU])
        api = Api()
        made = read(api, NODES)
        assert (list(made.config.accelerators), made.advertised, made.watched) == ([GPU], {GPU}, True)
        assert api.asked == []

    def test_an_engine_without_permissions(self) -> None:
        self.published()
        assert read(Api(), NODES, cloud="azure").config.preset
        assert read(Api(), NODES).advertised is None

    def test_watches_the_map_of_the_usual_name(self) -> None:
        self.published(config_map(resources(ALPHA_GPU)), names=[GPU])
        api = Api({path(name="gpus"): config_map(resources(GPU))})
        made = read(api, NODES, config_map="gpus")
        assert (list(made.config.accelerators), made.watched, made.advertised) == ([GPU], False, {GPU})


class TestTheServersFile:
    def api(self, file: Path | str) -> Api:
        return Api({path(): config_map(f"grpcServerFilePath: {file}")})

    @pytest.mark.parametrize("text", ["print('ü')\n", "#" * (512 * 1024)], ids=["short", "as large as possible"])
    def test_is_read(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "server.py"
        file.write_text(text, encoding="utf-8")
        assert read(self.api(file), SERVER).programs == {GRPC_SERVER_FILE: text}
        assert read(self.api(file), CONFIG).programs == {}

    def test_may_be_missing_as_the_documented_one_is(self) -> None:
        assert read(self.api("/opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py"), SERVER).programs == {}

    @pytest.mark.parametrize(("name", "text"), [("token", "secret"), ("large.py", "#" * (512 * 1024 + 1))])
    def test_other_files_of_the_operator_are_not_read(self, tmp_path: Path, name: str, text: str) -> None:
        file = tmp_path / name
        file.write_text(text)
        link = tmp_path / "link.py"
        link.symlink_to(file)
        for given in (file, link):
            made, remarks = cluster_info.read(self.api(given), SERVER, in_default())
            assert made.programs == {}
            assert remarks == (f"grpcServerFilePath: {given} is not a Python file (.py) of up to 524288 bytes",)

    def test_a_binary_file_is_reported(self, tmp_path: Path) -> None:
        file = tmp_path / "server.py"
        file.write_bytes(b"\xff")
        made, remarks = cluster_info.read(self.api(file), SERVER, in_default())
        assert (made.programs, len(remarks)) == ({}, 1)
