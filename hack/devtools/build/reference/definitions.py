"""A page per CustomResourceDefinition: its fields, their types and defaults, and the validation errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from devtools.build.reference.pages import NOTE, code, table
from devtools.definitions import definitions

_OPEN = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"


def pages() -> dict[str, str]:
    """File name to text."""
    made = {}
    for document in definitions().values():
        if document.get("kind") == "CustomResourceDefinition":
            made[f"definitions/{document['metadata']['name']}.md"] = page(document)
    return made


def page(document: Mapping[str, Any]) -> str:
    """The page of one definition."""
    spec = document["spec"]
    names = spec["names"]
    text = f"{NOTE}# {names['kind']} ({spec['group']})\n\n"
    short = [code(name) for name in (names["plural"], *names.get("shortNames", ()))]
    text += f"For `kubectl get`: {', '.join(short)}"
    text += (
        f"; `kubectl get {names['categories'][0]}` lists the jobs of every kind.\n"
        if names.get("categories")
        else ".\n"
    )
    columns = spec["versions"][0].get("additionalPrinterColumns", ())
    text += "\n" + table(
        ["column", "shows", ""],
        [[c["name"], c.get("description", ""), "with `-o wide`" if c.get("priority") else ""] for c in columns],
    )
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        text += f"\n## {spec['group']}/{version['name']}\n"
        if not version["served"]:
            text += "\nNot served.\n"
        for part in ("spec", "status"):
            text += f"\n### {part}\n\n"
            fields = list(_fields(schema["properties"][part], part, part in schema.get("required", ())))
            text += table(["field", "type", "description"], fields)
        rules = list(_rules(schema, ""))
        if rules:
            text += "\n### Validation errors\n\n`kubectl apply` prints the field and one of these messages:\n\n"
            text += table(["at", "message"], rules)
    return text


def _fields(schema: Mapping[str, Any], path: str, required: bool) -> Iterator[list[str]]:
    yield [code(path), _type(schema, required), _description(schema)]
    needed = schema.get("required", ())
    for name, child in (schema.get("properties") or {}).items():
        if "description" in child:  # the others are Kubernetes' fields of a pod template
            yield from _fields(child, f"{path}.{name}", name in needed)
    if isinstance(schema.get("items"), dict):
        yield from _inner(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _inner(schema["additionalProperties"], f"{path}.*")


def _inner(schema: Mapping[str, Any], path: str) -> Iterator[list[str]]:
    """Rows for the items of a list or a map; a separate row for the item only if it has a description."""
    yield from _fields(schema, path, False)


def _type(schema: Mapping[str, Any], required: bool) -> str:
    name = schema.get("type") or ("integer or string" if schema.get("x-kubernetes-int-or-string") else "any")
    parts = [str(name)]
    if required:
        parts.append("required")
    if "default" in schema:
        parts.append(f"default {code(schema['default'])}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        parts.append(
            f"{low} to {high}" if None not in (low, high) else f"at least {low}" if high is None else f"at most {high}"
        )
    return ", ".join(parts)


def _description(schema: Mapping[str, Any]) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    if schema.get("enum"):
        text += f" One of {', '.join(code(choice) if choice else 'empty' for choice in schema['enum'])}."
    if schema.get("pattern"):
        text += f" Must match {code(schema['pattern'])}."
    if schema.get(_OPEN) and schema.get("properties") and "pass unchanged" not in text:
        text += " Other fields are preserved."
    return text.strip()


def _rules(schema: Mapping[str, Any], path: str) -> Iterator[list[str]]:
    for rule in schema.get(_RULES, ()):
        where = path + rule.get("fieldPath", "")
        words = rule.get("message") or "computed: " + rule["messageExpression"]
        yield [code(where.lstrip(".") or "the job"), " ".join(words.split()) if rule.get("message") else code(words)]
    for name, child in (schema.get("properties") or {}).items():
        yield from _rules(child, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _rules(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _rules(schema["additionalProperties"], f"{path}.*")
