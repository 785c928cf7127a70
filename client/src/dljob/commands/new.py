"""``dljob new``."""

from __future__ import annotations

import argparse

from dljob.errors import Refused
from dljob.new import Impossible, Plan, manifest
from dljob.output import structured


def run(given: argparse.Namespace) -> int:
    """Print a manifest."""
    plan = Plan(
        framework=given.framework,
        name=given.name or given.framework,
        image=given.image,
        program=given.program,
        workers=given.workers,
        servers=given.servers,
        gpus=given.gpus,
        gpu_resource=given.gpu_resource,
        cpu=given.cpu,
        memory=given.memory,
        env=dict(given.env),
        redis=given.redis,
        queue=given.queue,
        namespace=given.namespace or "",
    )
    try:
        made = manifest(plan)
    except Impossible as e:
        raise Refused(f"{e}.") from None
    print(structured(made, given.output or "yaml"))
    return 0
