"""When the command started, as near as Python code can know."""

import time

STARTED = time.perf_counter()
