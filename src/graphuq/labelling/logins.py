"""People who log in with a password: sessions, and the door of a page behind a proxy."""

import asyncio
import dataclasses
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Scope

from graphuq.errors import StorageError
from graphuq.labelling.accounts import MAX_PASSWORD, Accounts
from graphuq.labelling.guard import (
    HEADERS,
    Admission,
    Door,
    cookies_of,
    refused_change,
    refused_site,
)
from graphuq.labelling.json_requests import json_answer, object_of

USER = "graphuq.user"  # key of the scope of a request: who logged in
IDLE_S = 12 * 3600.0  # after which a login ends
MAX_LOGINS = 1_000
MAX_TRIES, PAUSE_S = 5, 60.0  # wrong passwords for one name, and the pause after them
MAX_NAMES = 10_000  # whose wrong passwords are counted
AT_ONCE = 2  # passwords that are checked at the same time, which needs 32 MiB each
MAX_WAITING = 20
OPEN = ("/login", "/static/label.css", "/static/login.js", "/static/icon.svg")


@dataclasses.dataclass
class _Login:
    user: str
    mark: str  # of the password, which ends the login when it changes
    seen: float


class Logins:
    """Who is logged in.

    Parameters
    ----------
    accounts : Accounts
    origin : str
        Scheme, host and port of the page, as browsers see it.
    """

    def __init__(self, accounts: Accounts, origin: str) -> None:
        self.accounts, self.origin = accounts, origin
        self.is_secure = origin.startswith("https://")
        # Browsers take a cookie of this prefix only from the host itself, and only through TLS.
        self.cookie = "__Host-graphuq" if self.is_secure else "graphuq-login"
        self._logins: OrderedDict[str, _Login] = OrderedDict()
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._places, self._waiting = asyncio.Semaphore(AT_ONCE), 0

    def user_of(self, headers: Headers) -> str | None:
        """Return who sends a request, or None."""
        for token in cookies_of(headers, self.cookie):
            key = _digest(token)
            login = self._logins.get(key)
            if login is None:
                continue
            is_old = time.monotonic() - login.seen > IDLE_S
            if is_old or self._mark_of(login.user) != login.mark:
                del self._logins[key]
                continue
            login.seen = time.monotonic()
            return login.user
        return None

    async def log_in(self, request: Request) -> Response:
        """Answer a name and a password with a cookie."""
        body = await object_of(request)
        name, password = body.get("user"), body.get("password")
        if not isinstance(name, str) or not isinstance(password, str):
            return json_answer({"error": "user, password: not text; send both"}, 400)
        name = name.strip()
        if self._must_wait(name) or self._waiting >= MAX_WAITING:
            return json_answer({"error": "Too many tries. Wait a minute."}, 429)
        self._note_wrong(name)  # until it is known to be right, against tries at the same time
        self._waiting += 1
        try:
            async with self._places:
                fits = len(password) <= MAX_PASSWORD and await run_in_threadpool(
                    self._knows, name, password
                )
        finally:
            self._waiting -= 1
        mark = self._mark_of(name)
        if not fits or mark is None:
            return json_answer({"error": "Name or password is wrong."}, 401)
        self._wrong.pop(name, None)
        token = secrets.token_urlsafe(32)
        self._logins[_digest(token)] = _Login(name, mark, time.monotonic())
        while len(self._logins) > MAX_LOGINS:
            self._logins.popitem(last=False)
        answer = json_answer({"user": name})
        answer.headers["Set-Cookie"] = self._set(token, int(IDLE_S))
        return answer

    async def log_out(self, request: Request) -> Response:
        """End a login."""
        await object_of(request)
        for token in cookies_of(request.headers, self.cookie):
            self._logins.pop(_digest(token), None)
        answer = json_answer({})
        answer.headers["Set-Cookie"] = self._set("", 0)
        return answer

    def _mark_of(self, name: str) -> str | None:
        """Return the mark of a password; None for all while the file of users cannot be read."""
        try:
            return self.accounts.mark_of(name)
        except StorageError:
            return None

    def _knows(self, name: str, password: str) -> bool:
        try:
            return self.accounts.knows(name, password)
        except StorageError:
            return False

    def _set(self, token: str, seconds: int) -> str:
        secure = "; Secure" if self.is_secure else ""
        kept = f"Path=/; SameSite=Strict; Max-Age={seconds}{secure}"
        return f"{self.cookie}={token}; HttpOnly; {kept}"

    def _must_wait(self, name: str) -> bool:
        n, latest = self._wrong.get(name[:100], (0, 0.0))
        return n >= MAX_TRIES and time.monotonic() - latest < PAUSE_S

    def _note_wrong(self, name: str) -> None:
        n, _ = self._wrong.pop(name[:100], (0, 0.0))
        self._wrong[name[:100]] = n + 1, time.monotonic()
        while len(self._wrong) > MAX_NAMES:
            self._wrong.popitem(last=False)


class LoginDoor(Door):
    """Lets in requests of people who are logged in.

    The Host must be that of the page, changes must come from the page itself, and the cookie is
    one that scripts and other sites cannot use. Headers of a proxy are not believed.

    Parameters
    ----------
    app : ASGI application
    logins : Logins
    welcome : str
        Page that asks for name and password.
    """

    def __init__(self, app: ASGIApp, logins: Logins, welcome: str) -> None:
        super().__init__(app)
        self._logins, self._welcome = logins, welcome
        self._host = logins.origin.partition("://")[2].lower()

    def admit(self, scope: Scope, headers: Headers) -> Admission:
        """Return whether a request comes in."""
        hosts = [host.lower() for host in headers.getlist("host")]
        if hosts != [self._host]:
            return Admission(PlainTextResponse("This page has another name.", 421))
        refusal = refused_site(scope, headers) or refused_change(
            scope, headers, self._logins.origin
        )
        if refusal is not None:
            return Admission(refusal)
        user = self._logins.user_of(headers)
        if user is None and scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            return Admission(HTMLResponse(self._welcome))
        if user is None and scope["path"] not in OPEN:
            return Admission(PlainTextResponse("Log in first.", 403))
        scope[USER] = user
        return Admission()

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every answer."""
        if not self._logins.is_secure:
            return HEADERS
        return {**HEADERS, "Strict-Transport-Security": "max-age=31536000"}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def name_of(scope: Mapping[str, Any]) -> str | None:
    """Return who logged in, or None on a page without logins."""
    user = scope.get(USER)
    return None if user is None else str(user)
