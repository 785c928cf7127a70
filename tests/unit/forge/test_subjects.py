"""Valid subjects of commits, and the errors for invalid ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "hack" / "subjects.sh"
FINE = """\
Defer initial status and creation Event
Fix #12: requeue on conflict
docs: describe make images MANIFESTS
docs: Describe make images MANIFESTS
hack/devtools/testbed/cluster: start dockerd without iptables
crds, bundle: regenerate
Test: cover the third branch
Process batches in order
Address review
Bypass the proxy
Focus on one thing
Alias dljobs
Embed the collection in the wheel
Need less memory
Seed the cache
Speed up the lint
Proceed without a registry
Bring the cluster up
String quotes around versions
Ping the API server first
Shed load
Re-enable the test
Merge branch 'x' of somewhere that has a name of its own which is longer than the limit allows
Revert "Added a thing."
fixup! Adding a thing
squash! adds
"""


def printed(subjects: str, *arguments: str) -> str:
    command = [SCRIPT, *arguments]
    done = subprocess.run(command, input=subjects, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stdout else 0), done.stderr
    return done.stdout


def test_valid_subjects() -> None:
    assert printed(FINE + "Add " + "ü" * 68) == ""


@pytest.mark.parametrize(
    ("subject", "fix"),
    [
        ("", "begin with a verb"),
        ("Add " + "x" * 69, "at most 72 characters"),
        ("Add a thing.", "no period"),
        ("Add a thing ", "no period at the end, no blanks"),
        ("add a thing", "capital letter"),
        ("Added a thing", "imperative"),
        ("docs: added a thing", "imperative"),
        ("Adding a thing", "imperative"),
        ("Adds a thing", "imperative"),
        ("Tests of a thing", "imperative"),
        ("README.md: ", "imperative"),
        ("I/O in one place", "imperative"),
    ],
)
def test_invalid_subjects(subject: str, fix: str) -> None:
    assert fix in printed(f"{subject}\n")


def test_the_subject_of_a_message_is_its_first_line_that_git_keeps(tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text("# a comment\n\nAdd a thing\n\nthe reasons.\n", encoding="utf-8")
    assert printed("", str(message)) == ""
    message.write_text("# only comments\n", encoding="utf-8")
    assert "begin with a verb" in printed("", str(message))


def test_make_checks_the_commits_since_the_base(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-C", str(tmp_path)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    for subject in ("Add a thing", "Added another"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
    make = ["make", "-C", str(ROOT), "commits", f"RANGE_OF={tmp_path}"]
    for base, status in (("HEAD", 0), ("HEAD~1", 2), ("no-such-branch", 2)):
        done = subprocess.run([*make, f"BASE={base}"], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
