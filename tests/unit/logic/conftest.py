"""Hypothesis for these tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# time limits say more about the machine's load than about the code
settings.register_profile("logic", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("logic")
