"""``graphuq label-user`` and ``graphuq label-report``: people of a labelling page, and a report."""

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from graphuq.cli.facts import the_facts
from graphuq.errors import InvalidInput

LABELS_FILE = "labels.jsonl"


def label_user(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of users; it is made if it is missing.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the person.")],
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the person, who is then logged out.")
    ] = False,
) -> None:
    """Add a person who may log in to graphuq label --users FILE, or change a password.

    The password is asked for, or read from the first line of the standard input. The file holds
    slow hashes (scrypt) with salt.

    Example: graphuq label-user users.json ada
    """
    from graphuq.labelling.accounts import remove_user, set_password

    if remove:
        remove_user(file, name)
        the_facts().say("'{file}' has no {user} now", file=file, user=name, removed=True)
        return
    set_password(file, name, _password(name))
    the_facts().say("'{file}' has a password of {user}", file=file, user=name, removed=False)


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Again: ") != password:
        raise InvalidInput("password", "two different ones", "type the same twice")
    return password


def label_report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Output folder of graphuq label, or labels.jsonl."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="HTML file to write.",
            show_default="none; the report is printed",
        ),
    ] = None,
) -> None:
    """Print who labelled what in a campaign, agreement, audits, and what is left; change nothing.

    Labels that the table of items had are not in the file, and are not counted.

    Example: graphuq label-report out -o campaign.html
    """
    from graphuq.labelling.campaign import campaign_lines, read_campaign
    from graphuq.utils.extras import require_extra
    from graphuq.utils.files import atomic_write

    require_extra("label")
    path = folder / LABELS_FILE if folder.is_dir() else folder
    campaign = read_campaign(path)
    facts = the_facts()
    shown = {"lines": "\n".join(campaign_lines(campaign))}
    facts.say("{lines}", campaign=campaign, shown=shown)
    if output is not None:
        from graphuq.labelling.campaign_page import campaign_page

        with atomic_write(output) as temporary:
            temporary.write_text(campaign_page(campaign, path.parent.name), encoding="utf-8")
        facts.wrote(output)
