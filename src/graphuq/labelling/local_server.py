"""A server in a thread, of this machine only unless told: labelling page, and other programs."""

import secrets
import socket
import threading
import time
from typing import Any, TypeVar

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.labelling.hosting import ADDRESS
from graphuq.labelling.session import Session

Server = TypeVar("Server", bound="LocalServer")

START_S = 30.0
STOP_S = 3.0  # in which requests may come to their end
END_S = 30.0  # after which a request that goes on is an error


class LocalServer:
    """A session with a server in a thread. A subclass calls `use` with its application.

    Parameters
    ----------
    session : Session
    port : int
        0 takes a free one.
    host : str, optional
        Address on which it listens, by default one of this machine only.

    Attributes
    ----------
    origin : str
        Scheme, host and port.
    token : str
        Secret of this server.

    Raises
    ------
    InvalidInput
        If the port cannot be used.
    """

    def __init__(self, session: Session, port: int, host: str = ADDRESS) -> None:
        self.session = session
        require(0 <= port < 65_536, "port", f"{port}", "use 0 to 65535")
        self._socket = _listen(port, host)
        self.port = int(self._socket.getsockname()[1])
        self.origin = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self.token = secrets.token_urlsafe(24)

    def use(self, app: Any) -> None:
        """Take the application that answers requests."""
        import uvicorn

        from graphuq.labelling.connections import TimedProtocol  # imports uvicorn

        config = uvicorn.Config(
            app,
            http=TimedProtocol,
            ws="none",
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphuq-server", daemon=True)

    def _run(self) -> None:
        try:
            self._server.run([self._socket])
        finally:
            self._ended.set()

    def start(self) -> None:
        """Serve until `close`."""
        self.session.start()
        self._thread.start()
        until = time.monotonic() + START_S
        while not self._server.started and time.monotonic() < until:
            if self._ended.wait(0.01):
                break
        if not self._server.started:
            self.close()
            raise StorageError(f"no server could be started on port {self.port}; try another one")

    def wait(self) -> None:
        """Wait until the server is closed from another thread, or interrupted with Ctrl+C."""
        # An interrupted join would mark the thread as ended before Python 3.13, an event does not.
        while not self._ended.wait(0.5):
            pass

    def close(self) -> None:
        """Stop the server; all labels are in the file.

        Raises
        ------
        StorageError
            If a request does not come to its end. The file of labels is closed nevertheless.
        """
        self.session.stop()
        self._server.should_exit = True
        has_ended = self._thread.ident is None or self._ended.wait(STOP_S)
        if not has_ended:
            self._server.force_exit = True
            has_ended = self._ended.wait(END_S)
        self._socket.close()
        self.session.close()
        if not has_ended:
            raise StorageError(
                f"the server of port {self.port} did not end within {STOP_S + END_S:g} s, as a "
                "request goes on; all labels are stored, so end the program"
            )

    def __enter__(self: Server) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _listen(port: int, host: str) -> socket.socket:
    """Return a socket on an address."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise InvalidInput(
            "port", f"{port} of {host} ({error.strerror})", "use another port, or 0"
        ) from None
    return found
