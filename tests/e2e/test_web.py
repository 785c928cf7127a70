"""`dljob ui` on a real cluster: a job from its page, and users who see what their rights grant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import yaml
from support.live_jobs import Cluster, config_of_user, for_own_operator, until, v1_job
from support.web_page import serving, serving_in_cluster


@contextmanager
def served(kubeconfig: Path, *words: str) -> Iterator[tuple[httpx2.Client, list[str]]]:
    """A browser that has opened the address, and the lines that were printed."""
    with (
        serving(kubeconfig, *words) as (address, said),
        httpx2.Client(base_url=address.partition("/login")[0], follow_redirects=True, timeout=60) as browser,
    ):
        assert browser.get(address).status_code == 200
        yield browser, said


def test_a_job_from_its_page(here: Cluster) -> None:
    talks = "while true; do echo step of $(hostname); sleep 0.5; done"
    here.create(v1_job("digits", worker=(2, talks)))
    page = f"/jobs/{here.namespace}/mxjobs.kubeflow.org/digits"
    with served(here.kubeconfig) as (browser, _):
        until(lambda: page in browser.get("/", params={"q": f"ns:{here.namespace}"}).text)
        until(lambda: "4/4" in browser.get("/", params={"q": f"ns:{here.namespace}"}).text)
        text = browser.get(page).text
        assert "Nothing is wrong: 4/4 replicas are ready." in text
        assert re.search(r"digits-worker-1.*<rect class=\"running\"", text, re.DOTALL), "the replicas over time"
        assert "SuccessfulCreatePod" in text
        assert "step of digits-worker-0" in browser.get(f"{page}/logs").text
        with browser.stream("GET", f"{page}/logs/live") as events:
            data = next(line for line in events.iter_lines() if line.startswith("data"))
            assert json.loads(data.removeprefix("data: "))["text"].startswith("step of digits-worker-")

        (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get(f"{page}/suspend").text)
        assert browser.post(f"{page}/suspend", data={"key": "wrong"}).status_code == 403
        assert "Suspended" in browser.post(f"{page}/suspend", data={"key": key}).text
        assert "Suspended" in browser.get(page).text
        assert browser.post(f"{page}/delete", data={"key": key}).status_code == 200
        until(lambda: page not in browser.get("/").text)
        assert browser.get(page).status_code == 404


def test_a_user_sees_what_its_rights_grant(here: Cluster, tmp_path: Path) -> None:
    here.create(v1_job("digits"))
    where, mine = here.namespace, tmp_path / "kubeconfig"
    config = config_of_user(here, "viewer", ["get", "list", "watch"])
    for one in config["contexts"]:
        one["context"]["namespace"] = where
    mine.write_text(yaml.safe_dump(config))
    page = f"/jobs/{where}/mxjobs.kubeflow.org/digits"
    with served(mine) as (browser, said):
        assert said[0] == f"Only the jobs of the namespace {where} are shown.\n"
        until(lambda: page in browser.get("/").text)
        text = browser.get(page).text
        assert f"You may not list pods in the namespace {where}." in text
        assert "Some causes may stay hidden" in text
        assert browser.get("/jobs/kube-system/mxjobs.kubeflow.org/digits").status_code == 403
        (key,) = re.findall(r'name="key" value="([^"]+)"', browser.get(f"{page}/delete").text)
        assert browser.post(f"{page}/delete", data={"key": key}).status_code == 403
        assert config["users"][0]["user"]["token"] not in text
    here.core.read_namespaced_service_account("viewer", where)


@pytest.fixture
def elsewhere(here: Cluster) -> Iterator[Cluster]:
    """A second namespace, of another tenant."""
    name = f"{here.namespace}-b"
    here.core.create_namespace({"metadata": {"name": name}})
    yield Cluster(here.kubeconfig, name)
    here.core.delete_namespace(name)


def test_two_tenants_of_the_page_in_the_cluster(here: Cluster, elsewhere: Cluster, tmp_path: Path) -> None:
    here.create(for_own_operator(v1_job("digits")))
    elsewhere.create(for_own_operator(v1_job("letters")))
    tokens = {
        one: config_of_user(one, "viewer", verbs)["users"][0]["user"]["token"]
        for one, verbs in ((here, ["get", "list", "watch"]), (elsewhere, ["get", "list", "watch", "delete"]))
    }
    pages = {
        one: f"/jobs/{one.namespace}/mxjobs.kubeflow.org/{name}"
        for one, name in ((here, "digits"), (elsewhere, "letters"))
    }
    with serving_in_cluster(here.kubeconfig, tmp_path) as address:
        assert httpx2.get(address + pages[here]).status_code == 401
        by_form = httpx2.Client(base_url=address, follow_redirects=True, timeout=60)
        by_header = httpx2.Client(
            base_url=address,
            follow_redirects=True,
            timeout=60,
            headers={"Authorization": f"Bearer {tokens[elsewhere]}"},
        )
        with by_form, by_header:
            (key,) = re.findall(r'name="key" value="([^"]+)"', by_form.get("/login").text)
            wrong = by_form.post("/login", data={"key": key, "token": "wrong"})
            assert (wrong.status_code, "does not accept this token" in wrong.text) == (401, True)
            entered = by_form.post("/login", data={"key": key, "token": tokens[here], "to": pages[here]})
            assert entered.url.path == pages[here] and entered.status_code == 200
            seen = []
            for browser, own, other in ((by_form, here, elsewhere), (by_header, elsewhere, here)):
                overview = browser.get("/", params={"namespace": own.namespace})
                assert pages[own] in overview.text and pages[other] not in overview.text
                assert f"system:serviceaccount:{own.namespace}:viewer" in overview.text
                job = browser.get(pages[own])
                assert job.status_code == 200 and f"You may not list pods in the namespace {own.namespace}." in job.text
                everywhere = browser.get("/")
                assert "You may not list and watch jobs in all namespaces." in everywhere.text
                denied = [browser.get("/", params={"namespace": other.namespace}), browser.get(pages[other])]
                assert not [one for one in (everywhere, *denied) if pages[other] in one.text]
                assert denied[1].status_code == 403 and browser.get(f"{pages[other]}/live").status_code == 403
                with browser.stream("GET", "/live", params={"namespace": own.namespace}) as events:
                    assert next(events.iter_lines()).startswith("data: ")
                (key,) = set(re.findall(r'name="key" value="([^"]+)"', browser.get(f"{pages[own]}/delete").text))
                deleted = browser.post(f"{pages[own]}/delete", data={"key": key})
                seen += [overview, job, everywhere, *denied, deleted]
                if own is here:
                    assert deleted.status_code == 403 and "cannot delete resource" in deleted.text
                else:
                    assert deleted.status_code == 200 and deleted.url.path == "/"
            assert not [one for one in seen for token in tokens.values() if token in one.text]
            form_key = re.findall(r'name="key" value="([^"]+)"', by_form.get(pages[here]).text)[0]
            assert by_form.post("/logout", data={"key": form_key}).url.path == "/login"
            assert by_form.get(pages[here]).status_code == 401
