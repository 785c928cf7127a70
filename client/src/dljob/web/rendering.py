"""The templates, which escape what a cluster says, and the files beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from dljob.logs.show import harmless
from dljob.output import MOST_METRICS, duration, printable, progress_cell, progress_head, ranks_text, size, used
from dljob.view import JobView
from dljob.web.chart import WIDTH

HERE = Path(__file__).parent
STATIC = "/static"


def link(job: JobView, part: str = "") -> str:
    """The address of a job's page."""
    path = "/".join(quote(one, safe="") for one in (job.namespace, job.resource, job.name))
    return f"/jobs/{path}{part}"


_templates = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(), undefined=StrictUndefined
)
_templates.filters |= {
    "printable": printable, "duration": duration, "size": size, "harmless": harmless, "link": link, "used": used,
    "progress_cell": progress_cell, "progress_head": progress_head, "ranks": ranks_text,
}  # fmt: skip
_ABSENT = {"title": "", "form_key": "", "may_leave": False, "with_history": False, "manifest": ""}
"""Values that pages may have."""
_templates.globals |= {"width": WIDTH, "most_metrics": MOST_METRICS}


def text(template: str, **values: Any) -> str:
    """The page; ``title``, ``form_key`` and ``may_leave`` are of the viewer, ``manifest`` is of an error."""
    return _templates.get_template(template).render({**_ABSENT, **values})


def static() -> Mount:
    """The style sheet and the script."""
    return Mount(STATIC, StaticFiles(directory=HERE / "static"))
