"""A schema must accept exactly the fields that the role reads: compares the schemas with the roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic import declaration

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = {
    (document["spec"]["group"], document["spec"]["names"]["kind"]): document["spec"]["versions"][0]["schema"]
    for document in (yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml"))
}
FRAMEWORKS = [
    framework
    for path in sorted((ROOT / "roles").glob("*/vars/main.yml"))
    for name, framework in yaml.safe_load(path.read_text()).items()
    if name.endswith("_framework")
]
FLAVORS = [
    pytest.param(framework, kind.name, kind.group, flavor.keys, id=f"{kind.name}.{kind.group} {flavor.path}")
    for framework in FRAMEWORKS
    for kind in declaration.kinds(framework)
    for flavor in declaration.flavors(framework, declaration.kinds(framework))
    if kind.group in flavor.keys["groups"]
]
# fields of a replica spec in every API flavor, besides the ports
COMMON = {"replicas", "template"}


def test_every_definition_has_a_role() -> None:
    assert {(group, kind) for _, kind, group, _ in (p.values for p in FLAVORS)} == set(SCHEMAS)


def test_every_role_has_a_watch() -> None:
    watched = {(w["group"], w["kind"]): w["role"] for w in yaml.safe_load((ROOT / "watches.yaml").read_text())}
    assert set(watched) == set(SCHEMAS)
    for role, kind, group in ((f["name"], k, g) for f, k, g, _ in (p.values for p in FLAVORS)):
        assert watched[group, kind] == f"dljob.operator.{role}"


@pytest.mark.parametrize(("framework", "kind", "group", "flavor"), FLAVORS)
def test_replicas(framework: dict[str, Any], kind: str, group: str, flavor: dict[str, Any]) -> None:
    spec = SCHEMAS[group, kind]["openAPIV3Schema"]["properties"]["spec"]
    types = list(flavor.get("types") or framework["replica_types"])
    ports = set(flavor.get("port_fields", ()))
    for field in flavor["replicas_fields"]:
        replicas = spec["properties"][field] if field else spec
        if flavor["replicas_layout"] == "map":
            entry, own = replicas["additionalProperties"], {"restartPolicy"}
            rules = str(replicas["x-kubernetes-validations"])
            assert all(f"'{type_.lower()}'" in rules for type_ in types)
        elif flavor["replicas_layout"] == "single":
            entry, own = replicas, set()
        else:
            entry, own = replicas["items"], {flavor["type_field"]}
            listed = entry["properties"][flavor["type_field"]]["enum"]
            assert {type_.casefold() for type_ in listed} <= {type_.casefold() for type_ in types}
        programs = flavor.get("template_optional", ())
        own |= {name for fields in flavor.get("replica_fields", {}).values() for name in fields}
        assert set(entry["properties"]) == COMMON | own | ports
        for port in ports:
            text = entry["properties"][port]["description"]
            assert f"Default: {flavor['default_port']}." in text or text.startswith("Alias of")
        containers = entry["properties"]["template"]["properties"]["spec"]["properties"]["containers"]
        rules = [r["rule"] for r in (entry if programs else containers)["x-kubernetes-validations"]]
        demands = [r for r in rules if f"c.name == '{framework['container']}'" in r]
        assert len(demands) == 1
        # only replica types with a default program may omit the container
        free = [f"self.{flavor['type_field']} == '{type_.upper()}'" for type_ in programs]
        assert demands[0].startswith(" || ".join(free))


@pytest.mark.parametrize(("framework", "kind", "group", "flavor"), FLAVORS)
def test_modes(framework: dict[str, Any], kind: str, group: str, flavor: dict[str, Any]) -> None:
    spec = SCHEMAS[group, kind]["openAPIV3Schema"]["properties"]["spec"]
    if spec["type"] == "object" and "jobMode" in spec["properties"]:
        assert set(flavor["modes"]) <= set(spec["properties"]["jobMode"]["enum"])
    else:
        assert not flavor.get("modes")


@pytest.mark.parametrize(("framework", "kind", "group", "flavor"), FLAVORS)
def test_what_is_read_of_the_spec(framework: dict[str, Any], kind: str, group: str, flavor: dict[str, Any]) -> None:
    spec = SCHEMAS[group, kind]["openAPIV3Schema"]["properties"]["spec"]
    read = {*flavor.get("runtime_id_fields", ["RuntimeId"]), *flavor.get("spec_fields", ())}
    assert spec["type"] != "object" or read <= set(spec["properties"])
