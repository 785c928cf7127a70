"""Valid commit subjects, and the errors for invalid ones."""

from __future__ import annotations

import pytest
from devtools.checks.commits.subject import LIMIT, problems


@pytest.mark.parametrize(
    "subject",
    [
        "Defer initial status and creation Event",
        "Fix #12: requeue on conflict",
        "docs: describe make images MANIFESTS",
        "docs: Describe make images MANIFESTS",
        "hack/devtools/testbed/cluster: start dockerd without iptables",
        "crds, bundle: regenerate",
        "Test: cover the third branch",
        # base forms that look like other forms
        "Process batches in order",
        "Address review",
        "Bypass the proxy",
        "Focus on one thing",
        "Alias dljobs",
        "Embed the collection in the wheel",
        "Need less memory",
        "Seed the cache",
        "Speed up the lint",
        "Proceed without a registry",
        "Exceed no limit",
        "Bring the cluster up",
        "String quotes around versions",
        "Ping the API server first",
        "Shed load",
        "Re-enable the test",
        # subjects that git generates
        "Merge branch 'x' of somewhere that has a name of its own which is longer than the limit allows",
        'Revert "Added a thing."',
        "fixup! Adding a thing",
        "squash! adds",
        "Add " + "x" * (LIMIT - 4),
    ],
)
def test_fine(subject: str) -> None:
    assert problems(subject) == []


@pytest.mark.parametrize(
    ("subject", "complaint"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("Add " + "x" * (LIMIT - 3), "73 characters: shorten it to 72"),
        ("Add a thing.", "a period at its end"),
        ("Add a thing ", "blanks around it"),
        ("add a thing", "neither a capital letter nor 'area: '"),
        ("Added a thing", "'Added' is a past form"),
        ("Agreed on a name", "past form"),
        ("Pinned actions", "past form"),
        ("Wrote the bundle anew", "past form"),
        ("Adds a thing", "third-person or plural form"),
        ("Fixes #12", "third-person or plural form"),
        ("Supports Python 3.13", "third-person or plural form"),
        ("Adding a thing", "an -ing form"),
        ("Bumping versions", "an -ing form"),
        ("docs: described a thing", "'described' is a past form"),
        ("Tests: the schemas share one kubectl", "'the' is not a verb"),
        ("The cluster comes up faster", "not a verb"),
        ("A new job's pods first", "not a verb"),
        ("One place tells of a new job's pods", "not a verb"),
        ("README.md tells more", "'README.md' is a name, not a verb"),
        ("`make test` in 15 minutes", "does not start with a verb"),
        ("2.19 is the newest", "does not start with a verb"),
    ],
)
def test_complaint(subject: str, complaint: str) -> None:
    (found,) = problems(subject)
    assert complaint in found


def test_every_problem_is_named_at_once() -> None:
    assert len(problems("adding " + "x" * LIMIT + ".")) == 4
