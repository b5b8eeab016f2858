"""Checks of every request, and headers of every response."""

import dataclasses
import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphuq.labelling.address import COOKIE, path_of

HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
MAX_BODY = 1_000_000  # bytes of a request

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclasses.dataclass(frozen=True)
class Admission:
    """What a door says of a request.

    Attributes
    ----------
    refusal : Response or None
        The answer, if the request does not come in.
    cookie : str or None
        Cookie that the answer sets.
    """

    refusal: Response | None = None
    cookie: str | None = None


class Door(ABC):
    """Middleware that lets some requests in, and gives every answer the headers of safety.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @abstractmethod
    def admit(self, scope: Scope, headers: Headers) -> Admission:
        """Return whether a request comes in."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        if scope["type"] != "http":
            return  # a web socket, which the page does not use
        admission = self.admit(scope, Headers(scope=scope))
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                sent.update(self.headers)
                if admission.cookie is not None:
                    sent.append("Set-Cookie", admission.cookie)
            await send(message)

        try:
            await (admission.refusal or self._app)(scope, receive, send_with_headers)
        except Exception:
            if not started:
                await PlainTextResponse("An error.", 500)(scope, receive, send_with_headers)
            raise

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every answer."""
        return HEADERS


class Guard(Door):
    """Lets in requests of this machine that know the token.

    The Host must be a name of this machine, which defeats DNS rebinding. The token comes in the
    address once, and then in a cookie that scripts and other sites cannot use. Browsers send a
    cookie to all ports of a host, so it is only for paths below one that nobody can guess. A
    request that changes something must come from the page itself (Origin), as JSON of limited size.

    Parameters
    ----------
    app : ASGI application
    token : str
        Secret of the page.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        super().__init__(app)
        self._token = token

    def admit(self, scope: Scope, headers: Headers) -> Admission:
        """Return whether a request comes in."""
        if not host_is_local(headers):
            return Admission(PlainTextResponse("This page is only for its own machine.", 421))
        if (refusal := refused_site(scope, headers)) is not None:
            return Admission(refusal)
        welcome = self._is_welcome(scope)
        if not welcome and not self._has_cookie(headers):
            text = "Open the address that graphuq printed; it holds the token of this page."
            return Admission(PlainTextResponse(text, 403))
        refusal = refused_change(scope, headers, f"http://{headers['host']}")
        return Admission(refusal, self._new_cookie if welcome else None)

    def _is_welcome(self, scope: Scope) -> bool:
        """Return whether the address of the page has the token, in exchange for a cookie.

        There is no redirection: a browser that comes from another site would not send the cookie.
        """
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return scope["path"] == "/" and scope["method"] == "GET" and self._knows(given[0])

    @property
    def _new_cookie(self) -> str:
        path = path_of(self._token)
        return f"{COOKIE}={self._token}; HttpOnly; Path={path}; SameSite=Strict"

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    def _has_cookie(self, headers: Headers) -> bool:
        """Return whether a cookie has the token; a page on another port may have set more."""
        return any(self._knows(value) for value in cookies_of(headers, COOKIE))


def cookies_of(headers: Headers, name: str) -> list[str]:
    """Return the values of all cookies of a name."""
    cookies = ";".join(headers.getlist("cookie")).split(";")
    pairs = [cookie.strip().partition("=") for cookie in cookies]
    return [value for found, _, value in pairs if found == name]


def refused_site(scope: Scope, headers: Headers) -> Response | None:
    """Return the answer to a request that another site caused, or None."""
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin") and scope["path"] != "/":
        return PlainTextResponse("Requests of other sites are refused.", 403)
    return None


def host_is_local(headers: Headers) -> bool:
    """Return whether a request names this machine as its host, which defeats DNS rebinding."""
    hosts = headers.getlist("host")
    return len(hosts) == 1 and HOST.fullmatch(hosts[0].lower()) is not None


def has_length(headers: Headers) -> bool:
    """Return whether a request says how long its content is; it cannot be longer then."""
    length = headers.get("content-length", "")
    return "transfer-encoding" not in headers and re.fullmatch("[0-9]{1,15}", length) is not None


def refused_change(scope: Scope, headers: Headers, origin: str) -> Response | None:
    """Return the answer to a change that does not come from the page, or is no JSON, or None."""
    if scope["method"] in ("GET", "HEAD"):
        return None
    if headers.get("origin") != origin:
        return PlainTextResponse("Changes must come from the page itself.", 403)
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return PlainTextResponse("Send JSON.", 415)
    if not has_length(headers):
        return PlainTextResponse("Name the length of the content.", 411)
    if int(headers["content-length"]) > MAX_BODY:
        return PlainTextResponse(f"At most {MAX_BODY} bytes.", 413)
    return None
