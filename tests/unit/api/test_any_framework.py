"""A reconcile of DLJobs: each with the framework that it names, and a refusal for one that names none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.filter.job_status import job_status
from ansible_collections.dljob.operator.plugins.module_utils.api.batch import reconcile_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.plugin_utils import framework as loading
from ansible_collections.dljob.operator.plugins.plugin_utils.framework import build_frameworks
from support import kinds
from support.builders import JAX, PYTORCH, UID, Resource
from support.recording_api import Api, context_of

ROOT = Path(__file__).resolve().parents[3]
ECHO = ROOT / "tests/e2e/new_framework/roles/echo"
FRAMEWORKS = {framework.name: any_framework.adapt(framework) for framework in (JAX, PYTORCH)}


def dljob(framework: Any, *types: str, **spec: Any) -> Resource:
    return {
        "apiVersion": "dljob.operator/v1",
        "kind": "DLJob",
        "metadata": {"name": "digits", "namespace": "default", "uid": UID, "generation": 1, "resourceVersion": "1"},
        "spec": {"framework": framework, "replicas": {t: {"image": "train:1"} for t in types}, **spec},
    }


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    yield
    cache_snapshot.publish(None)


def reconciled(*jobs: Resource, frameworks: Any = None) -> Api:
    api = Api()
    for outcomes, _ in reconcile_all(context_of(api), jobs, frameworks or FRAMEWORKS):
        assert all(outcome.ok for outcome in outcomes), outcomes
    return api


def test_jobs_of_several_frameworks_in_one_batch() -> None:
    other = dljob("pytorch", "Master", "Worker")
    other["metadata"]["name"] = "letters"
    api = reconciled(dljob("jax", "Worker"), other)
    pods = {body["metadata"]["name"]: body for body in api.made if body["kind"] == "Pod"}
    assert {name: pod["spec"]["containers"][0]["name"] for name, pod in pods.items()} == {
        "digits-worker-0": "jax",
        "letters-master-0": "pytorch",
        "letters-worker-0": "pytorch",
    }
    labels = pods["digits-worker-0"]["metadata"]["labels"]
    assert labels["dljob.operator/framework"] == "jax"
    (owner,) = pods["digits-worker-0"]["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == ("dljob.operator/v1", "DLJob", "digits")


@pytest.mark.parametrize("name", ["keras", "../../etc", "{{ lookup('env', 'HOME') }}", None, ["jax"]])
def test_a_framework_that_is_not_declared(name: Any) -> None:
    api = reconciled(dljob(name, "Worker"))
    message = f"spec.framework: {name!r} is no framework of this operator; it has jax, pytorch"
    assert api.status is not None
    assert (api.status["state"], api.status["reason"]) == ("Failed", f"FailedValidation: {message}")
    assert api.events() == [f"DLJobFailedValidation: {message}"]
    assert api.kinds() == ["Event"]


def test_the_status_is_that_of_a_v1_kind() -> None:
    api = reconciled(dljob("jax", "Worker"))
    assert api.status is not None
    assert [c["reason"] for c in api.status["conditions"]] == ["DLJobCreated"]
    assert set(api.status["replicaStatuses"]) == {"Worker"}


def test_strings_of_a_job_stay_as_they_are() -> None:
    job = dljob("jax", "Worker")
    job["spec"]["replicas"]["Worker"] |= {"args": ["{{ 1 + 1 }}"], "env": [{"name": "A", "value": "{rank}"}]}
    (pod,) = (body for body in reconciled(job).made if body["kind"] == "Pod")
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["{{ 1 + 1 }}"]
    assert container["env"][-1] == {"name": "A", "value": "{rank}"}


# --- the frameworks that the operator loads


@pytest.fixture(autouse=True)
def filters_of_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible finds these only in a process of its own, where no test has imported the collection."""
    real = loading._filter  # noqa: SLF001 - stands for Ansible's own search for filters
    monkeypatch.setattr(
        loading, "_filter", lambda hook, name: dict if name.startswith("dljob.operator.") else real(hook, name)
    )


def declare(folder: Path, **changes: Any) -> Path:
    """The role echo of the example for new frameworks, without a kind of its own, in ``folder``."""
    declared = yaml.safe_load((ECHO / "vars/main.yml").read_text())["echo_framework"]
    del declared["kinds"]
    role = folder / "echo"
    (role / "vars").mkdir(parents=True)
    (role / "vars" / "main.yml").write_text(
        yaml.safe_dump({"echo_framework": {**declared, **changes}}, sort_keys=False)
    )
    return role


def test_those_of_this_collection() -> None:
    assert sorted(build_frameworks([])) == [*kinds.DECLARED]


@pytest.mark.parametrize("is_role", [True, False])
def test_one_of_a_user_without_a_crd(tmp_path: Path, is_role: bool) -> None:
    role = declare(tmp_path)
    frameworks = build_frameworks([str(role if is_role else tmp_path)])
    assert "echo" in frameworks
    api = reconciled(dljob("echo", "Leader", "Follower"), frameworks=frameworks)
    (pod,) = (body for body in api.made if body["kind"] == "Pod")  # the follower waits for the leader
    env = {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}
    assert (env["ECHO_RANK"], env["ECHO_SIZE"], env["ECHO_LEADER"]) == ("0", "2", "digits-leader-0:7000")


def test_a_filter_of_the_users_role(tmp_path: Path) -> None:
    role = declare(tmp_path, hooks={"environment": "echo_environment_of_this_role"})
    (role / "filter_plugins").mkdir()
    (role / "filter_plugins" / "echo.py").write_text(
        "class FilterModule:\n"
        "    def filters(self):\n"
        "        return {'echo_environment_of_this_role': lambda cluster: {'SIZE': str(cluster['total'])}}\n"
    )
    api = reconciled(dljob("echo", "Leader"), frameworks=build_frameworks([str(tmp_path)]))
    (pod,) = (body for body in api.made if body["kind"] == "Pod")
    assert {"name": "SIZE", "value": "1"} in pod["spec"]["containers"][0]["env"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "jax"}, "roles/jax declares the framework 'jax' too: rename one"),
        ({"container": ""}, "echo: the framework lacks 'container'"),
        ({"hooks": {"environment": "no.such.filter"}}, "there is no filter 'no.such.filter'"),
    ],
)
def test_a_role_that_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    declare(tmp_path, **changes)
    with pytest.raises(InvalidFramework) as caught:
        build_frameworks([str(tmp_path)])
    assert message in str(caught.value)


def test_a_folder_without_roles(tmp_path: Path) -> None:
    with pytest.raises(InvalidFramework, match=r"has no role with vars/main\.yml: name the folder of a role, or one"):
        build_frameworks([str(tmp_path / "none")])
    (tmp_path / "echo" / "vars").mkdir(parents=True)
    (tmp_path / "echo" / "vars" / "main.yml").write_text("other: {}\n")
    with pytest.raises(InvalidFramework, match="the variable echo_framework is missing"):
        build_frameworks([str(tmp_path)])


def test_the_filter_job_status() -> None:
    status = job_status([], dljob("jax", "Worker"), "jax", "2026-01-02T12:00:00Z")
    assert status["replicaStatuses"]["Worker"]["desired"] == 1
