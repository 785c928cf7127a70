"""What happens in a scenario, and when: how containers exit, and what users do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.fake_api_server import Resource
from unit.perturbation.model import Action, Exit, Replica, World

# --- how containers exit


def exits(**codes: int | list[int]) -> Callable[[Replica, World], Exit | None]:
    """``exits(worker=0, master=[1, 0])``: the code of all replicas of a type, or by attempt. Others run on.

    Nothing exits before all replicas have run and all actions of the scenario are done.
    """

    def end(replica: Replica, world: World) -> Exit | None:
        if replica.type not in codes or not may_exit(world):
            return None
        code = codes[replica.type]
        return Exit(code if isinstance(code, int) else code[min(replica.attempt, len(code) - 1)])

    return end


def only(index: int, of: str, first: int, then: int = 0) -> Callable[[Replica, World], Exit | None]:
    """One replica exits with ``first`` at its first attempt; all others of the type, and its next attempt, with
    ``then``."""

    def end(replica: Replica, world: World) -> Exit | None:
        if replica.type != of or not may_exit(world):
            return None
        return Exit(first if replica.index == index and not replica.attempt else then)

    return end


def in_two_attempts(replica: Replica, world: World) -> Exit | None:
    """The worker of the first attempt fails, and all of the second succeed."""
    if not may_exit(world) or (replica.type != "worker" and not replica.attempt):
        return None
    return Exit(0 if replica.attempt else 137)


def in_two_attempts_of_the_job(replica: Replica, world: World) -> Exit | None:
    """The same where the attempts of the job are not those of its pods: a rule restarts it."""
    if not may_exit(world):
        return None
    if world.status.get("attempt"):
        return Exit(0)
    return Exit(137) if replica.type == "worker" else None


def after_a_restart_of_the_job(replica: Replica, world: World) -> Exit | None:
    """All succeed in the second attempt of the job."""
    return Exit(0) if may_exit(world) and world.status.get("attempt") else None


def evicted_once(replica: Replica, world: World) -> Exit | None:
    """The node evicts the first attempt of the worker; then worker and scheduler succeed."""
    if not may_exit(world) or replica.type == "server":
        return None
    if replica.type == "worker" and not replica.attempt:
        return Exit(137, evicted=True)
    return Exit(0) if replica.type == "worker" or world.status.get("completed") else None


def twice_in_place(replica: Replica, world: World) -> Exit | None:
    """The worker fails twice, and then runs on."""
    return Exit(137) if replica.type == "worker" and replica.restarts < 2 and may_exit(world) else None


def at_once(replica: Replica, world: World) -> Exit | None:
    """Each replica succeeds as soon as it runs."""
    return Exit(0)


def last_after_workers(replica: Replica, world: World) -> Exit | None:
    """Worker 0 fails once; the chief or master succeeds when both workers have."""
    if replica.type == "worker":
        return only(0, "worker", 137)(replica, world)
    return Exit(0) if world.status.get("completed", {}).get("worker") == "0-1" else None


def first_worker(replica: Replica, world: World) -> Exit | None:
    """Worker 0 succeeds and the others run on: what the status says does not depend on how many ends it has seen."""
    return Exit(0) if replica.index == 0 and may_exit(world) else None


def may_exit(world: World) -> bool:
    return world.all_actions_done and world.status.get("phase") not in (None, "", "Creating", "Suspended")


# --- what programs report


def silent_at_first(world: World) -> Resource:
    """The programs report in the second attempt of the job alone."""
    age = 0.0 if world.status.get("attempt") else None
    return {"listening": 1e6, "age": age, "replicas": 0, "oldest": []}


# --- when users act


def is_running(world: World) -> bool:
    return world.status.get("phase") == "Running"


def is_suspended(world: World) -> bool:
    conditions = {x["type"]: x["status"] for x in world.status.get("conditions", ())}
    return conditions.get("Suspended") == "True" and not world.pods


def is_gone(world: World) -> bool:
    return world.job is None


def number_of_pods(count: int) -> Callable[[World], bool]:
    def check(world: World) -> bool:
        running = [pod for pod in world.pods.values() if pod["status"]["phase"] == "Running"]
        return is_running(world) and len(running) == count == len(world.pods)

    return check


def edited(change: Callable[[Any], object]) -> Callable[[World], None]:
    return lambda world: world.edit_job(change)


def to_two_workers(types_field: str, pods: int) -> list[Action]:
    """Of a job that runs; it has so many ``pods`` then."""
    return [
        Action(is_running, edited(lambda spec: spec[types_field]["Worker"].update(replicas=2))),
        Action(number_of_pods(pods), lambda world: None),
    ]


def suspend(value: bool) -> Callable[[World], None]:
    return edited(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=value))


def with_policy(job: Resource, types_field: str, policy: str) -> Resource:
    for entry in job["spec"][types_field].values():
        entry["restartPolicy"] = policy
    return job


def with_run_policy(job: Resource, **fields: Any) -> Resource:
    job["spec"]["runPolicy"] = fields
    return job
