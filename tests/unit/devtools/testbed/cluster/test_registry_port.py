"""The port of the registry: two clusters that start at the same moment must not choose the same one."""

import socket

import pytest
from devtools.testbed.cluster import registry


@pytest.fixture(autouse=True)
def _a_range_that_no_cluster_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PREFERRED_PORT", 23071)


def test_each_slot_has_a_port_of_its_own() -> None:
    ports = [registry.free_port(slot) for slot in range(4)]  # none of them is opened, as in four simultaneous starts
    assert len(set(ports)) == 4


def test_a_port_in_use_is_not_chosen() -> None:
    wanted = registry.free_port(3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", wanted))
        taken.listen()
        assert registry.free_port(3) != wanted


def test_a_users_docker_has_the_usual_port_if_it_is_free() -> None:
    assert registry.free_port() == registry.free_port(0) == 23071
