"""What is injected into a pod that requests an accelerator."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators.inject import inject
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators.presets import preset
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    GPU,
    Accelerator,
    ClusterInfo,
    HostVolume,
    OperatorConfig,
    Variable,
)
from hypothesis import given
from hypothesis import strategies as st

LIBS = Accelerator(
    (HostVolume("libs", "/nvidia/lib", "/usr/lib/nvidia"),), (Variable("LD_LIBRARY_PATH", "/nvidia/lib"),)
)
LIBS_VOLUME = {"name": "libs", "hostPath": {"path": "/usr/lib/nvidia"}}
LIBS_MOUNT = {"name": "libs", "mountPath": "/nvidia/lib"}
LIBS_ENV = {"name": "LD_LIBRARY_PATH", "value": "/nvidia/lib"}
ONE_ALPHA = {"limits": {ALPHA_GPU: 1}}


def cluster_info(*advertised: str, nodes: bool = True, **accelerators: Accelerator) -> ClusterInfo:
    names = {"alpha": ALPHA_GPU, "gpu": GPU, "rdma": "rdma/hca"}
    config = OperatorConfig({names[key]: value for key, value in accelerators.items()})
    return ClusterInfo(config, frozenset(advertised) if nodes else None)


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    named = [{"name": f"c{n}", "image": "i", **c} for n, c in enumerate(containers)]
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": named, **spec}}


def injected(given: dict[str, Any], where: ClusterInfo) -> dict[str, Any]:
    before = copy.deepcopy(given)
    made = inject(given, where)
    assert given == before, "the pod handed in was changed"
    return dict(made["spec"])


def test_only_requesting_containers_are_changed() -> None:
    spec = injected(pod({"resources": ONE_ALPHA}, {}), cluster_info(alpha=LIBS))
    asking, other = spec["containers"]
    assert spec["volumes"] == [LIBS_VOLUME]
    assert (asking["volumeMounts"], asking["env"]) == ([LIBS_MOUNT], [LIBS_ENV])
    assert other == {"name": "c1", "image": "i"}


@pytest.mark.parametrize("field", ["limits", "requests"])
def test_limits_or_requests(field: str) -> None:
    spec = injected(pod({"resources": {field: {ALPHA_GPU: 1}}}), cluster_info(alpha=LIBS))
    assert spec["containers"][0]["volumeMounts"] == [LIBS_MOUNT]


def test_init_containers_too() -> None:
    first = {"name": "first", "image": "i", "resources": ONE_ALPHA}
    spec = injected(pod({}, initContainers=[first]), cluster_info(alpha=LIBS))
    assert spec["initContainers"][0]["volumeMounts"] == [LIBS_MOUNT]
    assert "volumeMounts" not in spec["containers"][0]


@pytest.mark.parametrize("resources", [None, {"limits": {"cpu": 1}}, {"limits": {"rdma/hca": 1}}])
def test_unknown_accelerators_change_nothing(resources: Any) -> None:
    given = pod({"resources": resources})
    assert inject(given, cluster_info(GPU, alpha=LIBS)) == given


def test_two_containers_share_one_volume() -> None:
    spec = injected(pod({"resources": ONE_ALPHA}, {"resources": ONE_ALPHA}), cluster_info(alpha=LIBS))
    assert spec["volumes"] == [LIBS_VOLUME]
    assert [c["volumeMounts"] for c in spec["containers"]] == [[LIBS_MOUNT], [LIBS_MOUNT]]


def test_the_users_variable_takes_precedence_and_may_refer_to_configured_ones() -> None:
    config = Accelerator(variables=(*LIBS.variables, Variable("CUDA_HOME", "/cuda")))
    own = [{"name": "LD_LIBRARY_PATH", "value": "$(CUDA_HOME)/lib"}]
    spec = injected(pod({"resources": ONE_ALPHA, "env": own}), cluster_info(alpha=config))
    assert spec["containers"][0]["env"] == [{"name": "CUDA_HOME", "value": "/cuda"}, *own]


@pytest.mark.parametrize("path", ["/nvidia/lib", "/nvidia/lib/"])
def test_the_users_mount_at_the_same_path_takes_precedence(path: str) -> None:
    own = [{"name": "mine", "mountPath": path}]
    volumes = [{"name": "mine", "emptyDir": {}}]
    spec = injected(pod({"resources": ONE_ALPHA, "volumeMounts": own}, volumes=volumes), cluster_info(alpha=LIBS))
    assert (spec["volumes"], spec["containers"][0]["volumeMounts"]) == (volumes, own)


@pytest.mark.parametrize(("mounts", "volumes"), [({"name": "x"}, []), (1, []), ([], {"name": "x"}), ([], 1)])
def test_malformed_mounts_and_volumes_are_passed_on(mounts: Any, volumes: Any) -> None:
    spec = injected(pod({"resources": ONE_ALPHA, "volumeMounts": mounts}, volumes=volumes), cluster_info(alpha=LIBS))
    assert (spec["volumes"], spec["containers"][0]["volumeMounts"]) == (volumes, mounts)
    assert spec["containers"][0]["env"] == [LIBS_ENV]


@pytest.mark.parametrize("env", [{"name": "x"}, 1])
def test_malformed_variables_are_passed_on(env: Any) -> None:
    spec = injected(pod({"resources": ONE_ALPHA, "env": env}), cluster_info(alpha=LIBS))
    assert (spec["containers"][0]["env"], spec["volumes"]) == (env, [LIBS_VOLUME])


def test_the_users_volume_of_that_name_is_kept() -> None:
    volumes = [{"name": "libs", "emptyDir": {}}, {"name": "libs-2", "emptyDir": {}}]
    spec = injected(pod({"resources": ONE_ALPHA}, volumes=volumes), cluster_info(alpha=LIBS))
    assert spec["volumes"] == [*volumes, {**LIBS_VOLUME, "name": "libs-3"}]
    assert spec["containers"][0]["volumeMounts"] == [{**LIBS_MOUNT, "name": "libs-3"}]


def test_a_free_name_is_short_enough() -> None:
    long = Accelerator((HostVolume("v" * 63, "/a", "/b"),))
    volumes = [{"name": "v" * 63, "emptyDir": {}}]
    spec = injected(pod({"resources": ONE_ALPHA}, volumes=volumes), cluster_info(alpha=long))
    assert spec["volumes"][1]["name"] == "v" * 61 + "-2"


def test_the_users_volume_of_the_same_path_is_used() -> None:
    volumes = [{"name": "libs", "hostPath": {"path": "/usr/lib/nvidia/", "type": "Directory"}}]
    spec = injected(pod({"resources": ONE_ALPHA}, volumes=volumes), cluster_info(alpha=LIBS))
    assert (spec["volumes"], spec["containers"][0]["volumeMounts"]) == (volumes, [LIBS_MOUNT])


def test_two_accelerators_in_one_container() -> None:
    other = Accelerator((HostVolume("libs", "/rdma", "/dev/infiniband"), HostVolume("x", "/nvidia/lib", "/x")))
    both = {"limits": {ALPHA_GPU: 1, "rdma/hca": 1}}
    spec = injected(pod({"resources": both}), cluster_info(alpha=LIBS, rdma=other))
    assert spec["volumes"] == [LIBS_VOLUME, {"name": "libs-2", "hostPath": {"path": "/dev/infiniband"}}]
    assert spec["containers"][0]["volumeMounts"] == [LIBS_MOUNT, {"name": "libs-2", "mountPath": "/rdma"}]


@pytest.mark.parametrize(
    ("resources", "mapped"),
    [
        (ONE_ALPHA, {"limits": {GPU: 1}}),
        ({"limits": {ALPHA_GPU: 1, "cpu": 2}}, {"limits": {"cpu": 2, GPU: 1}}),
        # a device of a plugin must have a limit, and a request equal to it
        ({"requests": {ALPHA_GPU: 1}}, {"limits": {GPU: 1}, "requests": {GPU: 1}}),
        ({"requests": {ALPHA_GPU: 1}, "limits": {ALPHA_GPU: 2}}, {"limits": {GPU: 2}, "requests": {GPU: 2}}),
        (
            {"requests": {"cpu": 1}, "limits": {ALPHA_GPU: 1}},
            {"requests": {"cpu": 1}, "limits": {GPU: 1}},
        ),
        ({"limits": {ALPHA_GPU: 1, GPU: 2}}, {"limits": {GPU: 2}}),
        ({"limits": {"rdma/hca": 1, ALPHA_GPU: 1}}, {"limits": {"rdma/hca": 1, GPU: 1}}),
    ],
)
def test_the_alpha_name_is_replaced_by_the_clusters_name(resources: Any, mapped: Any) -> None:
    spec = injected(pod({"resources": resources}, {"resources": {"limits": {"cpu": 1}}}), cluster_info(GPU))
    assert [c["resources"] for c in spec["containers"]] == [mapped, {"limits": {"cpu": 1}}]


@pytest.mark.parametrize("where", [cluster_info(ALPHA_GPU, GPU), cluster_info(), cluster_info(nodes=False)])
def test_the_alpha_name_is_kept_where_nodes_have_it(where: ClusterInfo) -> None:
    given = pod({"resources": ONE_ALPHA})
    assert inject(given, where) == given


def test_a_mapped_pod_gets_what_is_configured_for_either_name() -> None:
    new = Accelerator((HostVolume("new", "/new", "/n"),), (Variable("LD_LIBRARY_PATH", "/new"), Variable("NEW", "1")))
    spec = injected(pod({"resources": ONE_ALPHA}), cluster_info(GPU, alpha=LIBS, gpu=new))
    (container,) = spec["containers"]
    assert [m["mountPath"] for m in container["volumeMounts"]] == ["/nvidia/lib", "/new"]
    assert {e["name"]: e["value"] for e in container["env"]} == {"LD_LIBRARY_PATH": "/nvidia/lib", "NEW": "1"}
    assert injected(pod({"resources": {"limits": {GPU: 1}}}), cluster_info(GPU, alpha=LIBS)).get("volumes") is None


@pytest.mark.parametrize(
    ("cloud", "mounts"),
    [
        (
            "gke",
            {
                "/usr/local/nvidia/lib64": "/home/kubernetes/bin/nvidia/lib",
                "/usr/local/bin/nvidia": "/home/kubernetes/bin/nvidia/bin",
            },
        ),
        (
            "azure",
            {
                "/usr/local/nvidia/lib64": "/usr/lib/nvidia-384",
                "/usr/local/nvidia/bin": "/usr/lib/nvidia-384/bin",
                "/usr/lib/x86_64-linux-gnu/libcuda.so.1": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            },
        ),
        ("", {}),
    ],
)
def test_presets(cloud: str, mounts: dict[str, str]) -> None:
    spec = injected(pod({"resources": ONE_ALPHA}), ClusterInfo(preset(cloud), frozenset({ALPHA_GPU})))
    paths = {v["name"]: v["hostPath"]["path"] for v in spec.get("volumes", ())}
    made = {m["mountPath"]: paths[m["name"]] for m in spec["containers"][0].get("volumeMounts", ())}
    assert made == mounts


def test_a_preset_leaves_the_driver_to_the_device_plugin_where_there_is_one() -> None:
    spec = injected(pod({"resources": ONE_ALPHA}), ClusterInfo(preset("azure"), frozenset({GPU})))
    assert spec["containers"][0]["resources"] == {"limits": {GPU: 1}}
    assert "volumes" not in spec


SHAPES = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["libs", "/nvidia/lib", "LD_LIBRARY_PATH", ALPHA_GPU, GPU]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "mountPath", "hostPath", "path", "limits", "requests", "resources", ALPHA_GPU, GPU, "rdma/hca"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
CONTAINER = st.fixed_dictionaries(
    {"resources": st.just(ONE_ALPHA) | SHAPES},
    optional={"name": SHAPES, "env": SHAPES, "volumeMounts": SHAPES},
)


@given(
    st.lists(CONTAINER | SHAPES, max_size=3),
    st.fixed_dictionaries({}, optional={"initContainers": SHAPES, "volumes": SHAPES}),
    st.sampled_from([cluster_info(GPU, alpha=LIBS, gpu=LIBS), cluster_info(alpha=LIBS), cluster_info(ALPHA_GPU)]),
)
def test_malformed_pods_do_not_raise(containers: list[Any], more: dict[str, Any], where: ClusterInfo) -> None:
    """The API server rejects such a pod and the job fails with its message. An exception would be retried forever."""
    given_pod = {"spec": {"containers": containers, **more}}
    before = copy.deepcopy(given_pod)
    made = inject(given_pod, where)
    assert given_pod == before
    assert inject(made, where) == made, "what is made is as it should be"
