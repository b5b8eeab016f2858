"""Where a page for several people is, and who may open it."""

import dataclasses
import ipaddress
import re
from pathlib import Path

from graphuq.errors import InvalidInput, require

ADDRESS = "127.0.0.1"  # of this machine only
ORIGIN = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:]{2,39}\])(:[0-9]{1,5})?")


@dataclasses.dataclass(frozen=True)
class Hosting:
    """A page behind a proxy, for people who log in.

    The proxy holds the certificate, and passes requests on with their Host. Browsers see
    ``origin``; the page listens on ``host``.

    Parameters
    ----------
    users : path
        File of people and passwords, which ``graphuq label-user`` makes.
    origin : str
        Address that browsers open, such as ``https://labels.example.org``.
    host : str, default "127.0.0.1"
        Address on which the page listens: of this machine, or of a network if the proxy runs on
        another machine.
    plain_http : bool, default False
        Allow an origin without TLS. Passwords and labels can then be read on their way.

    Raises
    ------
    InvalidInput
        If the origin is none, or is not ``https`` without ``plain_http``, or the host is no
        address.
    """

    users: str | Path
    origin: str
    host: str = ADDRESS
    plain_http: bool = False

    def __post_init__(self) -> None:
        found = ORIGIN.fullmatch(self.origin)
        remedy = "give scheme and name, such as https://labels.example.org"
        require(found is not None, "origin", f"{self.origin[:80]!r}", remedy)
        if self.origin.startswith("http://") and not self.plain_http:
            raise InvalidInput(
                "origin",
                f"{self.origin!r} has no TLS, so that others can read passwords",
                "use a proxy with https, or say plain_http=True (--plain-http)",
            )
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            remedy = "give an address, such as 127.0.0.1 or 0.0.0.0"
            raise InvalidInput("host", f"{self.host[:80]!r}", remedy) from None
