"""Time at which the command started, as nearly as Python code can measure it."""

import time

STARTED = time.perf_counter()
