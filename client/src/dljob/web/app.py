"""The pages."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from dljob.aio import iterate
from dljob.client import Client
from dljob.errors import ApiError, DljobError, NotCreated, NotFound, Refused
from dljob.events import event_rows
from dljob.kinds import Resource
from dljob.logs import Choice
from dljob.logs.progress import log_progress
from dljob.matching import matches
from dljob.output import SORT_KEYS, progress_cell, structured
from dljob.view import FINAL, SUSPENDED, JobView, view
from dljob.web import history, rendering
from dljob.web.chart import shares, timeline
from dljob.web.forms import fields, same
from dljob.web.guard import Guard, Keys
from dljob.web.lines import MOST, Last, Line, shown, time_in
from dljob.web.live import LiveJobs
from dljob.web.rendering import link, static
from dljob.web.viewer import LocalViewer, NoNamespace, Scope, Viewer, viewer_of
from dljob.why import explain
from dljob.why.read import snapshot

PAGE = 100
"""Jobs of a page of the overview."""
TAIL = 500
"""Lines of each container with which the page of the logs begins."""
AHEAD = 50
"""Lines that are read ahead for a browser that takes them slowly."""
SMALL, LARGE = 100_000, 500_000
"""Bytes of a job up to which its page shows the YAML, and up to which a page of its own does."""
ACTIONS = {
    "suspend": "Its pods are deleted, and it starts anew when it is resumed.",
    "resume": "It starts.",
    "restart": "All of its replicas start anew.",
    "delete": "The job and its pods are deleted.",
}
_LOOK = 0.25
"""Seconds between two looks at what has changed."""
_HEARTBEAT = 15.0
"""Seconds after which a quiet stream shows that it is alive."""
_UNBUFFERED = {"X-Accel-Buffering": "no"}
"""So that nginx passes a stream on."""
_UNREADABLE = "The logs cannot be read at the moment."
_log = logging.getLogger(__name__)
_AGAIN = 5.0
"""Seconds after which a stream asks again whether its viewer may still see it."""


def page_links(query: Mapping[str, str], page: int, pages: int) -> Mapping[str, str]:
    """The addresses of the pages before and after; "" where there is none."""
    near = {"previous": page - 1, "next": page + 1}
    return {name: "/?" + urlencode({**query, "page": n}) if 1 <= n <= pages else "" for name, n in near.items()}


class Pages:
    """Answers the requests of viewers, each with the viewer's own rights.

    ``history`` is the database of the history, for a viewer who has an account of it; "" for none.
    """

    def __init__(self, history: str = "") -> None:
        self._history = history

    @property
    def routes(self) -> Sequence[Route | Mount]:
        job = "/jobs/{namespace}/{resource}/{name}"
        return (
            Route("/", self._answered(self.overview)),
            Route("/live", self.changes),
            Route(job, self._answered(self.job)),
            Route(f"{job}/live", self.changes),
            Route(f"{job}/yaml", self._answered(self.yaml)),
            Route(f"{job}/logs", self._answered(self.logs)),
            Route(f"{job}/logs/live", self.live_logs),
            Route(f"{job}/{{action}}", self._answered(self.ask), methods=["GET"]),
            Route(f"{job}/{{action}}", self._answered(self.act), methods=["POST"]),
            static(),
            *(
                Route(path, self._answered(answer))
                for path, answer in (("/history", self.ended), ("/history/report", self.report))
                if self._history
            ),
        )

    # --- what answers

    def overview(self, request: Request) -> Response:
        """All jobs: filter, order, page and namespace are in the address."""
        viewer = viewer_of(request)
        query = {name: request.query_params.get(name, "") for name in ("q", "sort", "namespace")}
        try:
            scope = viewer.scope(query["namespace"])
        except NoNamespace as e:
            return self._page(request, "choose.html", sentence=str(e))
        live = scope.live
        key = query["sort"].removeprefix("-")
        found = [job for job in live.views(viewer.patience) if matches(job, query["q"])]
        if key in SORT_KEYS:
            found.sort(key=SORT_KEYS[key], reverse=query["sort"].startswith("-"))
        else:
            found.sort(key=lambda job: (job.state in FINAL, job.namespace, job.name))
        pages = max(1, math.ceil(len(found) / PAGE))
        number = request.query_params.get("page", "1")
        page = min(pages, max(1, int(number))) if number.isascii() and number.isdigit() and len(number) < 9 else 1
        given = {name: value for name, value in query.items() if value}
        jobs = found[(page - 1) * PAGE : page * PAGE]
        return self._page(
            request,
            "overview.html",
            jobs=jobs,
            with_progress=any(map(progress_cell, jobs)),
            count=len(found),
            page=page,
            pages=pages,
            links=page_links(given, page, pages),
            query=query,
            source="/live" + (f"?{urlencode({'namespace': query['namespace']})}" if query["namespace"] else ""),
            sorts={name: "/?" + urlencode({**given, "sort": _turned(query["sort"], name)}) for name in SORT_KEYS},
            shares=shares(found),
            error=live.error,
            hidden=scope.hidden,
            version=live.version,
        )

    def job(self, request: Request) -> Response:
        """One job."""
        client = viewer_of(request).client
        found = self._object(request)
        around = client.around(found)
        now = datetime.now(UTC)
        seen = view(found, around.pods, now)
        read = snapshot(client.api, found, now, around)
        rows, left_out = timeline(found, around.pods, now)
        return self._page(
            request,
            "job.html",
            job=seen,
            causes=explain(read),
            by_log=log_progress(client.api, found, around.pods),
            now=now,
            rows=rows,
            left_out=left_out,
            events=event_rows(around.events),
            warnings=around.warnings,
            unread=", ".join(sorted({one.right for one in read.unread})),
            yaml="" if request.headers.get("X-Live") else _yaml(found, SMALL),
            actions=_actions(seen),
            version=_version(request),
        )

    def yaml(self, request: Request) -> Response:
        """The manifest of a job that is too large for its page."""
        found = self._object(request)
        job = view(found)
        text = _yaml(found, LARGE)
        if not text:
            command = f"kubectl get {job.key} -n {job.namespace} -o yaml"
            raise Refused(f"The job {job.key} is too large for a page: {command} prints it.")
        return self._page(request, "yaml.html", job=job, yaml=text)

    def logs(self, request: Request) -> Response:
        """The last lines of all replicas."""
        client = viewer_of(request).client
        job = view(self._object(request))
        lines = Last()
        said: list[str] = []
        pattern = request.query_params.get("q", "")
        since = ""
        try:
            for line in client.logs(job.key, namespace=job.namespace, choice=Choice(tail=TAIL), tell=said.append):
                since = time_in(line.time) or since
                if pattern.lower() in line.text.lower():
                    lines.add(shown(line))
        except NotFound as e:
            said.append(str(e))
        return self._page(
            request, "logs.html", job=job, lines=lines, said=said, pattern=pattern, tail=TAIL, most=MOST, since=since
        )

    def ask(self, request: Request) -> Response:
        """The question before an action."""
        action = request.path_params["action"]
        job = view(self._object(request))
        if action not in ACTIONS:
            raise NotFound(f"There is no page {action}.")
        return self._page(request, "ask.html", job=job, action=action, meaning=ACTIONS[action])

    def act(self, request: Request) -> Response:
        """Do it; the form is read before, in :meth:`_answered`."""
        action = request.path_params["action"]
        if action not in ACTIONS:
            raise NotFound(f"There is no action {action}.")
        job = view(self._object(request))
        viewer = viewer_of(request)
        getattr(viewer.client, action)(job.key, namespace=job.namespace)
        return RedirectResponse(viewer.home(job.namespace) if action == "delete" else link(job), 303)

    def ended(self, request: Request) -> Response:
        """The jobs that have ended."""
        return self._page(request, "history.html", **history.ended_jobs(self._history, request.query_params))

    def report(self, request: Request) -> Response:
        """The report of a month."""
        return self._page(request, "history_report.html", **history.month_report(self._history, request.query_params))

    # --- live

    async def changes(self, request: Request) -> Response:
        """Server-sent events: the version of all jobs, or of one, whenever it changes."""
        viewer, names = viewer_of(request), request.path_params

        def scope() -> Scope:
            if names:
                return viewer.scope_with(names["namespace"])
            return viewer.scope(request.query_params.get("namespace", ""))

        try:
            first = (await run_in_threadpool(scope)).live
        except DljobError as e:
            return PlainTextResponse(f"{e}\n", 403)

        async def events() -> AsyncIterator[str]:
            live, shown, quiet, unasked = first, None, 0.0, 0.0
            while not viewer.has_left:
                now = live.version_of(**names) if names else live.version
                if now != shown or quiet >= _HEARTBEAT:
                    yield f"data: {now}\n\n" if now != shown else ": alive\n\n"
                    shown, quiet = now, 0.0
                await asyncio.sleep(_LOOK)
                quiet, unasked = quiet + _LOOK, unasked + _LOOK
                if unasked >= _AGAIN:
                    unasked = 0.0
                    try:
                        live = (await run_in_threadpool(scope)).live
                    except DljobError:
                        break
            yield "event: over\ndata: \n\n"

        return StreamingResponse(events(), media_type="text/event-stream", headers=_UNBUFFERED)

    async def live_logs(self, request: Request) -> Response:
        """Server-sent events: a line of a log each.

        They go on after the time ``since``, or after the last one that a browser whose connection broke has got. An
        empty ``since`` stands for the end of each log, and without any they begin now.
        """
        viewer, names = viewer_of(request), request.path_params
        namespace, key = names["namespace"], f"{names['resource']}/{names['name']}"
        choice = _choice(request)

        def read(stop: Callable[[], bool]) -> Iterator[Line]:
            return map(shown, viewer.client.logs(key, namespace=namespace, choice=choice, follow=True, stop=stop))

        async def events() -> AsyncIterator[str]:
            yield ": begin\n\n"
            over = "ended"
            try:
                async with aclosing(_while_allowed(iterate(read, AHEAD), viewer, namespace)) as allowed:
                    async for line in allowed:
                        if line is None:
                            yield ": alive\n\n"
                        else:
                            id_ = f"id: {line.time}\n" if line.time else ""
                            yield f"{id_}data: {json.dumps({'replica': line.replica, 'text': line.text})}\n\n"
            except Exception as e:  # a browser would begin anew at once, again and again
                over = ""
                if not isinstance(e, DljobError):
                    _log.exception(_UNREADABLE)
                yield f"event: said\ndata: {json.dumps(str(e) if isinstance(e, DljobError) else _UNREADABLE)}\n\n"
            yield f"event: over\ndata: {over}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream", headers=_UNBUFFERED)

    # --- how

    def _answered(self, answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """In a thread; an error becomes a page with its sentence."""

        async def answers(request: Request) -> Response:
            if request.method == "POST":
                given = (await fields(request)).get("key", "")
                if not same(given, viewer_of(request).form_key):
                    return self._page(request, "error.html", 403, sentence="This form is not of this page.")
            try:
                return await run_in_threadpool(answer, request)
            except NotCreated as e:
                return self._page(request, "error.html", 502, sentence=str(e), manifest=structured(e.manifest, "yaml"))
            except DljobError as e:
                status = e.status if isinstance(e, ApiError) else 404 if isinstance(e, NotFound) else 502
                return self._page(request, "error.html", status if 400 <= status < 600 else 502, sentence=str(e))
            except RecursionError:
                return self._page(request, "error.html", 502, sentence="The job is nested too deeply to be shown.")

        return answers

    def _object(self, request: Request) -> Resource:
        names = request.path_params
        return viewer_of(request).client.object(f"{names['resource']}/{names['name']}", namespace=names["namespace"])

    def _page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        viewer = viewer_of(request)
        of_viewer = {
            "title": viewer.title,
            "with_history": bool(self._history),
            "form_key": viewer.form_key,
            "may_leave": viewer.may_leave,
        }
        return HTMLResponse(rendering.text(template, **of_viewer, **values), status)


async def _while_allowed(lines: AsyncGenerator[Line], viewer: Viewer, namespace: str) -> AsyncGenerator[Line | None]:
    """The lines, and ``None`` after each quiet ``_HEARTBEAT``; ends with a sentence once the viewer may not read on."""
    waiting: asyncio.Task[Line] | None = None
    asked = heard = time.monotonic()
    try:
        while True:
            now = time.monotonic()
            if now - asked >= _AGAIN:
                asked = now
                if not await run_in_threadpool(viewer.reads_logs, namespace):
                    raise Refused(f"You may not get pods/log in the namespace {namespace}.")
            if viewer.has_left:
                raise Refused("The session has ended: reload this page.")
            waiting = waiting or asyncio.ensure_future(_next(lines))
            if not (await asyncio.wait({waiting}, timeout=_LOOK))[0]:
                if now - heard >= _HEARTBEAT:
                    heard = now
                    yield None
                continue
            done, waiting, heard = waiting, None, now
            try:
                line = done.result()
            except StopAsyncIteration:
                return
            yield line
    finally:
        if waiting:
            waiting.cancel()
            await asyncio.wait({waiting})
        await lines.aclose()


async def _next(lines: AsyncGenerator[Line]) -> Line:
    """A coroutine, as a task needs it."""
    return await anext(lines)


def _choice(request: Request) -> Choice:
    """From where a stream of logs begins."""
    given = request.query_params.get("since")
    after = time_in(request.headers.get("Last-Event-ID", "")) or time_in(given or "")
    if after:
        return Choice(after=after, tail=MOST)
    return Choice(tail=TAIL if given == "" else 0)


def _version(request: Request) -> str:
    """The resourceVersion of the job of the address; "" where the viewer may not watch it."""
    names = request.path_params
    try:
        live = viewer_of(request).scope_with(names["namespace"]).live
    except DljobError:
        return ""
    return live.version_of(names["namespace"], names["resource"], names["name"])


def _turned(sort: str, name: str) -> str:
    """The order that a click on a column's head asks for."""
    return f"-{name}" if sort == name else name


def _actions(job: JobView) -> Sequence[str]:
    if job.state in FINAL:
        return ("restart", "delete")
    return ("resume" if job.state == SUSPENDED else "suspend", "restart", "delete")


def _yaml(job: Resource, most: int) -> str:
    """The manifest; "" for a job of more bytes, or nested too deeply."""
    metadata = {name: value for name, value in job["metadata"].items() if name != "managedFields"}
    found = {**job, "metadata": metadata}
    try:
        return structured(found, "yaml") if len(json.dumps(found)) <= most else ""
    except RecursionError:
        return ""


def application(history: str = "") -> ASGIApp:
    """The pages, for requests whose viewer a guard has named."""
    app = Starlette(routes=Pages(history).routes)
    app.router.redirect_slashes = False  # behind TLS it would lead to plain HTTP
    return app


def create(client: Client, live: LiveJobs, keys: Keys, hosts: Sequence[str], history: str = "") -> Guard:
    """The application for one user, for requests to one of ``hosts``; ``history`` is the URL of a database, or ""."""
    return Guard(application(history), LocalViewer(client, live, keys.form), keys, hosts)
