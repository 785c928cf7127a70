"""Reads what a reconcile needs from the cluster besides the job: the operator's ConfigMap and the nodes' resources.

They come from the engine's cache where there is one; otherwise by GET, and only what the plan needs. An operator
without these permissions must still work: it reports what it may not read and goes on without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators import config
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators.presets import preset
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import CLUSTER_DOMAIN
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import accelerator_limits
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_MAP
from ansible_collections.dljob.operator.plugins.module_utils.shared.paging import pages
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import Endpoint
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ClusterInfo,
    OperatorConfig,
    RequiredInfo,
)

Resource = Mapping[str, Any]

_PAGE_SIZE = 500
_MAX_FILE_SIZE = 512 * 1024
"""Bytes; a ConfigMap holds 1 MiB."""


@dataclass(frozen=True)
class OperatorSettings:
    """What the administrator sets: the ConfigMap's name and namespaces (most important first), one of CLOUDS or "", the
    cluster's DNS domain, the scheduler that starts the pods of a job together, whether the operator creates Kueue's
    Workloads, whether it keeps accounts of what jobs use, and where programs report their progress."""

    config_map: str = CONFIG_MAP
    cloud: str = ""
    cluster_domain: str = CLUSTER_DOMAIN
    config_namespaces: tuple[str, ...] = ()
    gang: GangScheduler | None = None
    kueue: bool = False
    usage: bool = False
    progress: Endpoint | None = None


def read(
    api: RestClient,
    needs: RequiredInfo,
    settings: OperatorSettings,
    published: cache_snapshot.Published | None = None,
) -> tuple[ClusterInfo, tuple[str, ...]]:
    """The parts of the cluster info that ``needs`` names, and one warning for each part that cannot be read."""
    warnings: list[str] = []
    watched = published is not None and published["config_map"] == settings.config_map
    if published is not None and watched:
        found: Sequence[Resource] = published["config_maps"]
    else:
        found = _get_config_maps(api, settings, warnings) if needs.config else ()
    operator_config = _config(found[0]) if found else preset(settings.cloud)
    programs = {}
    for setting in needs.settings:
        text = _file(operator_config.files.get(setting, ""), setting, warnings)
        if text is not None:
            programs[setting] = text
    advertised = _advertised(api, needs, published, warnings)
    return ClusterInfo(operator_config, advertised, programs, watched), tuple(warnings)


def _get_config_maps(api: RestClient, settings: OperatorSettings, warnings: list[str]) -> Sequence[Resource]:
    """The first existing ConfigMap of those namespaces."""
    name = settings.config_map
    for namespace in settings.config_namespaces:
        try:
            return [api.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")]
        except ApiError as e:
            if e.status == 403:
                warnings.append(f"{e.message}; without it the accelerators of {namespace}/{name} are not configured")
            elif e.status != 404:
                raise
    return ()


def _advertised(
    api: RestClient, needs: RequiredInfo, published: cache_snapshot.Published | None, warnings: list[str]
) -> frozenset[str] | None:
    if not needs.nodes:
        return None
    if published is not None:
        return None if published["resources"] is None else frozenset(published["resources"])
    read = pages(lambda query: api.request("GET", "/api/v1/nodes", query=query), {}, _PAGE_SIZE)
    try:
        nodes: list[Resource] = [node for page in read for node in page.get("items") or ()]
    except ApiError as e:
        if e.status != 403:
            raise
        warnings.append(f"{e.message}; without it the operator does not replace alpha resource names")
        return None
    return accelerator_limits.advertised(nodes)


def _config(config_map: Resource) -> OperatorConfig:
    metadata = config_map["metadata"]
    where = f"ConfigMap {metadata['namespace']}/{metadata['name']}"
    document: Any = None
    data: Mapping[str, Any] | None = config_map.get("data") or {}
    while data is not None:
        try:
            key, text = config.text_of(data)
        except ValueError as e:
            return OperatorConfig(problems={"": f"{where}: {e}"})
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as e:
            return OperatorConfig(problems={"": f"{where}, data.{key} is not valid YAML: {_one_line(e)}"})
        where = f"{where}, data.{key}"
        data = config.inner_of(document)
    return config.read(document, where)


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    return f"{what}, in line {mark.line + 1}" if mark else " ".join(str(what).split())


def _file(name: str, setting: str, warnings: list[str]) -> str | None:
    """The text of a Python program in the operator's own file system; ``None`` where there is no such file.

    Only Python files are read: a user who may write the ConfigMap must not be able to read the operator's other files,
    such as its token.
    """
    path = Path(name).resolve() if name else None
    if path is None or not path.is_file():
        return None
    try:
        if path.suffix != ".py" or path.stat().st_size > _MAX_FILE_SIZE:
            warnings.append(f"{setting}: {name} is not a Python file (.py) of up to {_MAX_FILE_SIZE} bytes")
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        warnings.append(f"{setting}: {name} cannot be read: {e}")
        return None
