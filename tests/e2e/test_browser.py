"""`dljob ui` in a headless Chromium, with real jobs: by mouse, by keys, on a phone, and without JavaScript.

With DLJOB_PICTURES=1 it writes the pictures of the documents, docs/ui-*.png.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import cache_dir_from
from devtools.testbed.offline.browser import Browser, browser
from support import pictures
from support.chromium import DESKTOP, PHONE, Chromium, Page, chromium
from support.live_jobs import Cluster, Job, Resource, config_of_user, for_own_operator, v1_job
from support.web_page import serving, serving_in_cluster

pytest.importorskip("starlette")
TALKS = "n=0; while true; do n=$((n+1)); echo step $n of $(hostname); sleep 0.5; done"
TOO_WIDE = f"""Array.from(document.querySelectorAll("main *, header"))
    .filter(one => one.getBoundingClientRect().right > {PHONE[0]} && !one.parentElement.closest(".scroll, pre"))
    .map(one => one.outerHTML.slice(0, 200))"""
"""Elements that a phone would not show whole; tables and logs scroll by themselves."""
LARGEST = 120_000
"""Bytes of a picture."""


@dataclass(frozen=True)
class Site:
    """The page, with two jobs in a namespace: `digits`, which runs, and `waits`, which no node can take."""

    browser: Chromium
    digits: Job
    address: str
    axe: Path

    def job(self, name: str = "digits") -> str:
        return f"{self.address}/jobs/{self.namespace}/mxjobs.kubeflow.org/{name}"

    @property
    def namespace(self) -> str:
        return self.digits.cluster.namespace

    @property
    def overview(self) -> str:
        return f"{self.address}/?q=ns:{self.namespace}"

    @contextmanager
    def page(
        self, address: str, *, may: Callable[[str], bool] = lambda _: False, phone: bool = False, **how: Any
    ) -> Iterator[Page]:
        """A page that asks no other host, and about which the browser has nothing to complain but what it ``may``."""
        with self.browser.page(size=PHONE if phone else DESKTOP, **how) as page:
            page.go(address)
            yield page
            assert page.hosts == {urlsplit(address).netloc}
            assert [one for one in page.complaints if not may(one)] == []


@pytest.fixture(scope="module")
def program() -> Browser:
    try:
        return browser(cache_dir_from(os.environ))
    except ClusterError as error:
        pytest.skip(f"no browser can be had here: {error}")


@pytest.fixture(scope="module")
def site(
    program: Browser,
    cluster: Path,
    module_namespace: str,
    operator_log: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    here = Cluster(cluster, module_namespace)
    digits = here.create(v1_job("digits", worker=(2, TALKS)))
    waits = v1_job("waits")
    pod = waits["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["nodeSelector"] = {"disk": "fast"}
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 4}}
    here.create(waits)
    digits.wait_running()
    with ExitStack() as stack:
        address, _ = stack.enter_context(serving(cluster))
        started = stack.enter_context(chromium(program, tmp_path_factory.mktemp("profile")))
        with started.page() as page:
            page.go(address)  # the cookie is for all pages from now on
        yield Site(started, digits, address.partition("/login")[0], program.axe)


def names(page: Page) -> list[str]:
    return list(page.see("Array.from(document.querySelectorAll('td a'), one => one.innerText)"))


def test_the_overview_by_keys(site: Site) -> None:
    with site.page(site.overview) as page:
        page.until_text("4/4")
        assert names(page) == ["digits", "waits"]
        page.tab_to("#q")
        page.press("End", *" name:digits")
        page.until_text("1 job")
        page.until("location.search.endsWith('name%3Adigits')")
        assert names(page) == ["digits"]
        page.tab_to("td a")
        page.see("document.querySelector('td a').dataset.old = 'yes'")
        site.digits.patch({"metadata": {"annotations": {"changed": "yes"}}})
        page.until("!document.querySelector('td a').dataset.old")
        page.press("Enter")  # the focus stays while the table changes
        page.until(f"location.href === '{site.job()}'")
        page.until_text("Nothing is wrong: 4/4 replicas are ready.")
        page.tab_to("summary")
        assert "kind: MXJob" not in page.text()
        page.press("Enter")
        page.until_text("kind: MXJob")
        assert "managedFields" not in page.text()


def test_a_job(site: Site) -> None:
    with site.page(site.job()) as page:
        assert page.see("document.querySelectorAll('rect.running[height=\"20\"]').length") == 4
        assert page.see("document.querySelector('.bars rect.running').getBoundingClientRect().width") > 1
        page.until_text("SuccessfulCreatePod")
    with site.page(site.job("waits")) as page:
        page.until_text("node", ".cause")
        page.until_text("disk=fast", ".cause")


def test_the_logs_grow_and_are_searched(site: Site) -> None:
    with site.page(f"{site.job()}/logs") as page:
        page.until_text("step 1 of digits-worker-0", "#log")
        last = max(int(line.split()[2]) for line in page.text("#log").splitlines() if " step " in line)
        page.until_text(f"step {last + 3} of digits-worker-0", "#log")
        page.click("#q")
        page.press(*"worker-1", "Enter")
        page.until("location.search === '?q=worker-1'")
        page.until_text("step 1 of digits-worker-1", "#log")
        last = max(int(line.split()[2]) for line in page.text("#log").splitlines() if " step " in line)
        page.until_text(f"step {last + 3} of digits-worker-1", "#log")
        assert "digits-worker-0" not in page.text("#log")


def test_an_action_asks_first(site: Site) -> None:
    job = site.digits.cluster.create(v1_job("other"))
    job.wait_running()
    with site.page(site.job("other")) as page:
        page.click("a[href$='/suspend']")
        page.until_text("Suspend other?")
        page.click("form .button")
        page.until_text("Replicas")
        assert not job.get()["spec"].get("runPolicy", {}).get("suspend")
        page.click("a[href$='/suspend']")
        page.until_text("Suspend other?")
        page.click("form button")
        page.until_text("Suspended", ".state")
        page.until_text("Resume")
        job.delete()
        job.wait_deleted()
        page.go(site.overview)
        page.until("!Array.from(document.querySelectorAll('td a')).some(one => one.innerText === 'other')")


PAGES = ("/", "", "waits", "/logs", "/delete", "none")


def address(site: Site, which: str) -> str:
    """Of the overview, a page of `digits`, or another job."""
    if which == "/":
        return site.overview
    return f"{site.job()}{which}" if which.startswith("/") or not which else site.job(which)


def missing(complaint: str) -> bool:
    """The console names each page that is answered with an error."""
    return "404" in complaint and complaint.endswith("/none")


def test_anybody_can_read_it(site: Site) -> None:
    """axe-core finds nothing in the light and in the dark, and a phone shows each page without scrolling aside."""
    for which in PAGES:
        with site.page(address(site, which), may=missing) as page:
            page.until("document.querySelector('h1') !== null")
            if which == "":
                page.click("summary")
            for dark in (False, True):
                page.scheme(dark=dark)
                assert page.violations(site.axe) == [], f"{which} {dark=}"
            grounds = page.see("getComputedStyle(document.body).backgroundColor")
            page.scheme(dark=False)
            assert grounds != page.see("getComputedStyle(document.body).backgroundColor")
        with site.page(address(site, which), may=missing, phone=True) as page:
            page.until("document.querySelector('h1') !== null")
            assert page.see(TOO_WIDE) == [], which
            assert page.see("document.scrollingElement.scrollWidth") <= PHONE[0], which
            assert page.violations(site.axe) == [], which


def test_without_javascript(site: Site) -> None:
    with site.page(site.overview, script=False) as page:
        assert "4/4" in page.text()
        page.tab_to("#q")
        page.press("End", *" name:waits", "Enter")
        page.until_text("1 job")
        assert names(page) == ["waits"]
        page.click("th a[href*='sort=name']")
        page.until("location.search.includes('sort=name') && document.querySelector('td a') !== null")
        assert names(page) == ["waits"]
        page.click("td a")
        page.until_text("disk=fast", ".cause")
        page.click("summary")
        page.until_text("kind: MXJob")
        page.go(site.job())
        page.click("a[href$='/logs']")
        page.until_text("step 1 of digits-worker-0", "#log")
        page.click("#q")
        page.press(*"worker-1", "Enter")
        page.until("location.search === '?q=worker-1'")
        assert "digits-worker-0" not in page.text("#log")
        page.go(f"{site.job()}/suspend")
        page.until_text("Suspend digits?")
        assert not [one for one in page.requests if "live" in one]


@dataclass(frozen=True)
class Tenant:
    """A user who may see the jobs of one namespace."""

    home: Cluster
    token: str
    job: str

    @property
    def page(self) -> str:
        return f"/jobs/{self.home.namespace}/mxjobs.kubeflow.org/{self.job}"

    @property
    def overview(self) -> str:
        return f"/?namespace={self.home.namespace}"


@pytest.fixture
def tenants(site: Site) -> Iterator[tuple[Tenant, Tenant]]:
    """Of the namespace of `digits`, and of another one with the job `letters`."""
    first = site.digits.cluster
    second = Cluster(first.kubeconfig, f"{first.namespace}-b")
    second.core.create_namespace({"metadata": {"name": second.namespace}})
    try:
        second.create(for_own_operator(v1_job("letters")))
        made = [
            Tenant(home, config_of_user(home, "reader", ["get", "list", "watch"])["users"][0]["user"]["token"], job)
            for home, job in ((first, "digits"), (second, "letters"))
        ]
        yield made[0], made[1]
    finally:
        second.core.delete_namespace(second.namespace)


def denied(complaint: str) -> bool:
    """The console names each answer without a login, or without a right."""
    return "401" in complaint or "403" in complaint


def test_two_tenants(site: Site, tenants: tuple[Tenant, Tenant], tmp_path: Path) -> None:
    """Each logs in with a token, in the page of the cluster, and sees its own jobs until it logs out."""
    with serving_in_cluster(site.digits.cluster.kubeconfig, tmp_path) as address:
        for own, other in (tenants, tenants[::-1]):
            with site.browser.user() as user, site.page(address + own.page, may=denied, user=user) as page:
                page.tab_to("#token")
                page.type("wrong")
                page.press("Enter")
                page.until_text("does not accept this token", "[role=alert]")
                page.tab_to("#token")
                page.type(own.token)
                page.press("Enter")
                page.until_text(own.job, "h1")
                assert page.see("location.pathname + location.search") == own.page
                assert f"system:serviceaccount:{own.home.namespace}:reader" in page.text("header")
                page.go(address + own.overview)
                page.until("document.querySelectorAll('td a').length > 0")
                assert own.job in names(page) and other.job not in names(page)
                for forbidden in (other.page, other.overview, "/"):
                    page.go(address + forbidden)
                    page.until_text("You may not")
                    assert other.job not in names(page)
                page.go(address + own.overview)
                page.click("header button")
                page.until("location.pathname === '/login'")
                page.go(address + own.page)
                page.until_text("Log in", "h1")


def test_anybody_can_log_in(site: Site, tmp_path: Path) -> None:
    with serving_in_cluster(site.digits.cluster.kubeconfig, tmp_path) as address:
        for phone in (False, True):
            with site.browser.user() as user, site.page(address, may=denied, phone=phone, user=user) as page:
                for told in (False, True):
                    for dark in (False, True):
                        page.scheme(dark=dark)
                        assert page.violations(site.axe) == [], f"{phone=} {told=} {dark=}"
                    assert not phone or page.see(TOO_WIDE) == []
                    page.tab_to("#token")
                    page.type("wrong")
                    page.press("Enter")
                    page.until_text("does not accept this token", "[role=alert]")


def with_gpus(manifest: Resource, count: int, user: str, type_: str = "Worker") -> Resource:
    """The job of a user, whose replicas of a type ask for GPUs, which no node here has."""
    manifest["metadata"]["labels"] = {"dljob.operator/user": user}
    if count:
        (container,) = manifest["spec"]["mxReplicaSpecs"][type_]["template"]["spec"]["containers"]
        container["resources"] = {"limits": {"nvidia.com/gpu": count}}
    return manifest


@contextmanager
def shown_jobs(cluster: Path) -> Iterator[str]:
    """Jobs of all states in two namespaces, whose names begin with what is returned."""
    vision, speech = Cluster(cluster, "team-vision"), Cluster(cluster, "team-speech")
    for one in (vision, speech):
        one.core.create_namespace({"metadata": {"name": one.namespace}})
    try:
        digits = vision.create(with_gpus(v1_job("digits", worker=(2, TALKS)), 8, "research", "Server"))
        faces = vision.create(with_gpus(v1_job("faces", worker=(3, TALKS)), 0, "research"))
        voices = speech.create(with_gpus(v1_job("voices", worker="exit 0", scheduler="exit 0"), 0, "nightly"))
        words = speech.create(with_gpus(v1_job("words", worker="echo no such file; exit 3"), 0, "nightly"))
        policy = {"suspend": True}
        vowels = speech.create(with_gpus(v1_job("vowels", run_policy=policy, worker=(2, TALKS)), 2, "research"))
        speech.create(with_gpus(v1_job("letters", worker=(2, TALKS)), 2, "research"))
        faces.wait_running()
        for ended in (voices, words):
            ended.wait_end()
        vowels.wait(lambda status: bool(status.get("conditions")), "its suspension")
        running = {"Running", "Succeeded"}
        vision.wait_pods(
            digits.uid, lambda pods: [p["status"].get("phase") in running for p in pods].count(True) == 3, "3"
        )
        yield "team-"
    finally:
        for one in (vision, speech):
            one.core.delete_namespace(one.namespace)


def test_pictures(site: Site, cluster: Path, tmp_path: Path) -> None:
    """They are small; those of the documents show jobs of names that stay."""
    with ExitStack() as stack:
        overview, job = site.overview, site.job()
        if pictures.ASKED:
            start = stack.enter_context(shown_jobs(cluster))
            overview = f"{site.address}/?q=ns:{start}"
            job = f"{site.address}/jobs/{start}vision/mxjobs.kubeflow.org/digits"
        for name, address_, height in (("overview", overview, 640), ("job", job, 1045)):
            with site.page(address_) as page:
                page.resize((1100, height))
                picture = page.picture()
            assert picture.startswith(b"\x89PNG") and len(picture) < LARGEST
            (pictures.folder(tmp_path) / f"ui-{name}.png").write_bytes(picture)
