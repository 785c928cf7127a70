"""The engine's cache: transforms, predicates, the store and resource versions."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS

from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.cache import Store
from dljob_operator.engine.cache.predicates import (
    REQUEUE_ANNOTATION,
    Change,
    custom_predicate,
    object_fields,
    owned_predicate,
    owner_uid,
)
from dljob_operator.engine.queue.resource_versions import ResourceVersionTracker


def make(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    """An object of `kind` called `name`, UID `<name>-uid`, version "1", changed by `metadata`."""
    defaults = {"name": name, "namespace": "team", "uid": f"{name}-uid", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": kind, "metadata": defaults | metadata}


def owned_by(uid: str, *, controller: bool = True) -> list[dict[str, Any]]:
    return [{"kind": "MXJob", "uid": uid, "controller": controller}]


def owned_transform(kind: str) -> transforms.Transform:
    return transforms.owned(OWNED_KINDS[kind].cached or {})


class TestTrim:
    def test_a_pod_keeps_what_a_plan_reads_and_nothing_else(self) -> None:
        pod = make(
            "Pod",
            "p",
            labels={"a": "b"},
            annotations={"dljob.operator/spec-hash": "1", "scheduling.k8s.io/group-name": "j", "other": "2"},
            managedFields=[{"big": "thing"}],
            ownerReferences=owned_by("j"),
            generateName="p-",
        )
        pod["spec"] = {
            "nodeName": "n",
            "restartPolicy": "Never",
            "volumes": [{}],
            "containers": [{"name": "mxnet", "image": "i", "env": [{}]}],
        }
        pod["status"] = {"phase": "Running", "podIP": "1.2.3.4", "qosClass": "BestEffort", "conditions": []}
        assert owned_transform("Pod")(pod) == {
            "metadata": {
                **{key: pod["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion", "labels")},
                "annotations": {"dljob.operator/spec-hash": "1", "scheduling.k8s.io/group-name": "j"},
                "ownerReferences": owned_by("j"),
            },
            "spec": {"nodeName": "n", "restartPolicy": "Never", "containers": [{"name": "mxnet"}]},
            "status": {"phase": "Running", "podIP": "1.2.3.4", "conditions": []},
        }

    def test_a_service_keeps_what_it_selects(self) -> None:
        service = make("Service", "s", annotations={"other": "2"})
        service["spec"] = {"clusterIP": "None", "selector": {"a": "b"}, "ports": [], "type": "ClusterIP"}
        trimmed = owned_transform("Service")(service)
        assert trimmed["spec"] == {"clusterIP": "None", "selector": {"a": "b"}, "ports": []}
        assert "annotations" not in trimmed["metadata"]

    def test_a_node_keeps_the_devices_that_it_has(self) -> None:
        node = make("Node", "n", annotations={"a": "b"})
        node["status"] = {
            "capacity": {"cpu": "2", "nvidia.com/gpu": "1", "rdma/hca": "0"},
            "allocatable": {"cpu": "2", "nvidia.com/gpu": "0"},
            "conditions": [{"lastHeartbeatTime": "now"}],
            "images": [{}],
        }
        assert transforms.node(node) == {
            "metadata": {"name": "n", "uid": "n-uid", "resourceVersion": "1"},
            "resources": ["nvidia.com/gpu"],
        }
        assert transforms.node(make("Node", "n"))["resources"] == []

    def test_a_config_map_keeps_what_it_says(self) -> None:
        trimmed = transforms.config_map(make("ConfigMap", "c", managedFields=[{}]) | {"data": {"a": "b"}})
        assert (trimmed["data"], "managedFields" in trimmed["metadata"]) == ({"a": "b"}, False)
        assert transforms.config_map(make("ConfigMap", "c"))["data"] == {}

    def test_a_custom_resource_loses_only_the_bookkeeping_and_the_original_stays_whole(self) -> None:
        job = make("MXJob", "j", managedFields=[{}], annotations={"a": "b"})
        job["spec"] = {"deep": {"er": 1}}
        trimmed = transforms.custom(job)
        assert trimmed["metadata"] == {key: v for key, v in job["metadata"].items() if key != "managedFields"}
        assert trimmed["spec"] == job["spec"]
        assert "managedFields" in job["metadata"]


class TestWhatMatters:
    @pytest.mark.parametrize(
        ("changed", "matters"),
        [
            ({"resourceVersion": "2"}, False),
            ({"generation": 2}, True),
            ({"annotations": {"a": "b"}}, True),
            ({"labels": {"a": "b"}}, True),
            ({"deletionTimestamp": "now"}, True),
            ({"finalizers": ["x/y"]}, True),
            ({"uid": "another"}, True),
            ({"annotations": {}}, False),
            ({"annotations": {REQUEUE_ANNOTATION: "2026-01-01 7"}}, False),
        ],
    )
    def test_of_a_job(self, changed: dict[str, Any], matters: bool) -> None:
        old = make("MXJob", "j", generation=1)
        new = make("MXJob", "j", **{"generation": 1, **changed}) | {"status": {"phase": "Running"}}
        assert custom_predicate(Change(old, new)) is matters

    def test_of_an_owned_object(self) -> None:
        old = make("Pod", "p") | {"status": {"phase": "Pending"}}
        assert not owned_predicate(
            Change(old, make("Pod", "p", resourceVersion="2") | {"status": {"phase": "Pending"}})
        )
        assert owned_predicate(Change(old, make("Pod", "p") | {"status": {"phase": "Running"}}))
        others = {"metadata": {"labels": {"a": "b"}, **old["metadata"]}}
        assert owned_predicate(Change(old, {**old, **others}))
        assert owned_predicate(Change(None, old))
        assert owned_predicate(Change(old, None))

    def test_the_owner_is_the_controller(self) -> None:
        references = [*owned_by("other", controller=False), *owned_by("j")]
        assert owner_uid(make("Pod", "p", ownerReferences=references)) == "j"
        assert owner_uid(make("Pod", "p", ownerReferences=owned_by("j", controller=False))) is None
        assert owner_uid(make("Pod", "p")) is None

    def test_log_fields_identify_an_object(self) -> None:
        found = object_fields({**make("Pod", "p"), "apiVersion": "v1", "kind": "Pod"})
        assert found == {"kind": "Pod", "api_version": "v1", "namespace": "team", "name": "p"}
        found = object_fields({"metadata": {"name": "n"}})
        assert found == {"kind": None, "api_version": None, "namespace": None, "name": "n"}


class TestStore:
    def test_finds_by_uid_and_by_owner(self) -> None:
        store = Store()
        first, second = (make("Pod", name, ownerReferences=owned_by("j")) for name in ("b", "a"))
        store.put(first)
        store.put(second)
        store.put(make("Pod", "c"))
        assert store.owned("j", "team") == [second, first]
        assert store.get("b-uid") == first
        assert store.owned("unknown", "team") == []
        assert (store.name_of("b-uid"), store.name_of("unknown")) == (("team", "b"), None)

    def test_says_what_was_before(self) -> None:
        store = Store()
        old, new = make("Pod", "p"), make("Pod", "p", resourceVersion="2")
        assert store.put(old) == [Change(None, old)]
        assert store.put(new) == [Change(old, new)]
        assert store.remove(new) == Change(new, None)
        assert len(store) == 0

    def test_a_new_object_of_the_same_name_is_no_change_of_the_old_one(self) -> None:
        store = Store()
        old, new = make("Pod", "p"), make("Pod", "p", uid="second")
        store.put(old)
        assert store.put(new) == [Change(old, None), Change(None, new)]
        assert store.get("p-uid") is None
        # The old one's deletion, reported late, does not take the new one out.
        store.remove(old)
        assert store.get("second") == new

    def test_an_object_that_changes_hands_is_its_new_owners(self) -> None:
        store = Store()
        store.put(make("Pod", "p", ownerReferences=owned_by("j")))
        store.put(make("Pod", "p", ownerReferences=owned_by("k")))
        assert (len(store.owned("j", "team")), len(store.owned("k", "team"))) == (0, 1)

    def test_the_objects_of_a_job_share_the_strings_by_which_they_are_found(self) -> None:
        store = Store()
        for name in ("a", "b"):
            arrived: dict[str, Any] = json.loads(json.dumps(make("Pod", name, ownerReferences=owned_by("job"))))
            store.put(arrived)
        first, second = (store.name_of(f"{name}-uid") for name in ("a", "b"))
        assert first is not None and second is not None
        assert first[0] is second[0]

    def test_what_names_its_owner_from_another_namespace_is_found_there_alone(self) -> None:
        store = Store()
        own = make("Pod", "p", ownerReferences=owned_by("j"))
        forged = [make("Pod", name, namespace="other", ownerReferences=owned_by("j"), uid=name) for name in "ab"]
        for pod in (own, *forged):
            store.put(pod)
        assert (store.owned("j", "team"), store.count("j", "team")) == ([own], 1)
        assert (store.owned("j", "other"), store.count("j", "other")) == (forged, 2)
        assert store.owners() == [("j", "other"), ("j", "team")]
        for pod in forged:
            store.remove(pod)
        assert store.owners() == [("j", "team")]

    def test_a_new_list_reports_what_appeared_changed_and_disappeared(self) -> None:
        store = Store()
        gone, same, again = make("Pod", "gone"), make("Pod", "same"), make("Pod", "again")
        store.replace(store.packed([gone, same, again]))
        recreated, new = make("Pod", "again", uid="second"), make("Pod", "new")
        changes = list(store.replace(store.packed([same, recreated, new])))
        assert changes == [
            Change(gone, None),
            Change(again, None),
            Change(same, same),
            Change(None, recreated),
            Change(None, new),
        ]
        assert len(store) == 3


class TestSeenVersions:
    def test_a_write_is_seen_when_that_version_or_a_later_one_was_shown(self) -> None:
        seen = ResourceVersionTracker()
        assert not seen.wait_for([("a", "5")], timeout=0)
        seen.note("a", "4", leaving=False, gone=False)
        assert not seen.wait_for([("a", "5")], timeout=0)
        seen.note("a", "10", leaving=False, gone=False)
        assert seen.wait_for([("a", "5")], timeout=0)
        assert not seen.wait_for([("a", "5"), ("b", "1")], timeout=0)
        assert seen.wait_for([], timeout=0)

    def test_a_deletion_is_seen_when_the_object_goes_or_has_gone(self) -> None:
        seen = ResourceVersionTracker()
        seen.note("a", "4", leaving=False, gone=False)
        assert not seen.wait_for([("a", None)], timeout=0)
        seen.note("a", "5", leaving=True, gone=False)
        assert seen.wait_for([("a", None)], timeout=0)
        assert not seen.wait_for([("a", "6")], timeout=0)
        seen.note("a", "7", leaving=True, gone=True)
        assert seen.wait_for([("a", None), ("a", "6")], timeout=0)

    def test_a_thread_that_waits_is_woken(self) -> None:
        seen = ResourceVersionTracker()
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(seen.wait_for([("a", "2")], timeout=30)))
        thread.start()
        seen.note("a", "1", leaving=False, gone=False)
        seen.note("a", "2", leaving=False, gone=False)
        thread.join(30)
        assert answers == [True]
