"""Connections of a server for one machine: half-open ones end, and there are never too many."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphuq.labelling.guard import HEADERS

MAX_CONNECTIONS = 200  # below the number of files that a process may open, 256 on some systems
REQUEST_S = 15.0  # in which a request must arrive, from its first byte to its last
RESPONSE_S = 60.0  # in which a client must read what it was sent


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with limits of time and of number.

    When there are too many connections, the oldest one without a whole request ends first.
    """

    _deadline: asyncio.TimerHandle | None = None  # of the request
    _stalled: asyncio.TimerHandle | None = None  # since the client does not read

    def connection_made(self, transport: Any) -> None:
        """Take a connection, and end another one if there are too many."""
        super().connection_made(transport)
        self._opened_at = self.loop.time()
        self._expect_request()
        known: set[Any] = self.connections  # those that were ended are still among them
        opened = [other for other in known if not other.transport.is_closing()]
        if len(opened) > MAX_CONNECTIONS:
            waiting = [other for other in opened if other._is_expecting]
            min(waiting, key=lambda other: other._opened_at, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        for timer in (self._deadline, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if self._is_expecting:
            self._expect_request()
        elif self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def pause_writing(self) -> None:
        """Wait for a client that does not read, but not for ever."""
        super().pause_writing()
        self._stalled = self.loop.call_later(RESPONSE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, with the headers of all other answers."""
        headers = {**HEADERS, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            parts = (h11.Response(status_code=400, headers=pairs), h11.Data(data=msg.encode()))
            for event in (*parts, h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _is_expecting(self) -> bool:
        """Whether a request has not come, or only a part of it."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self.transport.abort)
