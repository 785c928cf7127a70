"""The outcome of each file of examples/, and the test that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Outcome:
    """The final state of a job, as the first lines of its file describe it."""

    state: str = "Succeeded"
    log: tuple[str, str] | None = None  # replica type, and a pattern of its log
    failure: dict[str, object] = field(default_factory=dict)  # of status.failure
    left: int | None = None  # number of pods after the job has finished
    gone: bool = False  # whether the job itself is deleted
    suspended: bool = False  # whether the job has to be resumed
    gpus: int = 0  # GPUs that the node must advertise


OUTCOMES = {
    "caffe2-none.yaml": Outcome(log=("worker", r"final: test_accuracy=0\.[89]\d* shards=1 epochs=5 backend=none")),
    "dljob-digits.yaml": Outcome(log=("master", r"final: test_accuracy=0\.9[5-9]\d* processes=3 epochs=20")),
    "failure-report.yaml": Outcome(
        "Failed",
        failure={"pod": "failure-report-worker-0", "container": "mxnet", "exitCode": 3, "reason": "Error"},
        left=1,
    ),
    "jax-digits.yaml": Outcome(log=("worker", r"final: test_accuracy=0\.9[5-9]\d* processes=2 steps=150")),
    "mxnet-cleanup.yaml": Outcome(left=0),
    "mxnet-gpu-shared-volume.yaml": Outcome(log=("scheduler", "found what the worker left"), gpus=1),
    "mxnet-list.yaml": Outcome(
        log=("worker", r"final: test_accuracy=0\.[89]\d* workers=1 epochs=5 kv_store=dist_sync")
    ),
    "mpi-digits.yaml": Outcome(log=("launcher", r"final: test_accuracy=0\.9[5-9]\d* processes=2 epochs=30"), left=1),
    "mpi-fsgroup.yaml": Outcome(
        log=("launcher", r"^id_rsa has mode 600\n(.*\n)*final: test_accuracy=0\.9[5-9]\d* processes=2 epochs=30"),
        left=1,
    ),
    "mpi-v1-digits.yaml": Outcome(log=("launcher", r"final: test_accuracy=0\.9[5-9]\d* processes=2 epochs=30"), left=1),
    "mxnet-local.yaml": Outcome(log=("worker", r"final: test_accuracy=0\.[89]\d* workers=1 epochs=5 kv_store=local")),
    "paddle-digits.yaml": Outcome(log=("worker", r"final: test_accuracy=0\.9[5-9]\d* processes=2 epochs=10")),
    "policy-backoff.yaml": Outcome("Failed", failure={"reason": "BackoffLimitExceeded"}),
    "policy-deadline.yaml": Outcome("Failed", failure={"reason": "DeadlineExceeded"}),
    "policy-restarts-within.yaml": Outcome("Failed", failure={"reason": "RestartsWithinExceeded"}),
    "policy-failure-rules.yaml": Outcome(
        "Failed",
        failure={"pod": "policy-failure-rules-worker-0", "exitCode": 42, "reason": "PodFailurePolicy"},
    ),
    "policy-suspend.yaml": Outcome(suspended=True),
    "policy-ttl.yaml": Outcome(gone=True),
    "pytorch-groups.yaml": Outcome(log=("worker", "a worker of the group large: rank 1 of 4")),
    "tensorflow-chief-evaluator.yaml": Outcome(log=("evaluator", r'"task": ?\{"type": ?"evaluator", ?"index": ?0\}')),
    "xgboost-digits.yaml": Outcome(log=("master", r"final: test_accuracy=0\.9[5-9]\d* processes=2 rounds=40")),
    "xgboost-lightgbm.yaml": Outcome(log=("master", r"final: test_accuracy=0\.9[5-9]\d* processes=2 rounds=40")),
}
"""What tests/e2e/test_examples.py finds after it has run these files; a file without a row succeeds."""

ELSEWHERE = {
    "caffe2-digits-nfs.yaml": "tests/e2e/test_caffe2.py::test_example_meets_in_a_directory_on_the_nodes_network",
    "caffe2-digits-redis.yaml": "tests/e2e/test_caffe2.py::test_example_meets_at_redis",
    "mxnet-digits-v1alpha1.yaml": "tests/e2e/test_training.py::test_example_trains",
    "mxnet-digits.yaml": "tests/e2e/test_demo.py::test_demo_trains_and_leaves_nothing",
    "mxnet-restart-job.yaml": "tests/e2e/test_restart_scope.py::test_a_training_outlives_a_lost_server",
    "pytorch-disruption-budget.yaml": "tests/e2e/test_disruption_budget.py::test_the_example_allows_what_it_says",
    "pytorch-digits.yaml": "tests/e2e/test_pytorch.py::test_example_trains",
    "pytorch-elastic.yaml": "tests/e2e/test_pytorch.py::test_a_worker_comes_in_the_middle",
    "pytorch-etcd.yaml": "tests/e2e/test_pytorch.py::test_a_replaced_worker_joins_again_at_etcd",
    "policy-stall.yaml": "tests/e2e/test_stalls.py::test_the_example_fails",
    "pytorch-progress.yaml": "tests/e2e/test_progress.py::test_the_trainer_of_transformers_reports_by_itself",
    "tensorflow-digits-v1alpha1.yaml": "tests/e2e/test_tensorflow.py::test_example_trains",
    "tensorflow-digits.yaml": "tests/e2e/test_tensorflow.py::test_example_trains",
    "tensorflow-accelerators.yaml": "tests/e2e/test_accelerators.py::test_the_example_lists_the_mounted_driver",
    "tensorflow-tensorboard.yaml": "tests/e2e/test_tensorflow.py::test_tensorboard_shows_real_events",
}
"""The files with a separate test, which checks more than the outcome."""


def outcome_of(file: str) -> Outcome:
    """The outcome of a file that tests/e2e/test_examples.py runs."""
    return OUTCOMES.get(file, Outcome())
