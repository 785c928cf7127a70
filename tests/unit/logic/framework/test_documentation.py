"""The documentation of a framework's declaration in `ansible-doc` matches the loader."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.action import apply_job, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import declaration as declaration_module
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import PLACEHOLDERS
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.families import FAMILIES
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.caffe2 import (
    caffe2_environment,
    caffe2_validation,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import v2beta1
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.variables import mpi_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mxnet import mxnet_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.paddle import paddle_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch.rendezvous import (
    pytorch_environment,
    pytorch_validation,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.xgboost import xgboost_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.accelerator_limits import gpu_limits
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_MAP
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import DECLARABLE
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import CLOUDS
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import GPU
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, ReplicaType
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support import kinds
from support.builders import ROOT, declaration


def constants(path: str) -> dict[str, Any]:
    """The YAML of a plugin's documentation, read without importing it."""
    tree = ast.parse((ROOT / path).read_text())
    texts = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }
    return {name: yaml.safe_load(text) for name, text in texts.items()}


RECONCILE = constants("plugins/modules/reconcile.py")
FRAMEWORK = RECONCILE["DOCUMENTATION"]["options"]["framework"]["suboptions"]
FLAVOR_OPTIONS = FRAMEWORK["flavors"]["suboptions"]


def test_every_key_of_a_framework() -> None:
    assert set(FRAMEWORK) == loader._KEYS  # noqa: SLF001 - compared with the documentation


# spec_fields and object_fields are names of `fields`
@pytest.mark.parametrize(
    "field",
    [f for f in dataclasses.fields(ApiFlavor) if f.name not in ("spec_fields", "object_fields")],
    ids=lambda f: f.name,
)
def test_every_key_of_a_flavor_and_its_default(field: dataclasses.Field[Any]) -> None:
    documented = FLAVOR_OPTIONS[field.name]
    if field.name == "exit_codes":
        made = loader._exit_codes(documented["default"], "")  # noqa: SLF001 - compared with the documentation
        assert made == field.default
    elif field.default is not dataclasses.MISSING:
        default = documented["default"]
        assert (tuple(default) if isinstance(default, list) else default) == field.default
    elif field.default_factory is not dataclasses.MISSING:
        assert documented["default"] == field.default_factory()
    else:
        assert documented.get("required") or field.name == "groups"


def test_no_unknown_key_of_a_flavor() -> None:
    assert set(FLAVOR_OPTIONS) == declaration_module.FLAVOR_KEYS


@pytest.mark.parametrize("key", list(loader._CHOICES))  # noqa: SLF001 - compared with the documentation
def test_choices(key: str) -> None:
    assert FLAVOR_OPTIONS[key]["choices"] == list(loader._CHOICES[key])  # noqa: SLF001 - compared with the documentation


def test_every_placeholder() -> None:
    text = " ".join(FRAMEWORK["hooks"]["suboptions"]["environment"]["description"])
    assert {name for name in PLACEHOLDERS if f"C({{{name}}})" in text} == PLACEHOLDERS


@pytest.mark.parametrize("action", [apply_job, reconcile])
def test_the_actions_arguments(action: ModuleType) -> None:
    """ansible-core checks a task by ARGUMENTS, and users read DOCUMENTATION."""
    keys = ("type", "elements", "required", "choices", "default")
    name = action.__name__.rpartition(".")[2]
    documented = {
        name: {key: option[key] for key in keys if key in option}
        for name, option in constants(f"plugins/modules/{name}.py")["DOCUMENTATION"]["options"].items()
    }
    assert documented == action.ARGUMENTS


def test_every_key_of_a_jobs_result() -> None:
    documented = RECONCILE["RETURN"]["dljob"]["contains"]["jobs"]["contains"]
    outcome = Outcome({"metadata": {}}, Plan(), True, False, "", None)
    assert set(outcome.as_result()) == set(documented)


def test_the_examples_are_frameworks() -> None:
    declared = [task["dljob.operator.reconcile"].get("framework") for task in RECONCILE["EXAMPLES"]]
    made = [loader.framework({**d, "hooks": {}}) for d in declared if isinstance(d, dict)]
    assert [f.name for f in made] == ["echo", "echo"]


def test_the_filters_example_is_a_cluster() -> None:
    (task,) = constants("plugins/filter/mxnet_environment.py")["EXAMPLES"]
    made = mxnet_environment(task["vars"]["cluster"])
    assert (made["DMLC_ROLE"], made["DMLC_PS_ROOT_URI"], made["DMLC_NUM_WORKER"]) == ("worker", "scheduler-ab12-0", "2")


def test_the_caffe2_filters_examples_are_clusters() -> None:
    (task,) = constants("plugins/filter/caffe2_environment.py")["EXAMPLES"]
    made = caffe2_environment(task["vars"]["cluster"])
    assert (made["SHARD_ID"], made["NUM_SHARDS"], made["REDIS_HOST"]) == ("1", "2", "redis-service")
    (task,) = constants("plugins/filter/caffe2_validation.py")["EXAMPLES"]
    assert list(caffe2_validation(task["vars"]["cluster"])) == []


def test_the_pytorch_filters_example_is_a_cluster() -> None:
    (task,) = constants("plugins/filter/pytorch_environment.py")["EXAMPLES"]
    made = pytorch_environment(task["vars"]["cluster"])
    assert (made["MASTER_ADDR"], made["RANK"], made["WORLD_SIZE"]) == ("digits-master-0", "1", "4")
    (task,) = constants("plugins/filter/pytorch_validation.py")["EXAMPLES"]
    assert list(pytorch_validation(task["vars"]["cluster"])) == []


@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("environment", mpi_environment),
        ("validation", lambda cluster: list(v2beta1.validate(cluster))),
        ("pod", v2beta1.pod_defaults),
        ("objects", v2beta1.objects),
    ],
)
def test_the_mpi_filters_examples_are_clusters(name: str, compute: Callable[[Any], Any]) -> None:
    documented = constants(f"plugins/filter/mpi_{name}.py")
    (task,) = documented["EXAMPLES"]
    result = compute(task["vars"]["cluster"])
    assert result
    assert documented["RETURN"]["_value"].get("sample", result) == result


def test_the_paddle_filters_example_is_a_cluster() -> None:
    documented = constants("plugins/filter/paddle_environment.py")
    (task,) = documented["EXAMPLES"]
    assert paddle_environment(task["vars"]["cluster"]) == documented["RETURN"]["_value"]["sample"]


def test_the_xgboost_filters_example_is_a_cluster() -> None:
    documented = constants("plugins/filter/xgboost_environment.py")
    (task,) = documented["EXAMPLES"]
    assert xgboost_environment(task["vars"]["cluster"]) == documented["RETURN"]["_value"]["sample"]


def test_the_accelerator_filters_example_is_a_template() -> None:
    documented = constants("plugins/filter/gpu_limits.py")
    template = documented["EXAMPLES"][0]["vars"]["template"]
    assert gpu_limits(template["spec"], {GPU}) == documented["RETURN"]["_value"]["sample"]


def test_the_clouds_and_the_maps_name() -> None:
    options = RECONCILE["DOCUMENTATION"]["options"]
    assert options["cloud"]["choices"] == ["", *CLOUDS]
    assert (
        options["config_map"]["default"]
        == CONFIG_MAP
        == yaml.safe_load((ROOT / "roles/dljob/defaults/main.yml").read_text())["dljob_config_map"]
    )


def test_every_key_of_a_replica_type() -> None:
    text = " ".join(FRAMEWORK["replica_types"]["description"])
    names = {field.name for field in dataclasses.fields(ReplicaType)} - {"name"}
    assert {name for name in names if f"C({name})" in text} == names


def test_every_hook() -> None:
    assert set(FRAMEWORK["hooks"]["suboptions"]) == set(loader.HOOKS)


def test_every_owned_kind() -> None:
    assert FRAMEWORK["owns"]["choices"] == list(DECLARABLE)


@pytest.mark.parametrize("name", kinds.DECLARED)
def test_a_role_declares_nothing_that_is_not_documented(name: str) -> None:
    declared = declaration(name)
    assert set(declared) <= set(FRAMEWORK) | set(() if "flavors" in declared else FLAVOR_OPTIONS)
    assert all(set(flavor) <= set(FLAVOR_OPTIONS) for flavor in declared.get("flavors", ()))


def test_every_family() -> None:
    assert FLAVOR_OPTIONS["extends"]["choices"] == list(FAMILIES)
