"""Settings of all tests: traced callables compile in the call, and use what it gives.

Whether torch is faster, and when a worker has ended, depends on time.
"""

from __future__ import annotations

import os

os.environ.setdefault("MAGWELD_COMPILE", "now")
os.environ.setdefault("MAGWELD_RACE", "0")
