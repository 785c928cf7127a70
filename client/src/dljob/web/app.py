"""The pages."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dljob.aio import AsyncClient
from dljob.client import Client
from dljob.errors import ApiError, DljobError, NotFound
from dljob.events import event_rows
from dljob.kinds import Resource
from dljob.logs import Choice
from dljob.logs.show import harmless
from dljob.matching import matches
from dljob.output import SORT_KEYS, printable, size, structured
from dljob.output import duration as duration_text
from dljob.view import FINAL, SUSPENDED, JobView, view
from dljob.web.chart import WIDTH, shares, timeline
from dljob.web.guard import Guard, Keys, same
from dljob.web.live import LiveJobs
from dljob.why import explain
from dljob.why.read import snapshot

HERE = Path(__file__).parent
PAGE = 100
"""Jobs of a page of the overview."""
TAIL = 500
"""Lines of each container with which the page of the logs begins."""
MOST_LINES = 5000
"""Lines of the page of the logs without JavaScript."""
ACTIONS = {
    "suspend": "Its pods are deleted, and it starts anew when it is resumed.",
    "resume": "It starts.",
    "restart": "All of its replicas start anew.",
    "delete": "The job and its pods are deleted.",
}
_LOOK = 0.25
"""Seconds between two looks at what has changed."""
_LARGEST_FORM = 10_000
"""Bytes of a form."""
_HEARTBEAT = 15.0
"""Seconds after which a quiet stream shows that it is alive."""


def link(job: JobView, part: str = "") -> str:
    """The address of a job's page."""
    path = "/".join(quote(one, safe="") for one in (job.namespace, job.resource, job.name))
    return f"/jobs/{path}{part}"


def page_links(query: Mapping[str, str], page: int, pages: int) -> Mapping[str, str]:
    """The addresses of the pages before and after; "" where there is none."""
    near = {"previous": page - 1, "next": page + 1}
    return {name: "/?" + urlencode({**query, "page": n}) if 1 <= n <= pages else "" for name, n in near.items()}


class Pages:
    """Answers the requests of one user."""

    def __init__(self, client: Client, live: LiveJobs, keys: Keys) -> None:
        self._client = client
        self._live = live
        self._keys = keys
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(), undefined=StrictUndefined
        )
        self._templates.filters |= {
            "printable": printable, "duration": duration_text, "size": size, "harmless": harmless, "link": link,
        }  # fmt: skip
        self._templates.globals |= {"form_key": keys.form, "width": WIDTH, "context": client.api.config.context}

    @property
    def routes(self) -> Sequence[Route | Mount]:
        job = "/jobs/{namespace}/{resource}/{name}"
        return (
            Route("/", self._answered(self.overview)),
            Route("/live", self.changes),
            Route(job, self._answered(self.job)),
            Route(f"{job}/live", self.changes),
            Route(f"{job}/logs", self._answered(self.logs)),
            Route(f"{job}/logs/live", self.live_logs),
            Route(f"{job}/{{action}}", self._answered(self.ask), methods=["GET"]),
            Route(f"{job}/{{action}}", self._answered(self.act), methods=["POST"]),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        )

    # --- what answers

    def overview(self, request: Request) -> Response:
        """All jobs: filter, order and page are in the address."""
        query = {name: request.query_params.get(name, "") for name in ("q", "sort")}
        key = query["sort"].removeprefix("-")
        found = [job for job in self._live.views() if matches(job, query["q"])]
        if key in SORT_KEYS:
            found.sort(key=SORT_KEYS[key], reverse=query["sort"].startswith("-"))
        else:
            found.sort(key=lambda job: (job.state in FINAL, job.namespace, job.name))
        pages = max(1, math.ceil(len(found) / PAGE))
        number = request.query_params.get("page", "1")
        page = min(pages, max(1, int(number))) if number.isascii() and number.isdigit() and len(number) < 9 else 1
        given = {name: value for name, value in query.items() if value}
        return self._page(
            "overview.html",
            jobs=found[(page - 1) * PAGE : page * PAGE],
            count=len(found),
            page=page,
            pages=pages,
            links=page_links(given, page, pages),
            query=query,
            sorts={name: "/?" + urlencode({**given, "sort": _turned(query["sort"], name)}) for name in SORT_KEYS},
            shares=shares(found),
            error=self._live.error,
            version=self._live.version,
        )

    def job(self, request: Request) -> Response:
        """One job."""
        found = self._object(request)
        pods, no_pods = self._client.pods(found)
        events, no_events = self._client.events(found, pods)
        now = datetime.now(UTC)
        seen = view(found, pods, now)
        read = snapshot(self._client.api, found, now)
        rows, left_out = timeline(found, pods, now)
        return self._page(
            "job.html",
            job=seen,
            causes=explain(read),
            now=now,
            rows=rows,
            left_out=left_out,
            events=event_rows(events),
            warnings=[text for text in (no_pods, no_events) if text],
            unread=", ".join(sorted({one.right for one in read.unread})),
            yaml=structured(_without_noise(found), "yaml"),
            actions=_actions(seen),
            version=self._live.version_of(*(request.path_params[name] for name in ("namespace", "resource", "name"))),
        )

    def logs(self, request: Request) -> Response:
        """The last lines of all replicas."""
        job = view(self._object(request))
        lines: list[Any] = []
        said: list[str] = []
        pattern = request.query_params.get("q", "")
        try:
            for line in self._client.logs(job.key, namespace=job.namespace, choice=Choice(tail=TAIL), tell=said.append):
                if pattern.lower() in line.text.lower():
                    lines.append(line)
        except NotFound as e:
            said.append(str(e))
        return self._page("logs.html", job=job, lines=lines[-MOST_LINES:], said=said, pattern=pattern, tail=TAIL)

    def ask(self, request: Request) -> Response:
        """The question before an action."""
        action = request.path_params["action"]
        job = view(self._object(request))
        if action not in ACTIONS:
            raise NotFound(f"There is no page {action}.")
        return self._page("ask.html", job=job, action=action, meaning=ACTIONS[action])

    def act(self, request: Request) -> Response:
        """Do it; the form is read before, in :meth:`_answered`."""
        action = request.path_params["action"]
        if action not in ACTIONS:
            raise NotFound(f"There is no action {action}.")
        job = view(self._object(request))
        getattr(self._client, action)(job.key, namespace=job.namespace)
        return RedirectResponse("/" if action == "delete" else link(job), 303)

    # --- live

    async def changes(self, request: Request) -> Response:
        """Server-sent events: the version of all jobs, or of one, whenever it changes."""
        names = request.path_params

        def version() -> str:
            return self._live.version_of(**names) if names else str(self._live.version)

        async def events() -> AsyncIterator[str]:
            shown, quiet = None, 0.0
            while not self._live.is_closed:
                now = version()
                if now != shown or quiet >= _HEARTBEAT:
                    yield f"data: {now}\n\n" if now != shown else ": alive\n\n"
                    shown, quiet = now, 0.0
                await asyncio.sleep(_LOOK)
                quiet += _LOOK

        return StreamingResponse(events(), media_type="text/event-stream")

    async def live_logs(self, request: Request) -> Response:
        """Server-sent events: a line of a log each, from now on."""
        names = request.path_params
        client = AsyncClient(client=self._client)

        async def events() -> AsyncIterator[str]:
            yield ": begin\n\n"
            key = f"{names['resource']}/{names['name']}"
            try:
                async for line in client.logs(key, namespace=names["namespace"], choice=Choice(tail=0), follow=True):
                    shown = {"replica": printable(line.replica), "text": harmless(line.text)}
                    yield f"data: {json.dumps(shown)}\n\n"
            except DljobError as e:
                yield f"event: said\ndata: {json.dumps(str(e))}\n\n"
            yield "event: over\ndata: \n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    # --- how

    def _answered(self, answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """In a thread; an error becomes a page with its sentence."""

        async def answers(request: Request) -> Response:
            if request.method == "POST" and not same(await _form_key(request), self._keys.form):
                return HTMLResponse(self._text("error.html", sentence="This form is not of this page."), 403)
            try:
                return await run_in_threadpool(answer, request)
            except DljobError as e:
                status = e.status if isinstance(e, ApiError) else 404 if isinstance(e, NotFound) else 502
                return HTMLResponse(self._text("error.html", sentence=str(e)), status if 400 <= status < 600 else 502)

        return answers

    def _object(self, request: Request) -> Resource:
        names = request.path_params
        return self._client.object(f"{names['resource']}/{names['name']}", namespace=names["namespace"])

    def _page(self, template: str, **values: Any) -> Response:
        return HTMLResponse(self._text(template, **values))

    def _text(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(**values)


async def _form_key(request: Request) -> str:
    """The field ``key`` of the form; "" for a form that is too large, or none."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_FORM:
            return ""
    return dict(parse_qsl(body.decode(errors="replace"))).get("key", "")


def _turned(sort: str, name: str) -> str:
    """The order that a click on a column's head asks for."""
    return f"-{name}" if sort == name else name


def _actions(job: JobView) -> Sequence[str]:
    if job.state in FINAL:
        return ("restart", "delete")
    return ("resume" if job.state == SUSPENDED else "suspend", "restart", "delete")


def _without_noise(job: Resource) -> Resource:
    metadata = {name: value for name, value in job["metadata"].items() if name != "managedFields"}
    return {**job, "metadata": metadata}


def create(client: Client, live: LiveJobs, keys: Keys, hosts: Sequence[str]) -> Guard:
    """The application, for requests to one of ``hosts``."""
    return Guard(Starlette(routes=Pages(client, live, keys).routes), keys, hosts)
