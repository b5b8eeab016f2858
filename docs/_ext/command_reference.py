"""Directive ``command-reference``: all commands and options, as the commands declare them."""

import re

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.util.nodes import nested_parse_with_titles


def help_lines(text):
    """Return the help of a command; an example is a line of its own that can be copied."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        words = " ".join(paragraph.split())
        if words.startswith("Example: "):
            lines += ["Example::", "", f"    {words.removeprefix('Example: ')}", ""]
        else:
            lines += [paragraphs(words), ""]
    return lines


def paragraphs(text):
    """Return a help text as reStructuredText: bare ``--options``, addresses, code are literal."""
    text = re.sub(r"`+([^`]+)`+", r"``\1``", text.replace("\b", ""))
    text = re.sub(r"(?<![`\w-])(--?[a-z][\w-]*)(?![\w`-])", r"``\1``", text)
    text = re.sub(r"(?<!`)(tcp://[\w:]+)", r"``\1``", text)
    return text.replace("*", r"\*")


def default_of(option):
    """Return what the help says about the default, or nothing."""
    if option.required:
        return " Required."
    if isinstance(option.show_default, str):
        return f" Default: ``{option.show_default}``."
    if option.default in (None, False, (), []) or callable(option.default):
        return ""
    return f" Default: ``{option.default}``."


def option_lines(option):
    """Return the lines of one option or argument."""
    is_argument = option.param_type_name == "argument"
    names = [option.metavar or option.name.upper()]
    if not is_argument:
        names = [*option.opts, *option.secondary_opts]
    value = "" if is_argument or option.is_flag else option.metavar or "value"
    text = " ".join(paragraphs(getattr(option, "help", None) or "").split())
    heading = ", ".join(f"``{name}``" for name in names)
    kind = f" *{value.strip('[]<>')}*" if value else ""
    return [heading + kind, f"    {text}{default_of(option)}", ""]


def command_lines(name, command):
    """Return the page section of one command."""
    title = f"graphuq {name}"
    lines = [title, "-" * len(title), "", *help_lines(command.help or "")]
    panels = {}
    for option in command.params:
        if getattr(option, "hidden", False):
            continue
        usual = "Arguments" if option.param_type_name == "argument" else "Options"
        panel = getattr(option, "rich_help_panel", None) or usual
        panels.setdefault(panel, []).extend(option_lines(option))
    for panel, body in panels.items():
        lines += [f".. rubric:: {panel}", "", *body]
    return lines


class CommandReference(Directive):
    """Sections for all commands of ``graphuq``."""

    def run(self):
        """Return the sections."""
        import typer

        from graphuq.cli.app import app

        group = typer.main.get_command(app)
        lines = [
            line
            for name in group.list_commands(None)
            if not (command := group.get_command(None, name)).hidden
            for line in command_lines(name, command)
        ]
        parent = nodes.section()
        parent.document = self.state.document
        source = self.state_machine.get_source_and_line(self.lineno)[0]
        nested_parse_with_titles(self.state, StringList(lines, source), parent)
        return parent.children


def setup(app):
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
