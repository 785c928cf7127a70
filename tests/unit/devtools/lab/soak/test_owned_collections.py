"""What the harness deletes of a job that has been deleted, so that the garbage collector does not fall behind."""

from __future__ import annotations

from devtools.lab.soak.run import owned_collections
from devtools.testbed.jobs import read_kinds

OF_ALL = {"pods", "services", "endpointslices"}
RIGHTS = {"serviceaccounts", "roles", "rolebindings"}


def test_an_mpijob_also_has_rights() -> None:
    found = {kind.kind: {path.rpartition("/")[2] for path in owned_collections(kind.kind)} for kind in read_kinds()}
    assert found.pop("MPIJob") == OF_ALL | RIGHTS
    assert found
    assert all(plurals == OF_ALL for plurals in found.values())
