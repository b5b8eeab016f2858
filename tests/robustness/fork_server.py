"""Starts commands of graphuq in forks of a process that has imported them, which saves seconds.

Run as a program it reads lines of JSON from its standard input. Arguments of a command start it,
and the answer is the id of its process; null waits for it, and the answer is how it ended. Until
then the system gives its id to no other process.
"""

import json
import os
import signal
import subprocess
import sys

CHECKPOINT_SECONDS = 0.05  # between two checkpoints, instead of 10: a kill may hit any of them


class ForkServer:
    """Server of forks, whose standard error is a file; use it as a context."""

    def __init__(self, errors):
        self.errors = errors
        self._file = open(errors, "w", encoding="utf-8")  # noqa: SIM115
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._file,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()
        self._file.close()

    def start(self, arguments):
        """Start a command and return the id of its process."""
        return self._ask(arguments)

    def wait(self):
        """Return the exit code of the command, or minus the signal that ended it."""
        return self._ask(None)

    def _ask(self, what):
        self._server.stdin.write(f"{json.dumps(what)}\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def serve():
    """Start commands and wait for them."""
    global graphuq
    import graphuq.classifier.regressor.regressor
    import graphuq.cli.app
    import graphuq.cli.fitting
    import graphuq.inference.checkpoint
    import graphuq.report

    graphuq.inference.checkpoint.SECONDS = CHECKPOINT_SECONDS
    process = 0
    for line in sys.stdin:
        arguments = json.loads(line)
        if arguments is None:
            answer = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        else:
            answer = process = os.fork()
            if process == 0:
                run(arguments)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def run(arguments):
    """Run a command in this process as ``graphuq`` does, and end it."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    code = 1
    try:
        graphuq.cli.app.main(arguments)
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
