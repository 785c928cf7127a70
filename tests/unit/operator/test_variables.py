from __future__ import annotations

from typing import Any

from dljob_operator.variables import for_batch, for_object, object_variable
from dljob_operator.watches import GVK, Finalizer, Watch

_MXJOB = GVK("kubeflow.org", "v1", "MXJob")


def _job(spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "linear", "namespace": "team", "uid": "u1"},
        "spec": spec,
    }


def test_a_role_gets_the_object_its_spec_and_who_it_is() -> None:
    job = _job({"jobMode": "dist"})
    handed = for_object(Watch(_MXJOB, snake_case_parameters=False), job)
    assert handed.values == {
        "ansible_operator_meta": {"name": "linear", "namespace": "team"},
        "_kubeflow_org_mxjob": job,
        "_kubeflow_org_mxjob_spec": {"jobMode": "dist"},
        "jobMode": "dist",
    }


def test_spec_keys_are_snake_cased_unless_the_entry_says_no_and_the_raw_spec_stays() -> None:
    handed = for_object(Watch(_MXJOB), _job({"mxReplicaSpecs": {"Worker": {"restartPolicy": "Never"}}}))
    assert handed.values["mx_replica_specs"] == {"_worker": {"restart_policy": "Never"}}
    assert handed.values["_kubeflow_org_mxjob_spec"]["mxReplicaSpecs"]["Worker"]["restartPolicy"] == "Never"


def test_a_spec_that_is_a_list_gives_no_top_level_variables() -> None:
    job = _job([{"replicas": 1}])
    handed = for_object(Watch(_MXJOB), job)
    assert set(handed.values) == {"ansible_operator_meta", "_kubeflow_org_mxjob", "_kubeflow_org_mxjob_spec"}
    assert handed.values["_kubeflow_org_mxjob"]["spec"] == [{"replicas": 1}]
    assert handed.values["_kubeflow_org_mxjob_spec"] == {}


def test_a_name_of_group_and_kind_is_a_variable_name() -> None:
    assert object_variable(GVK("cert-manager.k8s.io", "v1", "Issuer")) == "_cert_manager_k8s_io_issuer"


def test_the_entrys_variables_win_over_the_spec_and_the_finalizers_over_both() -> None:
    watch = Watch(
        _MXJOB,
        vars={"state": "present", "mode": "a"},
        finalizer=Finalizer("dljob.operator/x", vars={"state": "absent"}),
    )
    job = _job({"state": "from the spec"})
    assert for_object(watch, job).values["state"] == "present"
    finalizing = for_object(watch, job, finalizing=True).values
    assert (finalizing["state"], finalizing["mode"]) == ("absent", "a")


def test_a_job_cannot_set_ansibles_variables_or_ours() -> None:
    spec = {"ansible_connection": "ssh", "ansible_python_interpreter": "/tmp/x", "dljob_batch": [{}], "ok": 1}
    handed = for_object(Watch(_MXJOB, snake_case_parameters=False), _job(spec))
    assert set(handed.values) == {
        "ansible_operator_meta",
        "_kubeflow_org_mxjob",
        "_kubeflow_org_mxjob_spec",
        "ok",
    }
    # Snake case comes first, so it is no way around either.
    assert "ansible_connection" not in for_object(Watch(_MXJOB), _job({"ansibleConnection": "ssh"})).values


def test_only_what_comes_from_the_object_is_unsafe_and_only_if_the_entry_says_so() -> None:
    job = _job({"image": "{{ x }}", "shown": "y"})
    watch = Watch(_MXJOB, vars={"shown": "{{ image }}"}, mark_unsafe=True)
    assert for_object(watch, job).unsafe == {"image", "_kubeflow_org_mxjob", "_kubeflow_org_mxjob_spec"}
    assert for_object(Watch(_MXJOB), job).unsafe == frozenset()


def test_a_batch_is_one_variable_and_the_entrys() -> None:
    jobs = [_job({}), _job({})]
    handed = for_batch(Watch(_MXJOB, vars={"dljob_batchable": True}, mark_unsafe=True), jobs)
    assert handed.values == {"dljob_batch": jobs, "dljob_batchable": True}
    assert handed.unsafe == {"dljob_batch"}
