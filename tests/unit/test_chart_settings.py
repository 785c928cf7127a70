"""The Helm chart against the rows of the settings: values, schema and the operator's environment and arguments."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import Setting

from dljob_operator.options import SETTINGS

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "dljob-operator"
TEMPLATE = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8").splitlines()
OFFERED = [setting for setting in SETTINGS if setting.chart]
OF_THE_POD = {"POD_NAMESPACE", "POD_NAME"}
"""Variables that the chart itself fills in."""


def at(document: Any, path: str, *between: str) -> Any:
    for key in path.split("."):
        for name in (*between, key):
            document = document[name]
    return document


@pytest.mark.parametrize("setting", OFFERED, ids=lambda setting: setting.option or setting.variable)
def test_the_chart_has_a_value_for_it(setting: Setting[object]) -> None:
    value = at(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), setting.chart)
    schema = at(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")), setting.chart, "properties")
    if setting.choices:
        assert schema == {"enum": ["", *setting.choices]}
    if setting.is_flag:
        assert (value, schema) == (False, {"type": "boolean"})
    elif setting.chart == "metrics.port":
        assert value == 8080, "metrics.enabled decides whether it is used"
    else:
        assert value in ("", None, []) or str(value) == setting.default


@pytest.mark.parametrize("setting", OFFERED, ids=lambda setting: setting.option or setting.variable)
def test_the_template_passes_that_value(setting: Setting[object]) -> None:
    if setting.variable:
        line = TEMPLATE.index(f"            - name: {setting.variable}")
        around = TEMPLATE[line - 1 : line + 2]
    else:
        line = next(number for number, text in enumerate(TEMPLATE) if f'"{setting.option}' in text)
        around = TEMPLATE[line - 2 : line + 1]
    assert re.search(rf"\.Values\.{re.escape(setting.chart)}\b", "\n".join(around))


def test_what_the_template_passes_is_a_setting() -> None:
    text = "\n".join(TEMPLATE)
    variables = set(re.findall(r"- name: ([A-Z_]+)$", text, re.MULTILINE)) - OF_THE_POD
    assert variables == {setting.variable for setting in OFFERED if setting.variable}
    assert set(re.findall(r'"(--[a-z-]+)', text)) <= {setting.option for setting in SETTINGS}


def test_the_template_passes_progress_only_where_it_is_on() -> None:
    text = "\n".join(TEMPLATE)
    without, number = re.subn(r'{{- if include "dljob\.progress" \. }}.*?{{- end }}', "", text, flags=re.DOTALL)
    assert number == 4, "the argument, both variables and the port"
    assert not re.search(r"progress|POD_NAME$", without, re.IGNORECASE | re.MULTILINE)


def test_the_template_passes_the_history_only_where_it_has_a_database() -> None:
    text = "\n".join(TEMPLATE)
    begin = text.index("{{- if .Values.history.databaseSecret.name }}")
    end = text.index("{{- with .Values.extraEnv }}")
    assert text[begin:end].count("- name: DLJOB_HISTORY_") == 4
    assert "istory" not in text[:begin] + text[end:]
    assert "secretKeyRef" in text[begin:end], "the URL may have a password, so it is no value of the chart"
