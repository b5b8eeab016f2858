"""Commands that other distributions add, by an entry point of the group ``graphuq.commands``."""

from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from graphuq.cli.facts import with_json
from graphuq.errors import InvalidInput

GROUP = "graphuq.commands"
SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": "markdown",
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
}
OF_PAPERS = ("moving-ball", "reproduce", "track")  # commands of graphuq-papers


class Commands(TyperGroup):
    """The commands of graphuq, and after these the added ones, which are imported when used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *sorted(set(_added()) - set(self.commands))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or None.

        Raises
        ------
        InvalidInput
            If it is a command of graphuq-papers, which is not installed.
        """
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        added = _added().get(cmd_name)
        if added is None and cmd_name in OF_PAPERS:
            raise InvalidInput(
                "COMMAND",
                f"{cmd_name!r} is a command of graphuq-papers, which is not installed",
                "run pip install ./papers in a checkout of graphuq",
            )
        return None if added is None else _command(added)


def _added() -> dict[str, Any]:
    """Return the entry points by the names of their commands."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _command(point: Any) -> Any:
    """Return the command of an entry point, which names a function with typer's annotations."""
    alone = typer.Typer(**SETTINGS)
    alone.command(point.name)(with_json(point.load()))
    return typer.main.get_command(alone)
