"""Jobs that a queue suspends while something else happens: an edit, a completion, an adoption that is not through."""

from __future__ import annotations

from typing import Any

from support.builders import MPI, PYTORCH, mpijob, pytorchjob
from unit.perturbation.model import Action, Exit, Replica, Scenario, World
from unit.perturbation.policy_scenarios import training_operators_objects
from unit.perturbation.steps import edited, exits, is_running, is_suspended, may_exit, number_of_pods, suspend

SUSPENDED = {"suspend": True}


def suspensions() -> list[Scenario]:
    return [
        Scenario(
            "queue-invalid",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy=SUSPENDED),
            exits(master=0, worker=0),
            _made_invalid(2),
        ),
        Scenario("queue-invalid-mpi", MPI, mpijob(1, runPolicy=SUSPENDED), exits(launcher=0), _made_invalid(2)),
        Scenario(
            "queue-invalid-from-the-beginning",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy=SUSPENDED),
            exits(master=0, worker=0),
            [
                Action(is_suspended, suspend(False)),
                Action(lambda world: bool(world.pods), _invalid),
                Action(lambda world: True, suspend(True)),
                Action(is_suspended, _mended),
                Action(number_of_pods(2), lambda world: None),
            ],
        ),
        Scenario(
            "queue-invalid-resumed",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy=SUSPENDED),
            exits(master=0, worker=0),
            [*_made_invalid(2)[:3], Action(is_suspended, suspend(False))],
        ),
        Scenario(
            "queue-completed",
            PYTORCH,
            pytorchjob(master=1, worker=2),
            first_worker_at_once,
            [
                Action(lambda world: bool(world.status.get("completed")), suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(lambda world: is_running(world) and bool(world.status.get("completed")), lambda world: None),
            ],
        ),
        Scenario(
            "queue-not-adopted",
            PYTORCH,
            pytorchjob(master=1, worker=1, runPolicy=SUSPENDED),
            exits(master=0, worker=0),
            [Action(is_suspended, suspend(False)), Action(number_of_pods(2), lambda world: None)],
            inherit=_running_elsewhere,
        ),
        Scenario(
            "queue-adopted-in-part",
            PYTORCH,
            pytorchjob(master=1, worker=1),
            exits(master=0, worker=0),
            [
                Action(_is_one_adopted, suspend(True)),
                Action(is_suspended, suspend(False)),
                Action(number_of_pods(2), lambda world: None),
            ],
            inherit=_running_elsewhere,
        ),
    ]


def _made_invalid(pods: int) -> list[Action]:
    """The queue admits the job, an edit makes it invalid, the queue evicts it, and its user mends it."""
    return [
        Action(is_suspended, suspend(False)),
        Action(number_of_pods(pods), _invalid),
        Action(lambda world: True, suspend(True)),
        Action(is_suspended, _mended),
        Action(number_of_pods(pods), lambda world: None),
    ]


_invalid = edited(lambda spec: spec["runPolicy"].update(backoffLimit=-1))


def _mended(world: World) -> None:
    def change(spec: Any) -> None:
        del spec["runPolicy"]["backoffLimit"]
        spec["runPolicy"]["suspend"] = False

    world.edit_job(change)


def first_worker_at_once(replica: Replica, world: World) -> Exit | None:
    """Worker 0 succeeds as soon as the job runs, and the others in the end."""
    if replica.type == "worker" and not replica.index:
        return Exit(0) if is_running(world) else None
    return Exit(0) if may_exit(world) else None


def _running_elsewhere(world: World) -> None:
    """training-operator has created the objects of the job, and its status."""
    training_operators_objects(world)
    job = world.job
    assert job is not None
    kind = job["kind"]
    conditions = [{"type": x, "status": "True", "reason": f"{kind}{x}"} for x in ("Created", "Running")]
    world.write_status({"conditions": conditions, "startTime": world.time})


def _is_one_adopted(world: World) -> bool:
    return any("dljob.operator/job-uid" in pod["metadata"]["labels"] for pod in world.pods.values())
