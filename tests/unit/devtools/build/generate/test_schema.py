"""What of a kind's schema follows from the declaration of its framework."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import replica_groups
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.startup_policy import CONDITIONS
from ansible_collections.dljob.operator.plugins.module_utils.values import constants, pod_failure_policy
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from devtools.build.generate import any_framework, definition, files, model, options
from devtools.paths import ROOT

KIND = {"group": "example.com", "kind": "EchoJob", "versions": ["v1"]}
MAP: dict[str, Any] = {
    "name": "echo",
    "kinds": [KIND],
    "container": "echo",
    "replica_types": {"Leader": {"minimum": 1, "maximum": 1}, "Follower": {}},
    "extends": "kubeflow_v1",
    "replicas_fields": ["replicaSpecs"],
}
LIST_FLAVOR = {"extends": "v1alpha1_list", "type_field": "echoType"}
MAP_FLAVOR = {"extends": "kubeflow_v1", "replicas_fields": ["echoSpecs"]}


def crd(declared: dict[str, Any], **changes: Any) -> dict[str, Any]:
    framework = model.framework("echo", {**declared, **changes})
    return definition.definition(framework, framework.kinds[0])


def of_flavors(*flavors: dict[str, Any], **changes: Any) -> dict[str, Any]:
    declared = {key: value for key, value in MAP.items() if key not in ("extends", "replicas_fields")}
    return crd(declared, flavors=[*flavors], **changes)


def schema(document: dict[str, Any]) -> dict[str, Any]:
    return dict(document["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def spec(document: dict[str, Any]) -> dict[str, Any]:
    return dict(schema(document)["properties"]["spec"])


def rules(part: dict[str, Any]) -> dict[str, str]:
    """Message (or its expression) to rule."""
    found = part.get("x-kubernetes-validations", ())
    return {rule.get("message") or rule["messageExpression"]: rule["rule"] for rule in found}


def one(found: dict[str, str], words: str) -> str:
    (rule,) = [rule for message, rule in found.items() if words in message]
    return rule


def none(found: dict[str, str], words: str) -> bool:
    return not any(words in message for message in found)


# --- the replicas


def test_a_map_of_types() -> None:
    replicas = spec(crd(MAP))["properties"]["replicaSpecs"]
    assert spec(crd(MAP))["required"] == ["replicaSpecs"]
    assert "['leader', 'follower']" in one(rules(replicas), "unknown replica type")
    entry = replicas["additionalProperties"]
    assert set(entry["properties"]) == {"replicas", "restartPolicy", "template", "groups"}
    assert entry["required"] == ["template"]
    text = entry["properties"]["restartPolicy"]["description"]
    assert "(128 and above)" in text and "Default: Never." in text
    containers = entry["properties"]["template"]["properties"]["spec"]["properties"]["containers"]
    assert one(rules(containers), "requires a container named echo") == "self.exists(c, c.name == 'echo')"


def test_groups_of_replicas() -> None:
    entry = spec(crd(MAP))["properties"]["replicaSpecs"]["additionalProperties"]
    groups = entry["properties"]["groups"]
    assert groups["maxItems"] == replica_groups.MOST
    assert set(groups["items"]["properties"]) == {"name", "replicas", "template"}
    assert groups["items"]["required"] == ["name", "template"]
    assert "exists_one(other, other.name == g.name)" in one(rules(groups), "two groups have the same name")
    containers = groups["items"]["properties"]["template"]["properties"]["spec"]["properties"]["containers"]
    assert one(rules(containers), "requires a container named echo") == "self.exists(c, c.name == 'echo')"
    assert one(rules(entry), "the groups have %d replicas") == (
        "!has(self.groups) || self.groups.map(g, g.replicas).sum() <= self.replicas"
    )


@pytest.mark.parametrize("layout", [LIST_FLAVOR, {**MAP_FLAVOR, "replicas_layout": "single"}])
def test_only_maps_have_groups(layout: dict[str, Any]) -> None:
    types = {"replica_types": {"Worker": {}}} if "replicas_layout" in layout else {}
    assert "'groups'" not in str(of_flavors(layout, **types))


def test_a_list_of_types() -> None:
    flavor = {**LIST_FLAVOR, "port_fields": ["echoPort", "oldPort"], "default_port": 7, "default_type": "Leader"}
    replicas = spec(of_flavors(flavor))["properties"]["replicaSpecs"]
    entry = replicas["items"]
    assert {"echoType", "replicas", "echoPort", "oldPort", "template"} <= set(entry["properties"])
    assert entry["properties"]["echoType"]["enum"] == ["LEADER", "FOLLOWER"]
    assert entry["properties"]["echoType"]["default"] == "LEADER"
    assert entry["required"] == ["template"]
    assert entry["properties"]["echoPort"]["description"].endswith("Default: 7.")
    assert entry["properties"]["oldPort"]["description"] == "Alias of echoPort."
    assert "self.oldPort == self.echoPort" in one(rules(entry), "echoPort and oldPort are aliases")
    assert spec(of_flavors(LIST_FLAVOR))["properties"]["replicaSpecs"]["items"]["required"] == ["echoType", "template"]


@pytest.mark.parametrize("layout", [MAP_FLAVOR, LIST_FLAVOR, {**MAP_FLAVOR, "replicas_layout": "single"}])
@pytest.mark.parametrize(
    ("declared", "maximum"), [({}, 1_000_000), ({"most_replicas": 1}, 1), ({"most_replicas": 7}, 7)]
)
def test_the_largest_number_of_replicas(layout: dict[str, Any], declared: dict[str, int], maximum: int) -> None:
    types = {"replica_types": {"Worker": {}}} if "replicas_layout" in layout else {}
    made = str(of_flavors({**layout, **declared}, **types))
    found = re.findall(r"'description': 'Number of replicas.', .*?'maximum': (\d+)", made)
    assert found == [str(maximum)] * (2 if layout is MAP_FLAVOR else 1), "its groups have it too"


def test_types_of_a_flavor() -> None:
    made = spec(of_flavors({**LIST_FLAVOR, "types": ["Follower"]}))
    assert made["properties"]["replicaSpecs"]["items"]["properties"]["echoType"]["enum"] == ["FOLLOWER"]
    assert none(rules(made), "LEADER")


def test_a_type_that_may_lack_containers() -> None:
    added = {"Follower": {"IsDefault": {"type": "boolean", "description": "x"}}}
    flavor = {**LIST_FLAVOR, "template_optional": ["Follower"], "replica_fields": added}
    entry = spec(of_flavors(flavor))["properties"]["replicaSpecs"]["items"]
    assert entry["properties"]["IsDefault"] == added["Follower"]["IsDefault"]
    assert entry["required"] == ["echoType"]
    for words in ("only FOLLOWER can do without", "requires a container named echo"):
        assert one(rules(entry), words).startswith("self.echoType == 'FOLLOWER' || ")
    containers = entry["properties"]["template"]["properties"]["spec"]["properties"]["containers"]
    assert rules(containers) == {}


def test_a_single_entry() -> None:
    made = crd(
        {**MAP, "replica_types": {"Worker": {"minimum": 2, "maximum": 9}}, "succeeds_by": "all"},
        replicas_layout="single",
    )
    count = spec(made)["properties"]["replicaSpecs"]["properties"]["replicas"]
    assert (count["minimum"], count["maximum"]) == (2, 9)
    # the API server refuses a default below the minimum
    assert "default" not in count and spec(made)["properties"]["replicaSpecs"]["required"] == ["replicas", "template"]
    assert one(rules(schema(made)), "<job>-worker-<index>").startswith(
        "self.metadata.name.size() + (8 + string(self.spec.replicaSpecs.replicas - 1).size()) <= 63"
    )


def test_a_spec_that_is_a_list() -> None:
    flavor = {"replicas_layout": "list", "replicas_fields": [""], "type_field": "echoType", "labels": {"j": "{job}"}}
    made = of_flavors(flavor, modes={"Alone": "local"})
    assert spec(made)["type"] == "array"
    assert one(rules(spec(made)), "exactly one entry must have echoType LEADER").startswith("self.filter(")
    assert one(rules(schema(made)), "a label value") == "self.metadata.name.size() <= 63"


@pytest.mark.parametrize(
    ("bounds", "words", "expected"),
    [
        ({"minimum": 1, "maximum": 1}, "exactly one A", " == [1]"),
        ({"minimum": 1}, "at least one replica of A is required", ".exists(n, n >= 1)"),
        ({"minimum": 3}, "at least 3 replicas of A", ".exists(n, n >= 3)"),
        ({"maximum": 1}, "at most one A", ".all(n, n <= 1)"),
        ({"maximum": 4}, "at most 4 replicas of A", ".all(n, n <= 4)"),
    ],
)
def test_bounds_of_a_type_in_a_map(bounds: dict[str, int], words: str, expected: str) -> None:
    found = rules(spec(crd({**MAP, "replica_types": {"A": bounds, "B": {}}})))
    counts = "self.replicaSpecs.filter(k, k.lowerAscii() == 'a').map(k, self.replicaSpecs[k].replicas)"
    assert one(found, words) == counts + expected


@pytest.mark.parametrize(
    ("bounds", "words", "expected"),
    [
        ({"minimum": 1, "maximum": 1}, "exactly one entry must have echoType A", ".size() == 1"),
        ({"minimum": 3}, "at least 3 replicas of echoType A", "r.replicas >= 3)"),
    ],
)
def test_minimum_of_a_type_in_a_list(bounds: dict[str, int], words: str, expected: str) -> None:
    assert one(rules(spec(of_flavors(LIST_FLAVOR, replica_types={"A": bounds, "B": {}}))), words).endswith(expected)


def test_maximum_of_a_type_in_a_list() -> None:
    def entry(bounds: dict[str, int]) -> dict[str, Any]:
        made = of_flavors(LIST_FLAVOR, replica_types={"A": bounds, "B": {}})
        return dict(spec(made)["properties"]["replicaSpecs"]["items"])

    exact = one(rules(entry({"minimum": 1, "maximum": 1})), "replicas must be 1 where echoType is A")
    assert exact == "self.echoType != 'A' || self.replicas == 1"
    most = one(rules(entry({"maximum": 4})), "replicas must be at most 4 where echoType is A")
    assert most == "self.echoType != 'A' || self.replicas <= 4"


def test_a_type_that_a_flavor_requires() -> None:
    made = spec(of_flavors({**LIST_FLAVOR, "required": ["A"]}, replica_types={"A": {"maximum": 1}, "B": {}}))
    assert "r.echoType == 'A'" in one(rules(made), "exactly one entry must have echoType A")


def test_some_replica_decides_success() -> None:
    free = {"A": {}, "B": {}, "C": {}}
    found = rules(spec(crd({**MAP, "replica_types": free, "success_target": ["B", "A"]})))
    assert "k.lowerAscii() in ['a', 'b'] && " in one(found, "at least one replica of A or B, which decides success")
    assert none(rules(spec(crd(MAP))), "which decides success")


# --- the other fields


def test_the_chief_is_of_frameworks_in_which_one_replica_decides() -> None:
    assert "terminationPolicy" in spec(crd(MAP))["properties"]
    assert "lowerAscii" in one(rules(spec(crd(MAP))), "has no such replica")
    made = spec(crd(MAP, succeeds_by="all"))
    assert "terminationPolicy" not in made["properties"] and none(rules(made), "chief")


def test_modes() -> None:
    assert "jobMode" not in spec(crd(MAP))["properties"]
    made = spec(crd(MAP, modes={"Together": "dist", "Alone": "local"}))
    assert made["properties"]["jobMode"]["enum"] == ["Together", "Alone"]
    assert made["properties"]["jobMode"]["description"].startswith("Together, the default, ")
    leader = one(
        rules(made), "exactly one Leader, with replicas of 1, is required: add it or correct its replicas, or set"
    )
    assert leader.startswith("has(self.jobMode) && self.jobMode == 'Alone' || ")
    # a local job needs no leader, but still a replica that decides, and no second leader
    assert none(rules(spec(crd(MAP))), "at most one Leader")
    assert "!(has(self.jobMode) && self.jobMode == 'Alone') || " in one(rules(made), "at most one Leader")
    assert "exists" in one(rules(made), "which decides success")


def test_modes_of_flavors() -> None:
    first = {**LIST_FLAVOR, "modes": {"local": "local", "dist": "dist"}}
    made = spec(of_flavors(first, {**MAP_FLAVOR, "modes": {"Fast": "dist"}}))
    assert made["properties"]["jobMode"]["enum"] == ["local", "dist", "Fast"]
    assert one(rules(made), "with echoSpecs, jobMode is Fast: change it") == (
        "!has(self.jobMode) || !has(self.echoSpecs) || self.jobMode in ['Fast']"
    )
    assert one(rules(made), "with replicaSpecs, jobMode is local or dist").endswith("in ['local', 'dist']")


def test_aliases_of_the_runtime_id() -> None:
    made = spec(crd(MAP, runtime_id_fields=["RunID", "RuntimeId"]))
    assert {"RunID", "RuntimeId"} <= set(made["properties"])
    assert "self.RunID == self.RuntimeId" in one(rules(made), "RunID and RuntimeId are aliases")
    assert none(rules(spec(crd(MAP))), "RuntimeId are aliases")


def test_own_fields_are_verbatim_and_replace_derived_ones() -> None:
    color = {
        "type": "string",
        "description": "Its color.",
        "x-kubernetes-validations": [{"rule": "1 == 1", "message": "m"}],
    }
    made = spec(
        crd(MAP, fields={"color": {**color, "x-dljob-affects": "nothing"}, "schedulerName": {"type": "integer"}})
    )
    assert made["properties"]["color"] == color
    assert made["properties"]["schedulerName"] == {"type": "integer"}


def test_fields_of_one_flavor() -> None:
    own = {"fields": {"color": {"type": "string"}}, "success_policies": {"AllFollowers": "Follower"}}
    made = spec(of_flavors(LIST_FLAVOR, {**MAP_FLAVOR, **own}))
    assert made["properties"]["successPolicy"]["enum"] == ["", "AllFollowers"]
    assert "required" not in made
    for name in ("color", "successPolicy"):
        rule = one(rules(made), f"{name} is supported only with echoSpecs")
        assert rule == f"!has(self.{name}) || has(self.echoSpecs)"
    assert none(rules(spec(crd({**MAP, **own}))), "is supported only with")


def test_one_of_the_fields_of_replicas() -> None:
    made = spec(of_flavors({**LIST_FLAVOR, "replicas_fields": ["a", "b"]}, MAP_FLAVOR))
    assert one(rules(made), "exactly one of a (a list), b (a list) and echoSpecs (a map) is required") == (
        "[has(self.a), has(self.b), has(self.echoSpecs)].filter(given, given).size() == 1"
    )
    assert one(rules(made), "exactly one Leader").startswith("!has(self.echoSpecs) || ")
    # the same rule for each spelling
    assert (
        sum(
            "exactly one entry must have" in rule.get("messageExpression", "")
            for rule in made["x-kubernetes-validations"]
        )
        == 2
    )


def test_elastic_replicas_do_not_restart_together() -> None:
    elastic = {"field": "elastic", "type": "Follower"}
    flag = one(rules(spec(crd(MAP, elastic=elastic))), "elastic replicas of type Follower")
    assert flag.startswith("!has(self.elastic) || !self.elastic || ")
    settings = one(
        rules(spec(crd(MAP, elastic={**elastic, "when_any": ["least", "most"]}))), "or least and most of elastic"
    )
    assert settings.startswith("!has(self.elastic) || !has(self.elastic.least) && !has(self.elastic.most) || ")


def test_the_whole_job_restarts_only_if_success_ends_it() -> None:
    for made in (crd(MAP), of_flavors(LIST_FLAVOR), crd(MAP, replica_types={"A": {}}, replicas_layout="single")):
        assert "'Always'" in one(rules(spec(made)), "restartPolicy Always would begin")


# --- the job's name


def test_the_name_is_part_of_pod_names() -> None:
    found = rules(schema(crd(MAP)))
    assert one(found, "begin with a letter").startswith("self.metadata.name.matches(")
    assert "2 + k.size()" in one(found, "<job>-<type>-<index>")
    assert "2 + r.echoType.size()" in one(rules(schema(of_flavors({**LIST_FLAVOR, "names": "job"}))), "<job>-<type>")


def test_the_name_is_a_label_value() -> None:
    labelled = {**LIST_FLAVOR, "labels": {"j": "{job}"}}
    assert one(rules(schema(of_flavors(labelled))), "a label value") == "self.metadata.name.size() <= 63"
    assert one(rules(schema(of_flavors(labelled, MAP_FLAVOR))), "a label value").startswith(
        "has(self.spec.echoSpecs) || "
    )
    assert rules(schema(of_flavors(LIST_FLAVOR))) == {}


# --- the declaration's own rules


def test_a_rule_names_the_counts_of_a_type_and_expressions() -> None:
    own = {
        "expressions": {"some": "{Follower}.exists(n, n > 0)"},
        "rules": [{"rule": "{some} || {Leader} == [1]", "message": "alone", "fieldPath": ".replicaSpecs"}],
    }

    def counts(type_: str) -> str:
        return f"self.replicaSpecs.filter(k, k.lowerAscii() == '{type_}').map(k, self.replicaSpecs[k].replicas)"

    expected = f"{counts('follower')}.exists(n, n > 0) || {counts('leader')} == [1]"
    assert one(rules(spec(crd(MAP, **own))), "alone") == expected


def test_a_rule_of_a_flavor_applies_to_its_jobs_only() -> None:
    own = {"rules": [{"rule": "a ? b : c", "message": "is mine"}]}
    made = spec(of_flavors(LIST_FLAVOR, {**MAP_FLAVOR, **own}))
    assert one(rules(made), "is mine") == "!has(self.echoSpecs) || (a ? b : c)"
    assert one(rules(spec(of_flavors(MAP_FLAVOR, **own))), "is mine") == "a ? b : c"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rules": [{"message": "m"}]}, r"rules\[0\] lacks 'rule'"),
        ({"rules": [{"rule": "r"}]}, r"rules\[0\] needs a message or a messageExpression"),
        ({"rules": [{"rule": "r", "message": "m", "path": "p"}]}, r"unknown key 'path' in rules\[0\]"),
        (
            {"rules": [{"rule": "{Boss} == []", "message": "m"}]},
            r"unknown part \{Boss\} in .*; there are: Follower, Leader",
        ),
        (
            {"expressions": {"a": "{a}"}, "rules": [{"rule": "{a}", "message": "m"}]},
            "expressions: a contains itself",
        ),
        ({"kinds": ["EchoJob"], "groups": ["x"]}, r"kinds\[0\]: write it as \{group, kind, versions\}"),
        ({"kinds": [{**KIND, "scale": "Boss"}]}, "EchoJob.scale: 'Boss' is no type of a flavor with a map"),
        ({"default_type": "Boss"}, "framework.default_type: 'Boss' is none of Leader, Follower"),
        ({"template_optional": ["Boss"]}, "framework.template_optional: 'Boss' is none of"),
        ({"replica_fields": {"Boss": {}}}, "framework.replica_fields: 'Boss' is none of"),
        *(
            ({"most_replicas": most}, "framework.most_replicas is .*: write a number from 1 to 1000000")
            for most in (0, 1_000_001, "9", True)
        ),
        ({"kinds": [KIND, {**KIND, "group": "b.org"}], "groups": ["b.org"]}, "EchoJob of example.com has no flavor"),
    ],
)
def test_mistakes(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFramework, match=said):
        crd(MAP, **change)


def test_flavors_with_the_same_field() -> None:
    with pytest.raises(InvalidFramework, match="share a field of replicas"):
        of_flavors(LIST_FLAVOR, {**MAP_FLAVOR, "replicas_fields": ["replicaSpecs"]})


# --- versions with flavors of their own

OLD = {**MAP_FLAVOR, "version": "v1", "fields": {"old": {"type": "string"}}, "managers": ["example.com/old"]}
NEW = {
    **MAP_FLAVOR,
    "version": "v2",
    "fields": {"new": {"type": "string"}},
    "managers": ["example.com/new"],
    "restart_policies": ["Never"],
}


def versions(*names: str) -> list[dict[str, Any]]:
    return [{**KIND, "versions": list(names)}]


def test_versions_have_all_fields_and_each_its_own_rules() -> None:
    made = of_flavors(OLD, NEW, kinds=versions("v1", "v2"))
    specs = [one["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] for one in made["spec"]["versions"]]
    v1, v2 = specs
    assert set(v1) == set(v2)
    managers = [one["runPolicy"]["properties"]["managedBy"]["enum"] for one in specs]
    assert [("example.com/old" in one, "example.com/new" in one) for one in managers] == [(True, False), (False, True)]
    policies = [one["echoSpecs"]["additionalProperties"]["properties"]["restartPolicy"]["enum"] for one in specs]
    assert policies[1] == ["Never"] != policies[0]
    status = [one["schema"]["openAPIV3Schema"]["properties"]["status"] for one in made["spec"]["versions"]]
    assert all("apiVersion" in one["properties"] for one in status)
    assert "apiVersion" not in schema(crd(MAP))["properties"]["status"]["properties"], "where versions do not differ"


def test_a_version_that_is_not_served() -> None:
    with pytest.raises(InvalidFramework, match=r"EchoJob of example\.com is not served as v1: add the version"):
        of_flavors(OLD, NEW, kinds=versions("v2"))


# --- the definition


def test_a_kind_of_several_versions_that_can_be_scaled() -> None:
    kind = {**KIND, "versions": ["v2", "v1"], "short_names": ["ej"], "scale": "Follower"}
    made = crd(MAP, kinds=[kind], title="Echo", description="A test.")
    assert made["metadata"]["name"] == "echojobs.example.com"
    assert made["spec"]["names"]["shortNames"] == ["ej"]
    assert [(v["name"], v["storage"]) for v in made["spec"]["versions"]] == [("v2", True), ("v1", False)]
    assert schema(made)["description"] == "A test."
    assert made["spec"]["versions"][1]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicaSpecs.Follower.replicas",
        "statusReplicasPath": ".status.replicaStatuses.Follower.active",
        "labelSelectorPath": ".status.replicaStatuses.Follower.selector",
    }


@pytest.mark.parametrize("framework", files.frameworks(ROOT), ids=lambda f: f.name)
def test_every_field_for_filters_is_in_the_schema(framework: model.Framework) -> None:
    """A field that the API server drops never reaches a reconcile."""
    for kind in framework.kinds:
        part = spec(definition.definition(framework, kind))
        for flavor in framework.flavors_of(kind):
            if not flavor.is_bare:
                elastic = [flavor.api.elastic.field] if flavor.api.elastic else []
                assert {*flavor.api.spec_fields, *flavor.api.runtime_id_fields, *elastic} <= set(part["properties"])
                assert set(flavor.api.object_fields) <= set(part["properties"])


# --- defaults and columns


@pytest.mark.parametrize(
    ("flavor", "version", "expected"),
    [(MAP_FLAVOR, "v1", {}), (MAP_FLAVOR, "v2beta1", None), (LIST_FLAVOR, "v1alpha1", None), (LIST_FLAVOR, "v1", None)],
)
def test_the_map_layout_has_a_run_policy_in_v1(flavor: dict[str, Any], version: str, expected: Any) -> None:
    made = of_flavors(flavor, kinds=[{**KIND, "versions": [version]}])
    assert spec(made)["properties"]["runPolicy"].get("default") == expected


def test_wide_listings_have_the_reason() -> None:
    columns = crd(MAP)["spec"]["versions"][0]["additionalPrinterColumns"]
    (reason,) = [column for column in columns if column["name"] == "Reason"]
    assert (reason["jsonPath"], reason["priority"]) == (".status.reason", 1)


# --- what does not depend on the kind


def at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """The schema of a field; ``[]`` is that of the items, ``*`` that of the values."""
    for name in path.split("."):
        schema = (
            schema["items"]
            if name == "[]"
            else schema["additionalProperties"]
            if name == "*"
            else schema["properties"][name]
        )
    return schema


RULE = "podFailurePolicy.rules.[]"
BOUNDS = {
    ("podFailurePolicy.rules", "maxItems"): pod_failure_policy.MOST_RULES,
    (f"{RULE}.action", "enum"): [*pod_failure_policy.ACTIONS],
    (f"{RULE}.onExitCodes.operator", "enum"): [*pod_failure_policy.OPERATORS],
    (f"{RULE}.onExitCodes.values", "maxItems"): pod_failure_policy.MOST_EXIT_CODES,
    (f"{RULE}.onExitCodes.values.[]", "maximum"): pod_failure_policy.LARGEST_EXIT_CODE,
    (f"{RULE}.onTerminationReasons.operator", "enum"): [*pod_failure_policy.OPERATORS],
    (f"{RULE}.onTerminationReasons.values", "maxItems"): pod_failure_policy.MOST_REASONS,
    (f"{RULE}.onPodConditions", "maxItems"): pod_failure_policy.MOST_CONDITIONS,
    (f"{RULE}.onPodConditions.[].status", "enum"): [*pod_failure_policy.CONDITION_STATUSES],
    ("startupPolicy.startupPolicyOrder", "enum"): [*constants.STARTUP_ORDERS],
    ("startupPolicy.dependsOn.*.[].condition", "enum"): [*CONDITIONS],
}


@pytest.mark.parametrize(("path", "key"), BOUNDS)
def test_a_run_policy_has_the_bounds_of_the_reconcile(path: str, key: str) -> None:
    assert at(options.run_policy(()), path)[key] == BOUNDS[path, key]


def test_a_rule_of_the_failure_policy_has_one_of_its_requirements() -> None:
    rule = one(rules(at(options.run_policy(()), RULE)), "a rule of podFailurePolicy has exactly one")
    assert rule.startswith(f"[{', '.join(f'has(self.{name})' for name in pod_failure_policy.REQUIREMENTS)}].filter")


def test_a_job_of_any_framework_may_name_each() -> None:
    others = [*files.frameworks(ROOT), model.framework("echo", MAP)]
    field = any_framework.schema(any_framework.framework(others))["properties"]["spec"]["properties"]["framework"]
    assert all(f" {other.name}," in field["description"] for other in others)
