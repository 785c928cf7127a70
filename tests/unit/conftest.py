"""Hypothesis for all unit tests: DLJOB_HYPOTHESIS names the profile, `full` where it is not set, or `few`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# time limits say more about the machine's load than about the code
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", COMMON)
settings.register_profile("few", COMMON, max_examples=10)
settings.load_profile(os.environ.get("DLJOB_HYPOTHESIS", "full"))
