"""Settings of all tests: traced callables compile in the call, and use what it gives.

Whether torch is faster, and when a worker has ended, depends on time. So does how long
examples take to generate, which Hypothesis would count as a failure.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("MAGWELD_COMPILE", "now")
os.environ.setdefault("MAGWELD_RACE", "0")
# Several processes share the cores: threads that wait must not keep others from
# running. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")
