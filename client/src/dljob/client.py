"""The Python API: :class:`Client`; :mod:`dljob.aio` has the same for asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from dljob import around, decoding
from dljob import kinds as kinds_
from dljob.api import APPLY, MERGE_PATCH, PAGE, Api, Request, Response, pages
from dljob.around import Around, pod_selectors
from dljob.config import load
from dljob.errors import ApiError, ConnectionFailed, DljobError, NotCreated, NotFound, Refused, TimedOut, sentence
from dljob.kinds import Kind, Resource
from dljob.patience import CONNECTION, Patience
from dljob.view import FINAL, JOB_NAME_LABEL, JOB_UID_LABEL, QUEUE_LABEL, QUEUED, SUSPENDED, JobView, view

if TYPE_CHECKING:
    from dljob.logs import Choice, LogLine
    from dljob.usage import Usages

FIELD_MANAGER = "dljob"
FINISHED = "finished"
"""What :meth:`Client.wait` waits for by default: the job has ended, however."""
_POLL_SECONDS = 0.5
_WATCH_SECONDS = 300
_SHORTEST_WATCH = 1.0
"""Seconds; a watch that ends earlier begins again after a rest."""
_PAGE_OF_WATCH = 100
"""Objects of one answer of a list of :meth:`Client.follow`, whose memory many watches of a process share."""
_Resources = list[Resource]
_Texts = list[str]
_Answers = list[tuple[Kind, Response]]
_Key = tuple[str, str, str]
"""Resource, namespace and name of a job."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a list."""

    items: tuple[JobView, ...]
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each, such as a kind that the user may not list."""

    def __iter__(self) -> Iterator[JobView]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a watch reports."""

    type: str
    """ADDED, MODIFIED or DELETED."""
    job: JobView
    object: Resource
    """As the API server has it; of a job that a new list lacks, what names it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a watch keeps of a job."""

    job: JobView
    version: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """The result of :meth:`Client.submit`."""

    job: JobView
    before: Resource | None
    """The object before, ``None`` for a new job."""
    after: Resource

    @property
    def is_new(self) -> bool:
        return self.before is None


class Client:
    """Reads and steers jobs with the rights of a kubeconfig's user.

    Every method raises :class:`~dljob.errors.DljobError` with a sentence. ``kind`` may be any name that kubectl takes,
    such as ``tfj`` or ``mxjobs.kubeflow.org``; without one a job is searched among all kinds.
    """

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        namespace: str | None = None,
        api: Api | None = None,
    ) -> None:
        self.api = api or Api(load(kubeconfig, context))
        self.namespace = namespace or self.api.config.namespace
        self._versions: dict[str, str] = {}

    # --- read

    def list(
        self,
        kind: str | None = None,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        selector: str = "",
        pods: bool = False,
    ) -> Jobs:
        """The jobs, sorted by namespace, name and kind. ``pods`` reads the pods too, for nodes and newer counts.

        A kind that the cluster lacks has no jobs; one that the user may not list is among the problems, and so are jobs
        that cannot be read. Raises NotFound where the cluster has none of the kinds.
        """
        where = None if all_namespaces else namespace or self.namespace
        found, problems = self._list(_kinds(kind), where, _query(labelSelector=selector))
        every = self._every(_core("pods", where), "pods", where, problems) if pods and found else []
        views = [seen for seen, _ in _seen_with_pods(found, every, problems)]
        return Jobs(tuple(sorted(views, key=lambda job: (job.namespace, job.name, job.resource))), tuple(problems))

    def usage(
        self, kind: str | None = None, *, namespace: str | None = None, all_namespaces: bool = False, selector: str = ""
    ) -> Usages:
        """What the jobs hold, by their pods, and what they use, by metrics.k8s.io.

        What may not be read is among the problems.
        """
        from dljob import usage  # here: few commands need it

        where = None if all_namespaces else namespace or self.namespace
        found, problems = self._list(_kinds(kind), where, _query(labelSelector=selector))
        pods = self._every(_core("pods", where), "pods", where, problems)
        metrics = _path("metrics.k8s.io", "v1beta1", "pods", where)
        absent = "The cluster measures no pods (it has no metrics-server): what jobs use is not shown."
        measured = usage.measured_by_pod(self._every(metrics, "pods.metrics.k8s.io", where, problems, absent))
        items = tuple(
            usage.JobUsage(seen, tuple((usage.node_of(pod), usage.usage_of(pod, measured)) for pod in own))
            for seen, own in _seen_with_pods(found, pods, problems)
        )
        cluster = None
        if all_namespaces and pods:
            nodes = self._every("/api/v1/nodes", "nodes", None, problems)
            cluster = usage.accelerators(nodes, items, pods) if nodes else None
        return usage.Usages(items, cluster, tuple(problems))

    def _every(self, path: str, what: str, where: str | None, problems: _Texts, absent: str = "") -> _Resources:
        """All objects; where they cannot be listed none, and a sentence among ``problems``: ``absent`` for no API."""
        try:
            return list(self._pages(path))
        except ApiError as e:
            problems.append(absent if absent and e.status in (404, 503) else sentence("list", what, where, e))
            return []

    def get(self, name: str, kind: str | None = None, *, namespace: str | None = None, pods: bool = True) -> JobView:
        """A job, with its pods unless the user may not list them. ``name`` may be ``<kind>/<name>``."""
        job = self.object(name, kind, namespace=namespace)
        return view(job, self.pods(job)[0] if pods else ())

    def object(self, name: str, kind: str | None = None, *, namespace: str | None = None) -> Resource:
        """The job as the API server has it. Raises NotFound, and Refused where several kinds have one of that name."""
        if "/" in name:
            kind, _, name = name.partition("/")
        where = namespace or self.namespace
        if not name:
            raise Refused("The name of the job is empty.")
        name = _segment(name)
        candidates = _kinds(kind)
        found: _Resources = []
        denied: _Texts = []
        known = False
        for one, response in self._each(candidates, where, f"/{name}"):
            error = response.error()
            if error is None:
                found.append(_job(response.json()))
            elif error.status == 403:
                denied.append(sentence("get", one.resource, where, error))
            elif error.status != 404:
                raise error
            known = known or error is None or error.status != 404 or error.reason == "NotFound"
        if len(found) > 1:
            names = ", ".join(f"{kinds_.kind_of(job).resource}/{name}" for job in found)
            raise Refused(f"Several jobs have this name: write one of {names}.")
        if found:
            return found[0]
        if denied:
            raise ApiError(403, "Forbidden", denied[0])
        if not known:
            raise NotFound(_no_kind(candidates))
        raise NotFound(f"There is no job {name} in the namespace {where}.")

    def pods(self, job: Resource) -> tuple[Sequence[Resource], str]:
        """The pods of a job, and a sentence where the user may not list them."""
        found = around.read(self.api, job, events=False)
        return found.pods, " ".join(found.warnings)

    def around(self, job: Resource) -> Around:
        """The pods of a job and the Events, read once for all that shows them."""
        return around.read(self.api, job)

    def logs(  # noqa: PLR0913
        self,
        name: str,
        kind: str | None = None,
        *,
        namespace: str | None = None,
        choice: Choice | None = None,
        follow: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[LogLine]:
        """The lines of the logs of all replicas, in the order of their times.

        ``follow`` goes on with lines as they are written, of pods that come and containers that restart too, until the
        job has ended or ``stop()`` is true. ``tell`` gets a sentence for each log that cannot be read. Raises NotFound
        where there is no log yet.
        """
        from dljob.logs import absence, line, read, source  # here: few commands need them
        from dljob.logs import follow as follow_

        wanted = choice or source.Choice()
        job = self.object(name, kind, namespace=namespace)
        pods, denied = self.pods(job)
        if denied:
            raise ApiError(403, "Forbidden", denied)
        found = source.sources(job, pods, wanted)
        there = [one for one in found if one.has_log(wanted)]
        if not there:
            missing = absence.Absence(view(job, pods), pods, found, wanted)
            if not (follow and missing.is_passing):
                raise NotFound(missing.sentence)

        def lines() -> Iterator[LogLine]:
            places: dict[source.Key, read.Place] = {}
            yield from read.read(self.api, there, wanted, tell, places)
            if follow:
                meta = job["metadata"]
                pods_path = _core("pods", meta.get("namespace"))
                watches = {
                    follow_.JOB: Request(_path_of(job, named=False), _one(meta["name"])),
                    **{one: Request(pods_path, {"labelSelector": one}) for one in pod_selectors(job)},
                }
                yield from follow_.Follower(self.api, job, watches, wanted, places, tell, stop).lines()

        yield from line.after(lines(), wanted.after) if wanted.after else lines()

    def watch(  # noqa: PLR0913
        self,
        kind: str | None = None,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        selector: str = "",
        name: str = "",
        timeout: float | None = None,
        stop: Callable[[], bool] = lambda: False,
        tell: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> Iterator[Change]:
        """The jobs that there are, and every change after that, for ``timeout`` seconds or until ``stop()`` is true.

        Ended watches begin again where they were, or with a new list, whose differences are reported. ``tell`` gets a
        sentence for each kind that may not be listed, or may be listed and not be watched.
        """
        where = None if all_namespaces else namespace or self.namespace
        fields = _one(name) if name else {}
        for change in self._watch(_kinds(kind), where, _query(labelSelector=selector, **fields), timeout, stop, tell):
            if change:
                yield change

    def follow(
        self,
        of: Sequence[Kind],
        namespace: str | None,
        *,
        stop: Callable[[], bool],
        tell: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> Iterator[Change | None]:
        """As :meth:`watch`, of these kinds, in all namespaces for ``None``; yields ``None`` after each list.

        ``tell`` gets a sentence for each kind that could not be listed or watched.
        """
        return self._watch(of, namespace, {}, None, stop, tell, _PAGE_OF_WATCH)

    def _watch(  # noqa: PLR0913
        self,
        of: Sequence[Kind],
        where: str | None,
        query: Mapping[str, str | int],
        timeout: float | None,
        stop: Callable[[], bool] = lambda: False,
        tell: Callable[[Sequence[str]], None] = lambda _: None,
        page: int = PAGE,
    ) -> Iterator[Change | None]:
        """Changes, and ``None`` after each list. Raises ApiError where all watches are denied, or one is refused on."""
        patience = Patience(stop, timeout)
        known: dict[_Key, _Known] = {}
        versions: dict[str, str] = {}
        candidates = {one.resource: one for one in of}
        stale = list(candidates.values())
        while not patience.is_over:
            failed = CONNECTION
            error: DljobError | None = None
            try:
                if stale:
                    yield from self._news(stale, where, {**query, "limit": page}, known, versions, tell)
                    yield None
                    stale = []
                requests = {
                    resource: self._watch_of(candidates[resource], where, query, version)
                    for resource, version in versions.items()
                }
                begun = time.monotonic()
                for resource, item in self.api.lines(requests, patience.left, stop):
                    failed = resource
                    if isinstance(item, Response):
                        error = item.error()
                        if error is None and time.monotonic() - begun < _SHORTEST_WATCH:
                            patience.pause()
                        elif error is None:
                            patience.forget(resource)
                        break  # begin all again: the others go on where they are
                    event = decoding.event(item)
                    if event is None:
                        continue
                    type_, found = event
                    if type_ == decoding.ERROR:
                        error = decoding.failure(found)
                        break
                    patience.forget(resource)
                    versions[resource] = _version(found) or versions[resource]
                    if type_ != "BOOKMARK" and (change := _change(type_, found, known)):
                        yield change
            except (ConnectionFailed, ApiError) as e:
                if isinstance(e, ApiError) and e.status != 410:  # of a list that took long
                    raise
                failed, error = CONNECTION, e
            if error:
                if isinstance(error, ApiError) and error.status == 403:  # a list may be allowed where a watch is not
                    versions.pop(failed, None)
                    if not versions:
                        raise error
                    denied = candidates.pop(failed)
                    tell([f"{sentence('watch', denied.resource, where, error)} Its changes are not shown."])
                    continue
                patience.rest(failed, error)
                stale = list(candidates.values()) if failed == CONNECTION else [candidates[failed]]

    def _watch_of(self, kind: Kind, where: str | None, query: Mapping[str, str | int], version: str) -> Request:
        more = _query(watch="1", allowWatchBookmarks="true", timeoutSeconds=_WATCH_SECONDS)
        return Request(self._path(kind, where), {**query, **more, "resourceVersion": version})

    def _news(  # noqa: PLR0913
        self,
        of: Sequence[Kind],
        where: str | None,
        query: Mapping[str, str | int],
        known: dict[_Key, _Known],
        versions: dict[str, str],
        tell: Callable[[Sequence[str]], None],
    ) -> Iterator[Change]:
        """What a list of these kinds shows to have changed since ``known``. Raises ApiError where none is allowed."""
        for one in of:
            versions.pop(one.resource, None)
        first, problems = self._first_pages(of, where, query)
        tell(problems)
        if problems and not first and not versions:
            raise ApiError(403, "Forbidden", problems[0])
        resources = {one.resource for one in of}
        gone = {key for key in known if key[0] in resources}
        for job in self._objects(first, where, query, versions):
            seen = _seen(job)
            if seen is None:
                continue
            key = seen.resource, seen.namespace, seen.name
            gone.discard(key)
            before = known.get(key)
            if before and before.job.uid != seen.uid:
                yield _deleted(before.job)
                before = None
            known[key] = _Known(seen, _version(job))
            if before is None or before.version != known[key].version:
                yield Change("MODIFIED" if before else "ADDED", seen, job)
        for key in gone:
            yield _deleted(known.pop(key).job)

    def wait(  # noqa: PLR0913
        self,
        name: str,
        kind: str | None = None,
        *,
        namespace: str | None = None,
        until: str | Sequence[str] = FINISHED,
        timeout: float | None = None,
        progress: Callable[[JobView], None] | None = None,
    ) -> JobView:
        """Wait until the job is in one of the states ``until``. Raises TimedOut after ``timeout`` seconds.

        Raises Refused once the job has ended in another state, and NotFound when it is deleted. ``progress`` gets the
        job at the beginning and after each change.
        """
        wanted = FINAL if until == FINISHED else (until,) if isinstance(until, str) else tuple(until)
        job = self.object(name, kind, namespace=namespace)
        meta = job["metadata"]
        last = None
        changes = self._watch([kinds_.kind_of(job)], meta["namespace"], _one(meta["name"]), timeout)
        for change in changes:
            if change is None and last is None:
                raise NotFound(f"The job {meta['name']} was deleted.")
            if change is None:
                continue
            if change.job.uid != meta["uid"] or change.type == "DELETED":
                raise NotFound(f"The job {change.job.key} was deleted.")
            last = change.job
            if progress:
                progress(last)
            if last.state in wanted:
                return last
            if last.state in FINAL:
                raise Refused(f"The job {last.key} has ended as {last.state}, and will not be {' or '.join(wanted)}.")
        state = last.state if last else "unknown"
        raise TimedOut(f"The job {meta['name']} is not {' or '.join(wanted)} after {timeout:g} s: it is {state}.")

    # --- steer

    def suspend(self, name: str, kind: str | None = None, *, namespace: str | None = None) -> JobView:
        """Suspend a job: its pods are deleted, and it starts anew when it is resumed. Raises Refused."""
        return self._set_suspend(self.object(name, kind, namespace=namespace), True)

    def resume(self, name: str, kind: str | None = None, *, namespace: str | None = None) -> JobView:
        """Let a suspended job run. Raises Refused."""
        return self._set_suspend(self.object(name, kind, namespace=namespace), False)

    def restart(
        self, name: str, kind: str | None = None, *, namespace: str | None = None, timeout: float = 300
    ) -> JobView:
        """Start all replicas anew: a job that has not ended is suspended and resumed, an ended one created again.

        Raises TimedOut where its pods are not gone after ``timeout`` seconds. An ended job is deleted only if the API
        server would create it. Raises NotCreated, with the manifest, where it was deleted and then cannot be created.
        """
        job = self.object(name, kind, namespace=namespace)
        before = view(job)
        if before.state not in FINAL:
            if before.state not in (SUSPENDED, QUEUED):
                self._set_suspend(job, True)
                self._wait_without_pods(job, timeout)
            return self._set_suspend(self.object(before.key, namespace=before.namespace), False)
        return self._create_again(job, before.key, timeout)

    def delete(self, name: str, kind: str | None = None, *, namespace: str | None = None) -> JobView:
        """Delete a job and, with it, its pods; they may terminate for a while."""
        job = self.object(name, kind, namespace=namespace)
        self._delete(job)
        return view(job)

    def submit(
        self, manifest: Resource, *, namespace: str | None = None, dry_run: bool = False, force: bool = False
    ) -> Submitted:
        """Create a job, or apply the manifest to the one of its name (server-side apply).

        ``dry_run`` changes nothing, but everything is checked. ``force`` takes over fields of other programs.
        Raises ApiError where the API server refuses the manifest.
        """
        kind = kinds_.kind_of(manifest)
        meta = dict(manifest.get("metadata") or {})
        meta["namespace"] = meta.get("namespace") or namespace or self.namespace
        job = {**manifest, "metadata": meta}
        query = _query(fieldManager=FIELD_MANAGER, fieldValidation="Strict", dryRun="All" if dry_run else "")
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise Refused(f"The manifest of a {kind.kind} has no metadata.name.")
            made = _job(self.api.send(Request(_path_of(job, named=False), query, "POST", job)))
            return Submitted(view(made), None, made)
        path = _path_of(job)
        before = self.api.send_all([Request(path)])[0]
        error = before.error()
        if error and error.status not in (403, 404):
            raise error
        if error and error.status == 404 and error.reason != "NotFound":
            raise NotFound(f"The cluster has no kind {kind.resource} in the version {job.get('apiVersion')}.")
        query |= {"force": "true"} if force else {}
        after = _job(self.api.send(Request(path, query, "PATCH", job, APPLY)))
        return Submitted(view(after), None if error else _job(before.json()), after)

    # --- how

    def _set_suspend(self, job: Resource, value: bool) -> JobView:
        now = view(job)
        if now.state in FINAL:
            raise Refused(f"The job {now.key} has ended ({now.state}): restart it instead.")
        if not isinstance(job.get("spec"), Mapping):
            raise Refused(f"A {now.kind} of {now.api_version} has no field for it: delete the job instead.")
        if QUEUE_LABEL in now.labels:
            raise Refused(
                f"Kueue decides when {now.key} runs (queue {now.queue}): set spec.active of its Workload instead."
            )
        # of DLJobs and of every other kind alike
        body = {"spec": {"runPolicy": {"suspend": value}}}
        query = _query(fieldManager=FIELD_MANAGER)
        after = _job(self.api.send(Request(_path_of(job), query, "PATCH", body, MERGE_PATCH)))
        spec = after.get("spec")
        policy = spec.get("runPolicy") if isinstance(spec, Mapping) else None
        if ((policy.get("suspend") if isinstance(policy, Mapping) else None) or False) is not value:
            raise Refused(f"This cluster's {now.resource} cannot be suspended: delete the job instead.")
        return view(after)

    def _create_again(self, job: Resource, key: str, timeout: float) -> JobView:
        fresh = _without_history(job)
        path = _path_of(job, named=False)
        query = _query(fieldManager=FIELD_MANAGER)
        # rights and admission are checked before whether the name is taken
        error = self.api.send_all([Request(path, {**query, "dryRun": "All"}, "POST", fresh)])[0].error()
        if error and not (error.status == 409 and error.reason == "AlreadyExists"):
            why = f"The job {key} was not deleted, since it could not be created again: {error}"
            raise ApiError(error.status, error.reason, why, error.details)
        try:
            self._delete(job)
        except (ConnectionFailed, KeyboardInterrupt) as e:
            raise NotCreated(f"The job {key} may be deleted, and was not created again: {_why(e)}", fresh) from e
        try:
            self._wait_until_gone(job, timeout)
            return view(_job(self.api.send(Request(path, query, "POST", fresh))))
        except (Exception, KeyboardInterrupt) as e:
            raise NotCreated(f"The job {key} was deleted, and could not be created again: {_why(e)}", fresh) from e

    def _delete(self, job: Resource) -> None:
        body = {"preconditions": {"uid": job["metadata"]["uid"]}, "propagationPolicy": "Background"}
        self.api.send(Request(_path_of(job), {}, "DELETE", body))

    def _wait_without_pods(self, job: Resource, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            pods, denied = self.pods(job)
            active = [pod for pod in pods if (pod.get("status") or {}).get("phase") in ("Pending", "Running")]
            if denied:
                raise Refused(f"{denied} Resume the job once its pods are gone.")
            if not active:
                return
            time.sleep(_POLL_SECONDS)
        raise TimedOut(f"The pods of {job['metadata']['name']} are not gone after {timeout:g} s; the job is suspended.")

    def _wait_until_gone(self, job: Resource, timeout: float) -> None:
        meta = job["metadata"]
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with suppress(ConnectionFailed):
                response = self.api.send_all([Request(_path_of(job))])[0]
                error = response.error()
                if error and error.status in (401, 403):
                    raise error
                is_other = not error and decoding.metadata(response.json()).get("uid") != meta["uid"]
                if is_other or response.status == 404:
                    return
            time.sleep(_POLL_SECONDS)
        raise TimedOut(f"The old job {meta['name']} is not gone after {timeout:g} s: a finalizer may keep it.")

    def _path(self, kind: Kind, namespace: str | None, suffix: str = "") -> str:
        version = self._versions.get(kind.resource, kind.versions[0])
        return _path(kind.group, version, kind.plural, namespace) + suffix

    def _each(
        self,
        candidates: Sequence[Kind],
        namespace: str | None,
        suffix: str = "",
        query: Mapping[str, str | int] | None = None,
    ) -> Iterator[tuple[Kind, Response]]:
        """The answers for each kind, in the first of its versions that the cluster serves."""
        left = list(candidates)
        while left:
            responses = self.api.send_all([Request(self._path(one, namespace, suffix), query or {}) for one in left])
            again = []
            for one, response in zip(left, responses, strict=True):
                error = response.error() if response.status == 404 else None
                version = self._versions.get(one.resource, one.versions[0])
                later = one.versions[one.versions.index(version) + 1 :]
                if error and error.reason != "NotFound" and later:
                    self._versions[one.resource] = later[0]
                    again.append(one)
                else:
                    yield one, response
            left = again

    def _list(
        self, candidates: Sequence[Kind], namespace: str | None, query: Mapping[str, str | int]
    ) -> tuple[_Resources, _Texts]:
        """The objects of all kinds, and the problems."""
        first, problems = self._first_pages(candidates, namespace, {**query, "limit": PAGE})
        return list(self._objects(first, namespace, query, {})), problems

    def _first_pages(
        self, candidates: Sequence[Kind], namespace: str | None, query: Mapping[str, str | int]
    ) -> tuple[_Answers, _Texts]:
        """The first answer of the list of each kind, and the problems. Kinds that the cluster lacks are left out."""
        first: _Answers = []
        problems: _Texts = []
        for kind, response in self._each(candidates, namespace, query=query):
            error = response.error()
            if error and error.status == 403:
                problems.append(sentence("list", kind.resource, namespace, error))
            elif error and error.status != 404:
                raise error
            elif not error:
                first.append((kind, response))
        if not first and not problems:
            raise NotFound(_no_kind(candidates))
        if not first and len(candidates) == len(problems) == 1:
            raise ApiError(403, "Forbidden", problems[0])
        return first, problems

    def _objects(
        self,
        first: _Answers,
        namespace: str | None,
        query: Mapping[str, str | int],
        versions: dict[str, str],
    ) -> Iterator[Resource]:
        """The objects of lists, page by page; ``versions`` gets that of each list by its kind.

        An empty one stands for what is no object. ``first`` is emptied.
        """
        while first:
            kind, response = first.pop(0)
            page = response.json()
            if not isinstance(page.get("metadata"), Mapping):
                raise decoding.unreadable(f"something else than a list of {kind.resource}")
            versions[kind.resource] = str(decoding.metadata(page).get("resourceVersion", ""))
            for one in pages(self.api, self._path(kind, namespace), query, page):
                found = decoding.items(one)
                yield from found
                yield from [{}] * (len(one.get("items") or ()) - len(found))

    def _pages(self, path: str) -> Iterator[Resource]:
        for one in pages(self.api, path):
            yield from decoding.items(one)


# --- pure


def _no_kind(candidates: Sequence[Kind]) -> str:
    names = candidates[0].resource if len(candidates) == 1 else "any kind of training job"
    return f"The cluster does not have {names}: no operator is installed, or this is the wrong context."


def _kinds(text: str | None) -> Sequence[Kind]:
    try:
        return kinds_.named(text) if text else kinds_.ALL
    except kinds_.UnknownKind as e:
        raise Refused(f"{e}.") from None


def _segment(name: str) -> str:
    """A name as part of a path, where it must not lead elsewhere. Raises Refused."""
    if name in (".", "..") or "/" in name:
        raise Refused(f"{name} is no name of a Kubernetes object.")
    return quote(name, safe="")


def _path(group: str, version: str, plural: str, namespace: str | None) -> str:
    return f"/apis/{group}/{version}" + (f"/namespaces/{_segment(namespace)}" if namespace else "") + f"/{plural}"


def _path_of(job: Resource, *, named: bool = True) -> str:
    group, _, version = str(job["apiVersion"]).partition("/")
    path = _path(group, version, kinds_.kind_of(job).plural, job["metadata"]["namespace"])
    return f"{path}/{_segment(job['metadata']['name'])}" if named else path


def _core(plural: str, namespace: str | None) -> str:
    return f"/api/v1/namespaces/{_segment(namespace)}/{plural}" if namespace else f"/api/v1/{plural}"


def _query(**given: str | int) -> dict[str, str | int]:
    """Without what is empty."""
    return {name: value for name, value in given.items() if value != ""}


def _one(name: str) -> dict[str, str | int]:
    """The query for the object of this name."""
    return {"fieldSelector": f"metadata.name={name}"}


def _owner_key(pod: Resource) -> tuple[str, str]:
    """By which a job's pods are found among many: its uid, or name for a pod of a launcher's batch Job."""
    meta = pod.get("metadata") or {}
    labels = meta.get("labels") or {}
    if labels.get(JOB_UID_LABEL):
        return "", labels[JOB_UID_LABEL]
    owners = meta.get("ownerReferences") or ()
    controller: Resource = next((one for one in owners if one.get("controller")), {})
    if controller.get("kind") == "Job" and labels.get(JOB_NAME_LABEL):
        return str(meta.get("namespace")), labels[JOB_NAME_LABEL]
    return "", str(controller.get("uid"))


def _seen_with_pods(
    jobs: Sequence[Resource], pods: Iterable[Resource], problems: _Texts
) -> list[tuple[JobView, list[Resource]]]:
    """The views of jobs with their pods; ``problems`` gets a sentence on those that cannot be read."""
    own: dict[tuple[str, str], _Resources] = {}
    for pod in pods:
        own.setdefault(_owner_key(pod), []).append(pod)
    now = datetime.now(UTC)
    with_pods = [(job, _pods_of(job, own)) for job in jobs]
    found = [(seen, of_job) for job, of_job in with_pods if (seen := _seen(job, of_job, now))]
    if left_out := len(with_pods) - len(found):
        problems.append(f"Left out, since the API server's answer cannot be read: {left_out} jobs.")
    return found


def _pods_of(job: Resource, own: Mapping[tuple[str, str], list[Resource]]) -> list[Resource]:
    meta = decoding.metadata(job)
    return own.get(("", str(meta.get("uid"))), []) + own.get((str(meta.get("namespace")), str(meta.get("name"))), [])


def _seen(job: Resource, pods: Iterable[Resource] = (), now: datetime | None = None) -> JobView | None:
    """The view; ``None`` for what is no job, or is nested too deeply to be shown."""
    try:
        found = view(job, pods, now)
    except (kinds_.UnknownKind, RecursionError):
        return None
    return found if found.name else None


def _job(answer: Resource) -> Resource:
    """The answer, if it is a job. Raises ApiError."""
    meta = decoding.metadata(answer)
    if not all(isinstance(meta.get(name), str) for name in ("name", "namespace", "uid")) or _seen(answer) is None:
        raise decoding.unreadable("something else than a job")
    return answer


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, DljobError) else f"{type(error).__name__}."


def _version(job: Resource) -> str:
    return str(decoding.metadata(job).get("resourceVersion", ""))


def _change(type_: str, job: Resource, known: dict[_Key, _Known]) -> Change | None:
    """A change that a watch reports; ``None`` for what cannot be shown."""
    seen = _seen(job)
    if seen is None:
        return None
    key = seen.resource, seen.namespace, seen.name
    if type_ == "DELETED":
        known.pop(key, None)
    else:
        known[key] = _Known(seen, _version(job))
    return Change(type_, seen, job)


def _deleted(job: JobView) -> Change:
    metadata = {"namespace": job.namespace, "name": job.name, "uid": job.uid}
    return Change("DELETED", job, {"apiVersion": job.api_version, "kind": job.kind, "metadata": metadata})


def _without_history(job: Resource) -> Resource:
    """The manifest of an ended job: what its user has written, to create it again."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {name: value for name, value in job["metadata"].items() if name in kept}
    return {**{name: value for name, value in job.items() if name != "status"}, "metadata": metadata}
