"""An account agrees to the second with a model of the pods, whenever it is brought up to date, and by whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage import record
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage.account import advance
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import (
    DELETION,
    DISRUPTION,
    FAILURE,
    QUEUED,
    RESTARTING,
    RUNNING,
    STALL,
    STARTING,
    SUSPENDED,
    Account,
    Facts,
    PodUse,
    PodUses,
    Span,
)
from hypothesis import given
from hypothesis import strategies as st

T0 = 1_767_225_600
CPU = {"cpu": 1_000_000}


@dataclass
class Pod:
    """A pod of the model."""

    replica: tuple[str, int]
    bound: int
    started: int | None = None
    ended: int | None = None
    cause: str = FAILURE
    succeeded: bool = False
    number: int = 0

    def use(self) -> PodUse:
        worked = () if self.started is None else (Span(self.started, self.ended),)
        succeeded = self.ended if self.succeeded else None
        return PodUse(self.replica, CPU, Span(self.bound, self.ended), worked, succeeded, self.cause, self.number)

    def works(self, at: int) -> bool:
        if self.succeeded and self.ended is not None and at >= self.ended:
            return True
        return self.started is not None and self.started <= at and (self.ended is None or at < self.ended)


@dataclass
class Model:
    """A job, whose every second is looked at: what is true of each, and what an account is to say of all."""

    replicas: Sequence[tuple[str, int]]
    elastic: str = ""
    now: int = T0
    pods: dict[tuple[str, int], Pod] = field(default_factory=dict)
    gone: list[Pod] = field(default_factory=list)
    watch: str = "w0"
    since: int = T0
    number: int = 0
    suspended: int | None = None
    started: int = T0
    account: Account | None = None
    # what is true
    seconds: Counter[str] = field(default_factory=Counter)
    used: int = 0
    phase: str = QUEUED
    interruptions: Counter[str] = field(default_factory=Counter)
    completed: set[tuple[str, int]] = field(default_factory=set)

    # --- what happens

    def pass_(self, seconds: int) -> None:
        for _ in range(seconds):
            self._look()
            self.seconds[self.phase] += 1
            self.used += sum(pod.bound <= self.now and pod.ended is None for pod in self.pods.values())
            self.now += 1
        self._look()

    def bind(self, replica: tuple[str, int]) -> None:
        if replica not in self.pods and replica not in self.completed and self.suspended is None:
            self.pods[replica] = Pod(replica, self.now)

    def start(self, replica: tuple[str, int]) -> None:
        pod = self.pods.get(replica)
        if pod and pod.started is None and pod.ended is None:
            pod.started = self.now

    def end(self, replica: tuple[str, int], cause: str, *, succeeded: bool = False) -> None:
        pod = self.pods.get(replica)
        if pod and pod.ended is None and (pod.started is not None or not succeeded):
            pod.ended, pod.cause, pod.succeeded = self.now, cause, succeeded

    def remove(self, replica: tuple[str, int]) -> None:
        pod = self.pods.get(replica)
        if pod is None:
            return
        if pod.ended is None:
            pod.ended, pod.cause = self.now, DELETION
        if pod.succeeded:
            self.completed.add(replica)
        self.number += 1
        pod.number = self.number
        self.gone.append(self.pods.pop(replica))

    def suspend(self) -> None:
        """All pods are deleted at once, and the status says so."""
        self.refresh()
        for replica in list(self.pods):
            self.remove(replica)
        self.completed.clear()
        self.suspended = self.now
        self.phase = SUSPENDED
        self.refresh()

    def resume(self) -> None:
        if self.suspended is not None:
            self.suspended, self.started, self.phase = None, self.now, QUEUED
            self.refresh()

    def restart_operator(self) -> None:
        """Another process watches from now on, and has seen no pod go."""
        self.refresh()
        self.watch, self.since, self.gone = f"{self.watch}x", self.now, []

    def refresh(self) -> Account:
        """A status is written, and read again."""
        uses = PodUses(
            tuple(pod.use() for pod in self.pods.values()),
            tuple(pod.use() for pod in self.gone),
            self.watch,
            self.since,
        )
        account = advance(self.account, self.facts(), uses, self.now)
        self.account = record.read(record.write(account))
        assert self.account == account
        return account

    def facts(self) -> Facts:
        return Facts(
            created=T0,
            replicas=tuple(self.replicas),
            elastic=self.elastic,
            completed=frozenset(self.completed),
            rests="" if self.suspended is None else SUSPENDED,
            rested=self.suspended,
            started=self.started,
        )

    # --- what is true

    def _look(self) -> None:
        if self.suspended is not None:
            return
        before = self.phase
        if self._is_up():
            self.phase = RUNNING
        elif before in (RUNNING, RESTARTING):
            self.phase = RESTARTING
        else:
            self.phase = STARTING if any(pod.ended is None for pod in self.pods.values()) else QUEUED
        if self.phase == RESTARTING != before:
            ends = {pod.cause for pod in (*self.pods.values(), *self.gone) if pod.ended == self.now and pod.started}
            self.interruptions[next((one for one in (DISRUPTION, FAILURE, DELETION) if one in ends), "Other")] += 1

    def _is_up(self) -> bool:
        def works(replica: tuple[str, int]) -> bool:
            pod = self.pods.get(replica)
            return replica in self.completed or (pod is not None and pod.works(self.now))

        others = [replica for replica in self.replicas if replica[0] != self.elastic]
        elastic = [replica for replica in self.replicas if replica[0] == self.elastic]
        return all(map(works, others)) and (not elastic or any(map(works, elastic)))


REPLICAS = (("master", 0), ("worker", 0), ("worker", 1))
replica = st.sampled_from(REPLICAS)
actions = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, 30)),
    st.tuples(st.sampled_from(["bind", "start", "start", "remove"]), replica),
    st.tuples(st.sampled_from([FAILURE, DISRUPTION, "succeed"]), replica),
    st.tuples(st.sampled_from(["refresh", "refresh", "restart", "suspend", "resume", "all up"]), st.none()),
)


def play(model: Model, steps: Sequence[tuple[str, object]]) -> None:
    for name, what in steps:
        match name, what:
            case "pass", int(seconds):
                model.pass_(seconds)
            case (("bind" | "start" | "remove"), tuple()):
                getattr(model, name)(what)
            case "succeed", tuple():
                model.end(what, FAILURE, succeeded=True)
            case _, tuple():
                model.end(what, name)
            case "all up", _:
                for one in REPLICAS:
                    model.bind(one)
                model.pass_(1)
                for one in REPLICAS:
                    model.start(one)
            case "refresh", _:
                model.refresh()
            case "restart", _:
                model.restart_operator()
            case _:
                getattr(model, name)()
        model.pass_(1)  # Kubernetes' times have no fractions: two things in one second have no order


def agree(model: Model) -> None:
    account = model.refresh()
    lasted = account.as_of - account.since
    seconds = Counter(account.seconds)
    if account.phase != "Ended":
        seconds[account.phase] += lasted
    assert +seconds == +model.seconds
    assert account.phase == model.phase
    assert account.total.get("cpu", 0) == model.used * 1_000_000
    held = sum(pod.ended is None for pod in model.pods.values())
    assert account.held.get("cpu", 0) == held * 1_000_000
    counted = Counter({cause: one.count for cause, one in account.interruptions.items() if cause != "Startup"})
    if account.phase == RESTARTING:
        counted[account.cause] += 1
    assert +counted == +model.interruptions


@given(st.lists(actions, max_size=40), st.sampled_from(["", "worker"]))
def test_it_agrees_with_a_model_to_the_second(steps: Sequence[tuple[str, object]], elastic: str) -> None:
    model = Model(REPLICAS, elastic)
    play(model, steps)
    agree(model)


def running() -> Model:
    model = Model(REPLICAS)
    play(model, [("all up", None), ("pass", 100), ("refresh", None)])
    return model


def test_what_an_interruption_costs() -> None:
    model = running()
    play(model, [(DISRUPTION, ("worker", 1)), ("pass", 9), ("remove", ("worker", 1)), ("pass", 9)])
    play(model, [("bind", ("worker", 1)), ("pass", 4), ("start", ("worker", 1)), ("pass", 50)])
    account = model.refresh()
    one = account.interruptions[DISRUPTION]
    assert (one.count, one.seconds) == (1, 28)
    # two others for 28 s, and the new one from its binding, 6 s before it started
    assert one.held == {"cpu": (2 * 28 + 6) * 1_000_000}


def test_pods_that_go_while_no_process_watches_count_until_one_does() -> None:
    model = running()
    model.pass_(1000)
    model.pods.pop(("worker", 1))
    model.pass_(50)
    model.watch, model.since = "w1", model.now
    model.pass_(10)
    account = model.refresh()
    assert account.total["cpu"] == (model.used + 50) * 1_000_000
    model.pass_(10)
    assert model.refresh().total["cpu"] == (model.used + 50) * 1_000_000, "and no longer"


def test_without_an_engine_they_count_until_the_next_reconcile() -> None:
    model = running()
    model.pass_(1000)
    model.pods.pop(("worker", 1))
    model.pass_(50)
    uses = PodUses(tuple(pod.use() for pod in model.pods.values()))
    account = advance(model.account, model.facts(), uses, model.now)
    assert account.total["cpu"] == (model.used + 50) * 1_000_000


def test_a_pod_that_two_processes_have_seen_go_counts_once() -> None:
    model = running()
    model.remove(("worker", 1))
    model.pass_(5)
    model.refresh()
    model.watch, model.since = "the standby", T0
    model.pass_(5)
    assert model.refresh().total["cpu"] == model.used * 1_000_000


def test_one_that_only_the_second_process_has_seen_go_counts_too() -> None:
    model = running()
    model.pass_(5)
    model.remove(("worker", 1))
    model.pass_(5)
    model.watch, model.since = "the standby", T0
    assert model.refresh().total["cpu"] == model.used * 1_000_000


def test_what_was_learned_late_corrects_what_was_counted() -> None:
    """A kubelet reports the end of a container some seconds after it."""
    model = running()
    late = model.pods["worker", 1]
    account = advance(model.account, model.facts(), model_uses(model), model.now + 10)
    late.ended = model.now + 3
    corrected = advance(account, model.facts(), model_uses(model), model.now + 20)
    assert corrected.total["cpu"] == (model.used + 20 + 20 + 3) * 1_000_000
    assert (corrected.phase, corrected.since) == (RESTARTING, model.now + 3)


def model_uses(model: Model) -> PodUses:
    return PodUses(tuple(pod.use() for pod in model.pods.values()), (), model.watch, model.since)


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    model = running()
    before = model.refresh()
    after = advance(before, model.facts(), model_uses(model), model.now - 3600)
    assert (after.as_of, after.total, after.seconds) == (before.as_of, before.total, before.seconds)


def test_a_job_that_gets_more_replicas_starts_them_from_then_on() -> None:
    model = running()
    model.replicas = (*REPLICAS, ("worker", 2))
    model.pass_(5)
    account = model.refresh()
    assert (account.phase, account.since, account.cause) == (RESTARTING, model.now, "Other")


@pytest.mark.parametrize("phase", [RUNNING, STARTING, QUEUED])
def test_the_end(phase: str) -> None:
    model = Model(REPLICAS)
    if phase != QUEUED:
        for one in REPLICAS:
            model.bind(one)
        model.pass_(10)
    if phase == RUNNING:
        for one in REPLICAS:
            model.start(one)
    model.pass_(20)
    ended = replace(model.facts(), ended=model.now)
    model.account = advance(model.account, ended, model_uses(model), model.now)
    assert (model.account.phase, model.account.since) == ("Ended", model.now)
    assert Counter(model.account.seconds) == +model.seconds
    model.pass_(1000)
    later = advance(model.account, ended, model_uses(model), model.now)
    assert later.seconds == model.account.seconds
    assert later.total.get("cpu", 0) == model.used * 1_000_000, "pods that go on hold what they hold"


def test_a_job_that_starts_again_after_an_edit() -> None:
    model = running()
    ended = replace(model.facts(), ended=model.now)
    model.account = advance(model.account, ended, model_uses(model), model.now)
    began = model.now + 500
    again = advance(model.account, replace(model.facts(), started=began), PodUses((), (), "w0", T0), began + 7)
    assert (again.phase, again.since) == (QUEUED, began)
    assert sum(again.seconds.values()) == sum(model.account.seconds.values())


def test_a_job_that_was_never_seen_before_counts_from_its_creation() -> None:
    """The option was set while it ran."""
    model = running()
    model.account = None
    agree(model)


def test_a_thousand_replicas_take_milliseconds() -> None:
    replicas = tuple(("worker", index) for index in range(1000))
    facts = Facts(T0, replicas)
    pods = tuple(PodUse(one, CPU, Span(T0 + 5), (Span(T0 + 9 + one[1] % 7),)) for one in replicas)
    account = advance(None, facts, PodUses(pods, (), "w", T0), T0 + 100)
    assert account.seconds == {QUEUED: 5, STARTING: 10}
    assert len(str(record.write(account))) < 1000, "its size does not depend on the replicas"


@pytest.mark.parametrize(
    ("stalled", "cause", "counted"),
    [(True, DELETION, STALL), (False, DELETION, DELETION), (True, FAILURE, FAILURE), (True, DISRUPTION, DISRUPTION)],
)
def test_a_deletion_for_a_stall_is_one(stalled: bool, cause: str, counted: str) -> None:
    replica = ("worker", 0)
    old = PodUse(replica, CPU, Span(T0, T0 + 100), (Span(T0 + 10, T0 + 100),), cause=cause)
    new = PodUse(replica, CPU, Span(T0 + 110), (Span(T0 + 120),))
    facts = Facts(T0, (replica,), started=T0)
    before = replace(old, held=Span(T0), worked=(Span(T0 + 10),))
    running = advance(None, facts, PodUses((before,), watch="w", since=T0), T0 + 50)
    account = advance(running, replace(facts, stalled=stalled), PodUses((old, new), watch="w", since=T0), T0 + 200)
    assert account.interruptions[counted].seconds == 20
    assert set(account.interruptions) == {counted, "Startup"}
