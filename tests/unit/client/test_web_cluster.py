"""The web page in the cluster: many users, each with a token, at an API server that knows what each may do."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx2")
import httpx2 as httpx
import uvicorn
from dljob import cli
from dljob.api import Api
from dljob.client import Client
from dljob.config import Config, Credentials
from dljob.errors import ApiError
from dljob.logs.progress import ANNOTATION
from dljob.web import app as app_
from dljob.web import connection, limits, live, serve_cluster
from dljob.web import hub as hub_
from dljob.web import sessions as sessions_
from dljob.web.gate import Gate
from dljob.web.hub import Hub
from dljob.web.sessions import Sessions
from starlette.testclient import TestClient
from support.fake_api_server import failure
from support.page_thread import page_thread
from support.polling import until
from support.scripted_server import Exchange, scripted

from .conftest import Cluster

HOST = "jobs.example.com"
ORIGIN = {"Origin": f"https://{HOST}"}
ADA, BOB, EVE, ROOT, ROOT_2 = (f"token-of-{name}-0123456789" for name in ("ada", "bob", "eve", "root", "root-2"))
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
JOB_OF_ADA = "/jobs/team/pytorchjobs.kubeflow.org/a"
JOB_OF_BOB = "/jobs/other/pytorchjobs.kubeflow.org/b"


@dataclass
class User:
    """A user, who may do all in these namespaces but what is denied."""

    name: str
    namespaces: set[str]
    """With "" the cluster."""
    denied: set[str] = field(default_factory=set)
    """``<verb> <plural>``."""

    def may(self, verb: str, plural: str, namespace: str) -> bool:
        return bool({"", namespace} & self.namespaces) and f"{verb} {plural}" not in self.denied


@dataclass
class Tenants:
    """The API server."""

    cluster: Cluster
    users: dict[str, User]
    """By token."""
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """Token, verb and path."""
    url: str = ""

    def respond(self, exchange: Exchange) -> None:
        token = exchange.token.removeprefix("Bearer ")
        user = self.users.get(token)
        if user is None:
            self.seen.append((token, "unauthorized", exchange.path))
            exchange.answer(failure(401, "Unauthorized", "Unauthorized").content, 401)
        elif exchange.path.endswith("/selfsubjectreviews"):
            self.seen.append((token, "review", exchange.path))
            exchange.answer({"status": {"userInfo": {"username": user.name}}}, 201)
        elif exchange.path.endswith("/selfsubjectaccessreviews"):
            asked = exchange.body["spec"]["resourceAttributes"]
            self.seen.append((token, "access", f"{asked['namespace']}/{asked['resource']}"))
            allowed = user.may(asked["verb"], asked["resource"], asked["namespace"])
            exchange.answer({"status": {"allowed": allowed}}, 201)
        else:
            self._job_or_pod(exchange, token, user)

    def _job_or_pod(self, exchange: Exchange, token: str, user: User) -> None:
        match = re.fullmatch(
            r"/apis?(?:/[\w.-]+)?/v\w+(?:/namespaces/(?P<ns>[^/]+))?/(?P<plural>\w+)(?P<name>/.*)?", exchange.path
        )
        assert match, exchange.path
        verb = VERBS[exchange.method]
        if verb == "get" and not match["name"]:
            verb = "watch" if exchange.query.get("watch") else "list"
        self.seen.append((token, verb, exchange.path))
        if user.may(verb, match["plural"], match["ns"] or ""):
            self.cluster.respond(exchange)
        else:
            sentence = f'{match["plural"]} is forbidden: User "{user.name}" cannot {verb}'
            exchange.answer(failure(403, "Forbidden", sentence).content, 403)

    def config(self, token: str) -> Config:
        return Config(server=self.url, credentials=lambda: Credentials(token=token))

    def of(self, verb: str, plural: str = "pytorchjobs") -> list[str]:
        """Whose tokens such requests had, in their order."""
        return [token for token, done, path in self.seen if done == verb and path.endswith(f"/{plural}")]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.now


@dataclass
class Site:
    tenants: Tenants
    sessions: Sessions
    hub: Hub
    gate: Gate
    clock: Clock

    @property
    def cluster(self) -> Cluster:
        return self.tenants.cluster

    def browser(self, token: str = "", host: str = HOST) -> TestClient:
        """A browser; with a token, that of a proxy."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return TestClient(self.gate, base_url=f"https://{host}", headers=headers, follow_redirects=False)

    def logged_in(self, token: str) -> TestClient:
        browser = self.browser()
        response = log_in(browser, token)
        assert response.status_code == 303, response.text
        return browser


def log_in(browser: TestClient, token: str, **more: str) -> httpx.Response:
    (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get("/login").text)
    return browser.post("/login", data={"key": key, "to": "/", "token": token, **more}, headers=ORIGIN)


def form_key(browser: TestClient, page: str) -> str:
    return str(re.findall(r'name="key" value="([^"]+)"', browser.get(page).text)[-1])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(live, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(app_, "_LOOK", 0.01)
    monkeypatch.setattr(app_, "_AGAIN", 0.05)
    monkeypatch.setattr(hub_, "_PAUSE", 0.01)
    cluster = Cluster(tmp_path / "none")
    users = {
        ADA: User("ada", {"team"}),
        BOB: User("bob", {"other"}),
        EVE: User("eve", set()),
        ROOT: User("root", {""}),
        ROOT_2: User("root-2", {""}),
    }
    tenants = Tenants(cluster, users)
    with scripted(tenants.respond) as server:
        tenants.url = server.url
        clock = Clock()
        sessions = Sessions(tenants.config, clock)
        hub = Hub(sessions)
        cluster.job("a")
        cluster.job("b", metadata={"namespace": "other"})
        yield Site(tenants, sessions, hub, Gate(app_.application(), sessions, hub, [HOST]), clock)
        hub.close()


# --- without a token


@pytest.mark.parametrize("path", ["/", "/?namespace=team", JOB_OF_ADA, f"{JOB_OF_ADA}/logs", "/live", "/none"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic YWRhOmFkYQ=="},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {ADA} x"},
        {"Cookie": "__Host-dljob=wrong"},
        {"Cookie": f"__Host-dljob={ADA}"},
        {"X-Forwarded-User": "root", "X-Remote-User": "root", "Impersonate-User": "root"},
    ],
)
def test_nothing_is_shown_without_a_token(site: Site, path: str, headers: dict[str, str]) -> None:
    response = site.browser().get(path, headers=headers)
    assert response.status_code in (400, 401)
    assert "pytorchjobs" not in response.text.replace(JOB_OF_ADA, "")
    assert "wrong</" not in response.text and ADA not in response.text
    assert not [one for one in site.tenants.seen if one[1] not in ("unauthorized",)], "nothing is asked for it"
    assert not site.tenants.of("list")
    assert site.browser().post(path, headers={**headers, **ORIGIN}).status_code in (400, 401)


def test_probes_need_no_login_and_say_nothing(site: Site) -> None:
    response = site.browser(host="10.0.0.1:8080").get("/healthz")
    assert (response.status_code, response.text) == (200, "ok\n")
    assert site.tenants.seen == []


@pytest.mark.parametrize("host", ["evil.example", f"{HOST}:8443", f"{HOST}.evil.example", ""])
def test_another_name_is_refused(site: Site, host: str) -> None:
    assert site.browser(ADA).get("/?namespace=team", headers={"Host": host}).status_code == 421
    assert site.tenants.seen == []


def test_no_client_is_made_without_a_token(site: Site) -> None:
    for token in ("", " ", "a b", "a\nX-Evil: 1", "\u00e4", "x" * 40_000):
        with pytest.raises(Exception, match="This is no token"):
            site.sessions.log_in(token)
    assert site.tenants.seen == []


# --- the login


def test_log_in_and_out(site: Site) -> None:
    browser = site.browser()
    page = browser.get(JOB_OF_ADA)
    assert page.status_code == 401 and 'type="password"' in page.text and f'value="{JOB_OF_ADA}"' in page.text
    assert page.headers["www-authenticate"] == "Bearer"
    response = log_in(browser, f" {ADA}\n", to=JOB_OF_ADA)
    assert (response.status_code, response.headers["location"]) == (303, JOB_OF_ADA)
    cookie = response.headers["set-cookie"]
    for part in ("__Host-dljob=", "HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert part in cookie
    assert "Domain" not in cookie and ADA not in cookie and ADA not in str(response.headers)
    text = browser.get(JOB_OF_ADA).text
    assert "<h1>a</h1>" in text and "ada" in text and ADA not in text
    key, kept = form_key(browser, JOB_OF_ADA), dict(browser.cookies)
    assert browser.post("/logout", data={"key": "wrong"}, headers=ORIGIN).status_code == 403
    assert browser.get("/logout").status_code == 405, "a link logs no one out"
    assert browser.post("/logout", data={"key": key}, headers=ORIGIN).headers["location"] == "/login"
    browser.cookies.update(kept)
    assert "The session has ended: log in again." in browser.get(JOB_OF_ADA).text
    assert len(site.sessions.all()) == 0


def test_a_wrong_token_is_a_sentence(site: Site) -> None:
    browser = site.browser()
    response = log_in(browser, "wrong-token")
    assert response.status_code == 401 and "does not accept this token" in response.text
    assert "wrong-token" not in response.text and "__Host-dljob=" not in str(response.headers)
    assert "This is no token" in log_in(browser, "a b").text


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "/logout", "evil", ""]
)
def test_the_login_leads_to_a_page_of_this_site_only(site: Site, to: str) -> None:
    assert log_in(site.browser(), ADA, to=to).headers["location"] == "/"


def test_the_id_of_a_session_is_new_with_each_login(site: Site) -> None:
    browser = site.browser()
    browser.cookies.set("__Host-dljob", "chosen-by-an-attacker", domain=HOST)
    first = log_in(browser, ADA).headers["set-cookie"].partition(";")[0]
    assert "chosen" not in first
    second = log_in(browser, BOB).headers["set-cookie"].partition(";")[0]
    assert first != second
    assert site.browser().get("/?namespace=team", headers={"Cookie": first}).status_code == 401, "it has ended"
    assert len(site.sessions.all()) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {**ORIGIN, "Cookie": ""},
    ],
)
def test_another_site_logs_no_one_in(site: Site, headers: dict[str, str]) -> None:
    browser = site.browser()
    (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get("/login").text)
    if "Cookie" in headers:
        browser.cookies.clear()
    assert browser.post("/login", data={"key": key, "token": EVE}, headers=headers).status_code == 403
    assert len(site.sessions.all()) == 0


def test_a_cookie_for_plain_http(site: Site) -> None:
    gate = Gate(app_.application(), site.sessions, site.hub, ["localhost:8080"], secure=False)
    browser = TestClient(gate, base_url="http://localhost:8080", follow_redirects=False)
    (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get("/login").text)
    cookie = browser.post("/login", data={"key": key, "token": ADA}).headers["set-cookie"]
    assert "Secure" not in cookie and cookie.startswith("dljob-8080="), "of this port: browsers send it to all"
    assert "1 job" in browser.get("/?namespace=team").text


def test_two_pages_of_one_machine(site: Site) -> None:
    """Browsers send a cookie to all ports."""
    one, two = (
        TestClient(
            Gate(app_.application(), site.sessions, site.hub, [f"localhost:{port}"], secure=False),
            base_url=f"http://localhost:{port}",
            follow_redirects=False,
        )
        for port in (1, 2)
    )
    for browser, other, token in ((one, two, ADA), (two, one, BOB)):
        (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get("/login").text)
        assert browser.post("/login", data={"key": key, "token": token}).status_code == 303
        other.cookies = browser.cookies
    assert JOB_OF_ADA in one.get("/?namespace=team").text and JOB_OF_BOB in two.get("/?namespace=other").text


# --- the header of a proxy


def test_a_token_in_the_header(site: Site) -> None:
    browser = site.browser(ADA)
    text = browser.get("/?namespace=team").text
    assert JOB_OF_ADA in text and "Log out" not in text and ADA not in text
    assert "set-cookie" not in browser.get(JOB_OF_ADA).headers
    browser.get("/?namespace=team")
    assert len(site.sessions.all()) == 1
    key = form_key(browser, f"{JOB_OF_ADA}/suspend")
    site.tenants.users[ADA.replace("0123", "renewed")] = site.tenants.users[ADA]
    renewed = site.browser(ADA.replace("0123", "renewed"))
    assert renewed.post(f"{JOB_OF_ADA}/suspend", data={"key": key}, headers=ORIGIN).status_code == 303


def test_the_header_decides_whatever_the_cookie_says(site: Site) -> None:
    browser = site.logged_in(ROOT)
    assert browser.get(JOB_OF_ADA).status_code == 200
    refused = browser.get(JOB_OF_ADA, headers={"Authorization": "Bearer wrong"})
    assert refused.status_code == 401 and "does not accept this token" in refused.text
    assert browser.get(JOB_OF_ADA, headers={"Authorization": f"Bearer {BOB}"}).status_code == 403
    twice = httpx.Headers([("Authorization", f"Bearer {BOB}"), ("Authorization", f"Bearer {ROOT}")])
    assert browser.get(JOB_OF_ADA, headers=twice).status_code == 400


# --- limits


def test_a_session_ends_after_a_while(site: Site) -> None:
    browser = site.logged_in(ADA)
    site.clock.now += sessions_.IDLE - 1
    assert browser.get("/?namespace=team").status_code == 200
    for _ in range(3):
        site.clock.now += sessions_.IDLE / 2
        live_ = browser.get("/?namespace=team", headers={"X-Live": "1"})
    assert live_.status_code == 401, "a page that keeps itself up to date is no user"
    busy = site.logged_in(ADA)
    for _ in range(14):
        site.clock.now += sessions_.LONGEST / 13
        last = busy.get("/?namespace=team").status_code
    assert last == 401
    site.sessions.sweep()
    assert len(site.sessions.all()) == 0


def test_a_job_of_the_name_live(site: Site) -> None:
    page = JOB_OF_ADA.removesuffix("a") + "live"
    site.cluster.job("live")
    stranger = site.browser()
    assert 'type="password"' in stranger.get(page).text
    for stream in ("/live", f"{page}/live", f"{page}/logs/live"):
        assert stranger.get(stream).text == "The session has ended: log in again.\n"
    browser = site.logged_in(ADA)
    for _ in range(3):
        site.clock.now += sessions_.IDLE - 1
        assert browser.get(page).status_code == 200, "it is a use of the session"


def test_one_user_logs_no_other_out(site: Site) -> None:
    ada = site.logged_in(ADA)
    site.clock.now += 10
    browsers = []
    for _ in range(sessions_.MOST_OF_USER + 3):
        site.clock.now += 1
        browsers.append(site.logged_in(BOB))
    assert len(site.sessions.all()) == sessions_.MOST_OF_USER + 1
    assert ada.get("/?namespace=team").status_code == 200
    codes = [one.get("/?namespace=other").status_code for one in browsers]
    assert codes == [401] * 3 + [200] * sessions_.MOST_OF_USER, "the ones that were used longest ago"


def test_the_session_that_was_used_longest_ago_leaves(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_, "MOST", 2)
    ada = site.logged_in(ADA)
    site.clock.now += 1
    bob = site.logged_in(BOB)
    site.clock.now += 1
    assert ada.get("/?namespace=team").status_code == 200
    site.logged_in(ROOT)
    assert [one.get("/none").status_code for one in (ada, bob)] == [404, 401]


def test_a_token_that_expires(site: Site) -> None:
    browser = site.logged_in(ADA)
    assert browser.get("/?namespace=team").status_code == 200
    del site.tenants.users[ADA]
    site.clock.now += sessions_.RECHECK
    response = browser.get("/?namespace=team")
    assert response.status_code == 401 and "it is wrong or has expired" in response.text
    assert len(site.sessions.all()) == 0 and len(site.hub.feeds) == 0


# --- what each sees


def test_each_sees_only_its_own(site: Site) -> None:
    ada, bob = site.logged_in(ADA), site.browser(BOB)
    for browser, own, name, other in ((ada, JOB_OF_ADA, "team", JOB_OF_BOB), (bob, JOB_OF_BOB, "other", JOB_OF_ADA)):
        assert own in browser.get(f"/?namespace={name}").text
        for page in (f"/?namespace={name}", "/", own, f"/?namespace={other.split('/')[2]}"):
            text = browser.get(page).text
            assert other not in text and ADA not in text and BOB not in text
        assert browser.get(own).status_code == 200
        for part in ("", "/logs", "/suspend", "/delete"):
            assert browser.get(other + part).status_code == 403
        assert browser.get(f"{other}/live").status_code == 403
        assert browser.get(f"/live?namespace={other.split('/')[2]}").status_code == 403
        assert browser.get("/live").status_code == 403
    text = ada.get("/").text
    assert "You may not list and watch jobs in all namespaces." in text and 'name="namespace"' in text
    assert "You may not list and watch jobs in the namespace other." in ada.get("/?namespace=other").text
    assert "is no name of a namespace" in ada.get("/?namespace=../x").text
    everyone = site.logged_in(ROOT).get("/").text
    assert JOB_OF_ADA in everyone and JOB_OF_BOB in everyone


def test_a_viewer_without_any_right(site: Site) -> None:
    browser = site.logged_in(EVE)
    for page in ("/", "/?namespace=team", "/?namespace=other", "/live", f"{JOB_OF_ADA}/logs/live"):
        assert 'href="/jobs' not in browser.get(page).text
    assert len(site.hub.feeds) == 0 and site.tenants.of("watch") == []


def test_an_action_has_the_rights_of_its_viewer(site: Site) -> None:
    site.tenants.users[ADA].denied = {"delete pytorchjobs"}
    browser = site.logged_in(ADA)
    key = form_key(browser, f"{JOB_OF_ADA}/delete")
    response = browser.post(f"{JOB_OF_ADA}/delete", data={"key": key}, headers=ORIGIN)
    assert response.status_code == 403 and "cannot delete" in response.text
    other = site.logged_in(ROOT)
    assert other.post(f"{JOB_OF_ADA}/delete", data={"key": key}, headers=ORIGIN).status_code == 403, "another's form"
    own = form_key(other, f"{JOB_OF_ADA}/delete")
    response = other.post(f"{JOB_OF_ADA}/delete", data={"key": own}, headers=ORIGIN)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert site.tenants.of("delete", "pytorchjobs/a") == [ADA, ROOT]
    bob = site.logged_in(BOB)
    key = form_key(bob, f"{JOB_OF_BOB}/delete")
    response = bob.post(f"{JOB_OF_BOB}/delete", data={"key": key}, headers=ORIGIN)
    assert response.headers["location"] == "/?namespace=other"


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"}])
def test_another_site_changes_nothing(site: Site, headers: dict[str, str]) -> None:
    for browser in (site.logged_in(ADA), site.browser(ADA)):
        key = form_key(browser, f"{JOB_OF_ADA}/delete")
        assert browser.post(f"{JOB_OF_ADA}/delete", data={"key": key}, headers=headers).status_code == 403
    assert site.tenants.of("delete", "pytorchjobs/a") == []


# --- one list a kind for the viewers of the same rights


def test_viewers_of_the_same_rights_share_a_list(site: Site) -> None:
    site.tenants.users |= {f"{ROOT}-{n}": User(f"root-{n}", {""}) for n in range(20)}
    for number in range(20):
        assert JOB_OF_ADA in site.browser(f"{ROOT}-{number}").get("/").text
    assert len(site.tenants.of("list")) == 1 and len(site.hub.feeds) == 1
    until(lambda: site.tenants.of("watch"))
    assert len(set(site.tenants.of("list") + site.tenants.of("watch"))) == 1


def test_other_rights_share_nothing(site: Site) -> None:
    site.cluster.job("t", "tfjobs")
    hidden = "/jobs/team/tfjobs.kubeflow.org/t"
    site.tenants.users[ROOT_2].denied = {"watch tfjobs"}
    assert hidden in site.logged_in(ROOT).get("/").text
    text = site.logged_in(ROOT_2).get("/").text
    assert hidden not in text and JOB_OF_ADA in text
    assert "Not shown, since you may not list and watch them in all namespaces:" in text
    assert len(site.hub.feeds) == 2


def test_the_watch_moves_to_another_viewer(site: Site) -> None:
    first, second = site.logged_in(ROOT), site.logged_in(ROOT_2)
    assert first.get("/").status_code == second.get("/").status_code == 200
    until(lambda: site.tenants.of("watch") == [ROOT])
    first.post("/logout", data={"key": form_key(first, "/")}, headers=ORIGIN)
    until(lambda: site.tenants.of("watch")[-1] == ROOT_2)
    site.cluster.job("c")
    until(lambda: "pytorchjobs.kubeflow.org/c" in second.get("/").text)
    count = len(site.tenants.of("list"))
    second.post("/logout", data={"key": form_key(second, "/")}, headers=ORIGIN)
    assert len(site.hub.feeds) == 0, "the last has left"
    assert len(site.tenants.of("list")) == count


def test_a_viewer_whose_right_ends_takes_nothing_from_the_others(site: Site) -> None:
    first, second = site.logged_in(ROOT), site.logged_in(ROOT_2)
    assert JOB_OF_ADA in first.get("/").text and JOB_OF_ADA in second.get("/").text
    site.tenants.users[ROOT].namespaces = set()
    (feed,) = site.hub.feeds
    lists = len(site.tenants.of("list"))
    (leader,) = [one for one in feed.viewers if one.user == "root"]
    site.cluster.job("c")
    until(lambda: "pytorchjobs.kubeflow.org/c" in second.get("/").text)
    feed.remove(leader)  # as when a watch ends after its 300 s
    until(lambda: len(site.tenants.of("list")) > lists and site.tenants.of("watch")[-1] == ROOT_2)
    assert JOB_OF_ADA in second.get("/").text
    site.clock.now += sessions_.RECHECK
    assert "You may not list and watch jobs in all namespaces." in first.get("/").text
    assert JOB_OF_ADA in second.get("/").text


def test_a_viewer_without_a_right_any_more_leaves_its_watch(site: Site) -> None:
    browser = site.logged_in(ROOT)
    assert JOB_OF_ADA in browser.get("/").text and len(site.hub.feeds) == 1
    site.tenants.users[ROOT].namespaces = set()
    site.clock.now += sessions_.RECHECK
    assert JOB_OF_ADA not in browser.get("/").text
    assert site.hub.feeds == []


def test_a_watch_that_is_denied_is_a_sentence(site: Site) -> None:
    """Where the list is allowed, it is not sent again and again."""
    site.tenants.users[ROOT].denied = {"watch pytorchjobs"}
    client = Client(api=Api(site.tenants.config(ROOT)))
    with pytest.raises(ApiError, match="cannot watch"):
        list(client.watch("ptj", all_namespaces=True, timeout=60))
    assert len(site.tenants.of("list")) == 1


def test_a_refused_leader_shows_the_others_neither_gaps_nor_names(site: Site) -> None:
    """The right of the viewer with whose token the watch runs ends while it lists."""
    site.cluster.job("t", "tfjobs")
    first = site.logged_in(ROOT)
    site.tenants.users[ROOT].denied = set()
    site.sessions.watchable(site.sessions.all()[0], "")  # confirmed, and then
    site.tenants.users[ROOT].denied = {"list tfjobs", "list pytorchjobs"}
    page = threading.Thread(target=first.get, args=("/",))
    page.start()
    until(lambda: ROOT in site.tenants.of("list"))
    text = site.logged_in(ROOT_2).get("/").text
    assert JOB_OF_ADA in text and "tfjobs.kubeflow.org/t" in text
    assert "forbidden" not in text and "User" not in re.sub(r"<th.*?</th>", "", text)
    page.join(30)


def test_a_viewer_who_is_gone_holds_no_watch(site: Site) -> None:
    site.logged_in(ADA).get("/?namespace=team")
    site.clock.now += sessions_.PRESENT - 1
    site.hub.sweep()
    assert len(site.hub.feeds) == 1
    site.clock.now += 1
    site.hub.sweep()
    assert len(site.hub.feeds) == 0


def test_only_so_many_namespaces_are_watched(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_, "MOST_SCOPES", 2)
    site.tenants.users[ADA].namespaces = {"team", "n1", "n2", "n3"}
    browser = site.logged_in(ADA)
    for name in ("team", "n1"):
        assert "Of the namespace" in browser.get(f"/?namespace={name}").text
    asked = len(site.tenants.seen)
    for name in ("n2", "n3", "n2"):
        assert "Too many namespaces are open: close some." in browser.get(f"/?namespace={name}").text
        assert browser.get(f"/live?namespace={name}").status_code == 403
    reviews = [path for _, verb, path in site.tenants.seen[asked:] if verb == "access"]
    assert reviews == [], "two that are in use are not given up, to be asked for again"
    assert "You may not list and watch jobs in all namespaces." in browser.get("/").text
    assert "Of the namespace" in browser.get("/?namespace=team").text
    assert {feed.namespace for feed in site.hub.feeds} == {"team", "n1"}
    monkeypatch.setattr(hub_, "MOST", 2)
    assert "Too many namespaces" in site.logged_in(BOB).get("/?namespace=other").text


def test_an_error_of_the_api_server_names_no_user(site: Site) -> None:
    site.cluster.status = 500
    text = site.logged_in(ROOT).get("/").text
    assert "The API server does not list the jobs at the moment: HTTP 500." in text and "because" not in text


# --- streams, with a real server


@contextmanager
def served(site: Site) -> Iterator[Callable[[str], httpx.Client]]:
    """Gives a browser with the header of a proxy."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        gate = Gate(app_.application(), site.sessions, site.hub, [host], secure=False)
        server = uvicorn.Server(uvicorn.Config(gate, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        until(lambda: server.started)
        browsers: list[httpx.Client] = []

        def browser(token: str) -> httpx.Client:
            headers = {"Authorization": f"Bearer {token}"}
            browsers.append(httpx.Client(base_url=f"http://{host}", headers=headers, timeout=20))
            return browsers[-1]

        yield browser
        for one in browsers:
            one.close()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def ends(lines: Iterator[str]) -> bool:
    """Whether the stream comes to its end, and says so."""
    return "event: over" in list(lines)


@pytest.mark.parametrize("path", ["/live?namespace=team", f"{JOB_OF_ADA}/live", f"{JOB_OF_ADA}/logs/live"])
@pytest.mark.parametrize("how", ["ended", "idle", "expired", "without the right"])
def test_a_stream_ends_with_its_session(site: Site, path: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how in ("ended", "idle"):
        monkeypatch.setattr(app_, "_AGAIN", 1000.0)  # without asking anew
    log = site.cluster.worker(site.cluster.fake.objects["team", "pytorchjobs"]["a"], 0)
    log.write(1, "line")
    with served(site) as browser, browser(ADA).stream("GET", path) as events:
        assert events.status_code == 200
        lines = events.iter_lines()
        next(lines)
        (session,) = site.sessions.all()
        if how == "ended":
            site.sessions.end(session)
        elif how == "idle":
            site.clock.now += sessions_.IDLE
        else:
            if path.endswith("/logs/live"):  # its first answer is known
                until(lambda: ("access", "team/pods") in [one[1:] for one in site.tenants.seen])
                until(lambda: session.logs)
            if how == "expired":
                del site.tenants.users[ADA]
            else:
                site.tenants.users[ADA].namespaces = set()
            site.clock.now += sessions_.RECHECK
        assert ends(lines)


def test_streams_of_two_tenants(site: Site) -> None:
    with (
        served(site) as browser,
        browser(ADA).stream("GET", "/live?namespace=team") as of_ada,
        browser(BOB).stream("GET", "/live?namespace=other") as of_bob,
    ):
        first, second = of_ada.iter_lines(), of_bob.iter_lines()
        until(lambda: len(site.tenants.of("watch")) == 2)
        before = next(first), next(second)
        versions = {feed.namespace: feed.live.version for feed in site.hub.feeds}
        site.cluster.job("c")
        assert next(line for line in first if line.startswith("data") and line != before[0])
        assert versions["other"] == next(feed.live.version for feed in site.hub.feeds if feed.namespace == "other"), (
            "what happens in one namespace is no event for who sees another"
        )


def test_only_so_many_requests_of_a_user(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_USER", 2)
    with (
        served(site) as browser,
        browser(ADA).stream("GET", "/live?namespace=team") as one,
        browser(ADA).stream("GET", "/live?namespace=team") as two,
    ):
        assert one.status_code == two.status_code == 200
        lines = one.iter_lines(), two.iter_lines()
        assert all(next(each) for each in lines)
        assert browser(ADA).get("/?namespace=team").status_code == 429
        assert browser(BOB).get("/?namespace=other").status_code == 200


# --- who holds the page up


def service_account(site: Site, name: str, *denied: str, namespaces: tuple[str, ...] = ("team",)) -> str:
    """The token of an account that the admin of the namespace team has made."""
    token = f"token-of-account-{name}"
    site.tenants.users[token] = User(f"system:serviceaccount:team:{name}", set(namespaces), set(denied))
    return token


class Held:
    """An application whose answers wait."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun += 1
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Asked:
    """A gate before such an application."""

    site: Site
    app: Held = field(default_factory=Held)

    def __post_init__(self) -> None:
        self.gate = Gate(self.app, self.site.sessions, self.site.hub, [HOST])

    async def status(self, token: str, method: str = "GET", path: str = "/none") -> int:
        found: list[int] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        async with asyncio.timeout(20):
            await self.gate(scope, receive, send)
        return found[0]

    async def begin(self, token: str, method: str = "GET") -> asyncio.Task[int]:
        before = self.app.begun
        task = asyncio.create_task(self.status(token, method))
        async with asyncio.timeout(20):
            while self.app.begun == before:
                assert not task.done(), task.result()
                await asyncio.sleep(0.01)
        return task


def test_requests_of_an_ended_session_count(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_USER", 2)

    async def scenario() -> None:
        asked = Asked(site)
        begun = []
        for _ in range(2):
            begun.append(await asked.begin(ADA))
            site.sessions.end(site.sessions.all()[0])
        assert await asked.status(ADA) == 429
        begun.append(await asked.begin(BOB))
        asked.app.go.set()
        assert await asyncio.gather(*begun) == [200] * 3
        assert await asked.status(ADA) == 200

    asyncio.run(scenario())


def test_a_few_users_do_not_hold_all_threads_with_actions(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_ACTIONS_OF_TENANT", 3)
    accounts = [service_account(site, str(number)) for number in range(2)]

    async def scenario() -> None:
        asked = Asked(site)
        begun = [await asked.begin(ADA, "POST") for _ in range(limits.MOST_ACTIONS_OF_USER)]
        assert await asked.status(ADA, "POST") == 429
        begun.append(await asked.begin(ADA))
        begun += [await asked.begin(token, "POST") for token in (BOB, accounts[0], accounts[0], accounts[1])]
        assert await asked.status(accounts[1], "POST") == 429, "all accounts of a namespace have one limit"
        begun.append(await asked.begin(accounts[1]))
        asked.app.go.set()
        assert set(await asyncio.gather(*begun)) == {200}
        assert await asked.status(ADA, "POST") == 200

    asyncio.run(scenario())


def test_the_accounts_of_a_namespace_have_one_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_TENANT", 2)

    async def scenario() -> None:
        asked = Asked(site)
        begun = [await asked.begin(service_account(site, str(number))) for number in range(2)]
        assert await asked.status(service_account(site, "more")) == 429
        begun.append(await asked.begin(ADA))
        asked.app.go.set()
        assert await asyncio.gather(*begun) == [200] * 3

    asyncio.run(scenario())


def test_probes_are_answered_by_a_busy_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_REQUESTS", 1)

    async def scenario() -> None:
        asked = Asked(site)
        begun = await asked.begin(ADA)
        assert await asked.status(BOB) == 503
        assert await asked.status("", path="/healthz") == 200
        asked.app.go.set()
        assert await begun == 200 and await asked.status(BOB) == 200

    asyncio.run(scenario())


def test_the_accounts_of_a_namespace_log_no_other_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_, "MOST", 5)
    ada, bob = site.logged_in(ADA), site.logged_in(BOB)
    for number in range(6):
        site.clock.now += 1
        site.sessions.log_in(service_account(site, str(number)))
    assert [one.get("/none").status_code for one in (ada, bob)] == [404, 404]
    users = [one.user.removeprefix("system:serviceaccount:team:") for one in site.sessions.all()]
    assert users == ["ada", "bob", "3", "4", "5"]


def test_the_accounts_of_a_namespace_leave_watches_to_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_, "MOST_OF_NAMESPACE", 2)
    monkeypatch.setattr(hub_, "MOST_OF_TENANT", 3)
    kinds = [(), ("list tfjobs",), ("list pytorchjobs",)]
    tokens = [service_account(site, str(number), *denied) for number, denied in enumerate(kinds)]
    texts = [site.browser(token).get("/?namespace=team").text for token in tokens]
    assert ["Too many users of other rights" in text for text in texts] == [False, False, True]
    assert JOB_OF_ADA in site.browser(ADA).get("/?namespace=team").text, "of the rights of the first account"
    busy = site.browser(service_account(site, "busy", namespaces=("n1", "n2")))
    texts = [busy.get(f"/?namespace={name}").text for name in ("n1", "n2")]
    assert ["Too many namespaces are being watched" in text for text in texts] == [False, True]
    assert JOB_OF_BOB in site.browser(BOB).get("/?namespace=other").text
    assert site.browser(tokens[0]).get("/?namespace=team").status_code == 200, "what is watched already costs nothing"


def test_a_namespace_that_is_closed_makes_room(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_, "MOST_SCOPES", 2)
    site.tenants.users[ADA].namespaces = {"team", "n1", "n2"}
    browser = site.logged_in(ADA)
    browser.get("/?namespace=denied")
    for name in ("team", "n1"):
        site.clock.now += 1
        assert "Of the namespace" in browser.get(f"/?namespace={name}").text, "one that was denied is not open"
    site.clock.now += sessions_.PRESENT - 1
    assert "Of the namespace n2" in browser.get("/?namespace=n2").text
    assert {feed.namespace for feed in site.hub.feeds} == {"n1", "n2"}
    root = site.logged_in(ROOT)
    texts = [root.get(page).text for page in ("/", "/?namespace=team", "/?namespace=other", "/?namespace=n1")]
    assert ["Too many" in text for text in texts] == [False, False, False, True], "all together are no namespace"


def test_a_pattern_of_progress_reads_the_log_with_the_viewers_rights(site: Site) -> None:
    pytest.importorskip("re2")
    made = site.cluster.job("a", metadata={"annotations": {ANNOTATION: r"(?P<percent>\d+)%"}})
    site.cluster.worker(made, 0).write(1, "45%")
    assert "45%, by the log of a-worker-0" in site.browser(ADA).get(JOB_OF_ADA).text
    assert site.tenants.of("get", "log") == [ADA]
    site.tenants.users[ROOT].denied = {"get pods"}
    text = site.browser(ROOT).get(JOB_OF_ADA).text
    assert "unknown: you may not get pods/log in the namespace team" in text and "45%" not in text
    assert site.tenants.of("get", "log") == [ADA, ROOT]


def test_logs_of_two_namespaces_are_asked_for_once_each(site: Site) -> None:
    site.sessions.log_in(ROOT)
    (session,) = site.sessions.all()
    assert all(site.sessions.reads_logs(session, name) for name in ("team", "other", "team", "other"))
    assert [path for _, verb, path in site.tenants.seen if verb == "access"] == ["team/pods", "other/pods"]
    site.clock.now += sessions_.RECHECK
    site.sessions.reads_logs(session, "team")
    assert list(session.logs) == ["team"]


def test_a_leader_whose_session_is_over_is_passed_over(site: Site) -> None:
    first, second = site.browser(ROOT), site.browser(ROOT_2)
    assert JOB_OF_ADA in first.get("/").text and JOB_OF_ADA in second.get("/").text
    until(lambda: site.tenants.of("watch") == [ROOT])
    site.clock.now += sessions_.IDLE - 1
    assert second.get("/").status_code == 200
    site.clock.now += 1
    site.cluster.job("c")  # the watch looks up
    until(lambda: site.tenants.of("watch")[-1] == ROOT_2)
    (feed,) = site.hub.feeds
    assert [one.user for one in feed.viewers] == ["root", "root-2"], "no sweep has been"
    site.clock.now += sessions_.IDLE
    site.cluster.job("d")
    time.sleep(0.1)
    before = site.clock.looks
    time.sleep(0.2)
    assert site.clock.looks - before < 200, "without a viewer it waits for its end"


def test_a_watch_that_has_ended_is_joined_by_no_viewer(site: Site) -> None:
    browser = site.logged_in(ROOT)
    assert JOB_OF_ADA in browser.get("/").text
    (feed,) = site.hub.feeds
    feed.live.close()
    site.cluster.job("c")
    assert "pytorchjobs.kubeflow.org/c" in browser.get("/").text
    assert site.hub.feeds != [feed]


@contextmanager
def page_in_cluster(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """As `dljob ui --in-cluster` serves it; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "127.0.0.1", free.getsockname()[1]
    host = f"{address[0]}:{address[1]}"
    with page_thread(monkeypatch, lambda: serve_cluster.serve(site.tenants.config, address, [host], secure=False)):
        yield address


def test_connections_without_a_request_lock_no_other_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_cluster, "_MOST_CONNECTIONS", 4)
    with page_in_cluster(site, monkeypatch) as address:
        page = f"http://{address[0]}:{address[1]}"
        headers = {"Authorization": f"Bearer {ADA}"}
        with httpx.stream("GET", f"{page}/live?namespace=team", headers=headers, timeout=20) as events:
            lines = events.iter_lines()
            next(lines)
            idle = [socket.create_connection(address, 20) for _ in range(4)]
            for _ in range(4):
                idle.append(socket.create_connection(address, 20))
                idle[-1].sendall(f"POST /login HTTP/1.1\r\nHost: {page[7:]}\r\nContent-Length: 9\r\n\r\n".encode())
            for one in idle[:5]:
                with suppress(ConnectionResetError):
                    assert one.recv(1) == b"", "a new one ends the one that has waited longest"
            assert httpx.get(f"{page}/healthz", timeout=20).text == "ok\n"
            assert JOB_OF_ADA in httpx.get(f"{page}/?namespace=team", headers=headers, timeout=20).text
            site.cluster.job("c")
            assert next(line for line in lines if line.startswith("data")), "what has begun goes on"
            for one in idle:
                one.close()


def test_a_connection_without_a_request_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SECONDS", 0.2)
    with page_in_cluster(site, monkeypatch) as address, socket.create_connection(address, 20) as idle:
        idle.sendall(b"GET /login HTTP/1.1\r\n")
        assert idle.recv(1) == b""


# --- the command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "x", "--ca", "/none"], "/none, which the configuration names, cannot be read"),
        ([], "--in-cluster needs --host"),
        (["--host", "x", "--address", "8080x", "--ca", "CA"], "8080x is no address"),
        (["--host", "x", "--address", "192.0.2.1:80", "--ca", "CA"], "192.0.2.1:80 cannot be used"),
    ],
)
def test_bad_options(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_text("")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert cli.main(["ui", "--in-cluster", *(str(ca) if word == "CA" else word for word in words)]) > 0
    assert said in capsys.readouterr().err


def test_outside_of_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert cli.main(["ui", "--in-cluster", "--host", "x"]) == 5
    assert "This is no pod of a cluster" in capsys.readouterr().err


def test_a_token_is_in_no_text(site: Site) -> None:
    site.sessions.log_in(ADA)
    (session,) = site.sessions.all()
    texts: list[Any] = [session, session.client.api.config, session.client.api.config.credentials()]
    assert not any(ADA in repr(one) for one in texts)
