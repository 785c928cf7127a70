"""The operator's ConfigMap: valid configurations, and the errors of invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators import config
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    GPU,
    Accelerator,
    HostVolume,
    OperatorConfig,
    Variable,
)
from hypothesis import given
from hypothesis import strategies as st
from support.upstream_manifests import from_each_source, load

WHERE = "ConfigMap default/tf-job-operator-config, data.controller_config_file.yaml"
LIBS = {"name": "libs", "mountPath": "/usr/local/nvidia/lib64", "hostPath": "/usr/lib/nvidia"}
PATH = {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"}


def read(document: Any) -> OperatorConfig:
    return config.read(document, WHERE)


def entry(**fields: Any) -> dict[str, Any]:
    return {"accelerators": {ALPHA_GPU: fields}}


@pytest.mark.parametrize("path", from_each_source("tf-job-operator-config.yaml"))
def test_upstream_manifest(path: Path) -> None:
    data = load(path)["data"]
    key, text = config.text_of(data)
    assert key == "controller_config_file.yaml"
    made = read(yaml.safe_load(text))
    assert made.problems == {}
    assert made.files == {"grpcServerFilePath": "/opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py"}
    assert made.accelerators == {
        ALPHA_GPU: Accelerator(
            (
                HostVolume("nvidia-libs", "/usr/local/nvidia/lib64", "/usr/lib"),
                HostVolume("nvidia-bin", "/usr/local/nvidia/bin", "/usr/bin"),
            ),
            (Variable("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64"),),
        )
    }


@pytest.mark.parametrize(
    "document",
    [None, {}, {"accelerators": None}, {"accelerators": {}}, {"tfImage": "tensorflow/tensorflow:1.3.0"}],
)
def test_an_empty_one_is_good(document: Any) -> None:
    assert read(document) == OperatorConfig()


def test_a_resource_may_need_nothing() -> None:
    assert read({"accelerators": {GPU: None}}).accelerators == {GPU: Accelerator()}


def test_the_server_file_stands_within_the_accelerators_or_beside_them() -> None:
    beside = read({"grpcServerFilePath": "/a.py", "accelerators": {GPU: {"volumes": [LIBS]}}})
    assert (beside.files, list(beside.accelerators)) == ({"grpcServerFilePath": "/a.py"}, [GPU])
    assert read({"grpcServerFilePath": "/a.py", "accelerators": {"grpcServerFilePath": "/b.py"}}).files == {
        "grpcServerFilePath": "/b.py"
    }


A = f"accelerators[{ALPHA_GPU}]"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"volume": []}, f"{A} has the unknown key 'volume': the known keys are volumes, envVars"),
        ({"volumes": LIBS}, f"{A}.volumes must be a list: start each item with '-'"),
        ({"volumes": ["libs"]}, f"{A}.volumes[0] must be a map, not 'libs'"),
        ({"volumes": [{**LIBS, "hostPath": None}]}, f"{A}.volumes[0].hostPath is missing: add it"),
        (
            {"volumes": [LIBS, {**LIBS, "path": "/x"}]},
            f"{A}.volumes[1] has the unknown key 'path': the known keys are name, mountPath, hostPath",
        ),
        (
            {"volumes": [{**LIBS, "mountPath": "usr"}]},
            f"{A}.volumes[0].mountPath: 'usr' is not an absolute path without '..': start it with '/'",
        ),
        (
            {"volumes": [{**LIBS, "hostPath": "/usr/../root"}]},
            f"{A}.volumes[0].hostPath: '/usr/../root' is not an absolute path without '..': start it with '/'",
        ),
        (
            {"volumes": [{**LIBS, "mountPath": "/a:b"}]},
            f"{A}.volumes[0].mountPath: '/a:b' has a ':', which Kubernetes does not allow: remove it",
        ),
        (
            {"volumes": [{**LIBS, "name": "Nvidia_Libs"}]},
            f"{A}.volumes[0].name: 'Nvidia_Libs' is not a valid volume name: use up to 63 of a-z, 0-9 and '-'",
        ),
        ({"volumes": [{**LIBS, "name": 7}]}, f"{A}.volumes[0].name: 7 is not a string: put it in quotes"),
        (
            {"volumes": [LIBS, {**LIBS, "name": "other", "mountPath": LIBS["mountPath"] + "/"}]},
            f"{A}.volumes: the mountPath '/usr/local/nvidia/lib64' occurs twice: use each mountPath once",
        ),
        (
            {"volumes": [LIBS, {**LIBS, "mountPath": "/b", "hostPath": "/c"}]},
            f"{A}.volumes: the name 'libs' occurs twice: use each name once",
        ),
        (
            {"envVars": [{**PATH, "valueFrom": {}}]},
            f"{A}.envVars[0] has the unknown key 'valueFrom': the known keys are name, value",
        ),
        ({"envVars": [{"value": "x"}]}, f"{A}.envVars[0].name is missing: add it"),
        (
            {"envVars": [{"name": "A=B"}]},
            f"{A}.envVars[0].name: 'A=B' is not a valid name of an environment variable: use letters, digits, '-', '.' and '_', and no digit first",
        ),
        ({"envVars": [{"name": "A", "value": 1}]}, f"{A}.envVars[0].value: 1 is not a string: put it in quotes"),
        ({"envVars": [PATH, PATH]}, f"{A}.envVars: the name 'LD_LIBRARY_PATH' occurs twice: use each name once"),
    ],
)
def test_an_error_in_an_entry_does_not_affect_others(fields: dict[str, Any], problem: str) -> None:
    document = entry(**fields)
    document["accelerators"][GPU] = {"envVars": [PATH]}
    made = read(document)
    assert made.problems == {ALPHA_GPU: f"{WHERE}: {problem}"}
    assert list(made.accelerators) == [GPU]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("accelerators", "the file must be a map, not 'accelerators'"),
        (
            {"accelerator": {}},
            "the file has the unknown key 'accelerator': the known keys are accelerators, grpcServerFilePath, tfImage",
        ),
        ({"accelerators": []}, None),
        ({"accelerators": ["x"]}, "accelerators must be a map, not ['x']"),
        (
            {"accelerators": {"gpu": {}}},
            "accelerators: 'gpu' is not a resource: use the name that pods request, e.g. nvidia.com/gpu",
        ),
        *(
            (
                {"accelerators": {name: {}}},
                f"accelerators: {name!r} is not a resource: use the name that pods request, e.g. nvidia.com/gpu",
            )
            for name in ("nvidia.com/a b", "/gpu", 5)
        ),
        (
            {"accelerators": {"grpcServerFilePath": 5}},
            "accelerators.grpcServerFilePath: 5 is not an absolute path without '..': start it with '/'",
        ),
    ],
)
def test_an_error_of_the_file_concerns_every_resource(document: Any, problem: str | None) -> None:
    assert read(document).problems == ({"": f"{WHERE}: {problem}"} if problem else {})


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"controller_config_file.yaml": "a", "other": "b"}, "controller_config_file.yaml"),
        ({"controller-config-file.yaml": "a", "other": "b"}, "controller-config-file.yaml"),
        # the key of `kubectl create configmap --from-file my-settings.yaml`
        ({"my-settings.yaml": "a"}, "my-settings.yaml"),
    ],
)
def test_the_key(data: dict[str, str], key: str) -> None:
    assert config.text_of(data) == (key, "a")


@pytest.mark.parametrize("data", [{}, {"a": "1", "b": "2"}])
def test_no_key_of_the_configuration(data: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"data\.controller_config_file\.yaml is missing"):
        config.text_of(data)


@pytest.mark.parametrize("path", from_each_source("tf-job-operator-config.yaml"))
def test_a_manifest_within_the_file_is_unwrapped(path: Path) -> None:
    """tf-operator's documented command creates a ConfigMap from a file that is itself the manifest of a ConfigMap."""
    assert config.inner_of(load(path)) == load(path)["data"]


def test_other_content_is_not_unwrapped() -> None:
    assert config.inner_of({"accelerators": {}}) is None
    assert config.inner_of({"kind": "ConfigMap"}) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["volumes", "envVars", "name", "value", "mountPath", "hostPath"]) | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON | st.fixed_dictionaries({"accelerators": st.dictionaries(st.sampled_from([ALPHA_GPU, GPU, "x"]), JSON)}))
def test_any_content_is_parsed_or_reported(document: Any) -> None:
    made = read(document)
    assert all(problem.startswith(f"{WHERE}: ") for problem in made.problems.values())
    assert not set(made.problems) & set(made.accelerators)
    if isinstance(document, dict) and isinstance(document.get("accelerators"), dict) and "" not in made.problems:
        assert set(made.problems) | set(made.accelerators) == set(document["accelerators"]) - {"grpcServerFilePath"}


NAME = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
HOST_PATH = st.from_regex(r"/([a-z]+/){0,3}[a-z]+", fullmatch=True)


@given(
    st.lists(
        st.builds(HostVolume, NAME, HOST_PATH, HOST_PATH),
        max_size=4,
        unique_by=(lambda v: v.name, lambda v: v.mount_path),
    ),
    st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True), st.text(max_size=9), max_size=3),
)
def test_a_valid_configuration_round_trips_through_yaml(volumes: list[HostVolume], variables: dict[str, str]) -> None:
    document = entry(
        volumes=[{"name": v.name, "mountPath": v.mount_path, "hostPath": v.host_path} for v in volumes],
        envVars=[{"name": name, "value": value} for name, value in variables.items()],
    )
    made = read(yaml.safe_load(yaml.safe_dump(document)))
    wanted = Accelerator(tuple(volumes), tuple(Variable(n, v) for n, v in variables.items()))
    assert made == OperatorConfig({ALPHA_GPU: wanted})
