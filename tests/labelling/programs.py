"""Programs that tests start: each has an end, also if the test fails or the program hangs."""

import contextlib
import subprocess
import sys
import threading


@contextlib.contextmanager
def running(code, *arguments, seconds=120, **options):
    """Run Python code beside the test, until it ends, the test leaves, or the time is over."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        watch = threading.Timer(seconds, process.kill)
        watch.start()
        try:
            yield process
        finally:
            watch.cancel()
            process.kill()
