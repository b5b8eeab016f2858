"""The verdict on a result, as commands say it."""

from dataclasses import replace

from graphuq.cli.facts import Facts
from graphuq.results.trust.base import Trust

COLOURS = {"green": "bold green", "amber": "bold yellow", "red": "bold red"}


def say_verdict(facts: Facts, trust: Trust, convergence: str | None = None) -> None:
    """Say how far to rely on a result, with its level in colour, and the reasons.

    Parameters
    ----------
    facts : Facts
    trust : Trust
    convergence : str, optional
        A sentence, which is printed first unless it is among the reasons.
    """
    checks = {
        name: replace(check, sentence=facts.in_options(check.sentence))
        for name, check in trust.checks.items()
    }
    facts.say(
        verdict={
            "level": trust.level,
            "headline": trust.headline,
            "convergence": convergence,
            "checks": checks,
        }
    )
    if facts.is_silent:
        return
    from rich.text import Text

    if convergence is not None and trust.checks["convergence"].ok:
        facts.show(convergence)
    facts.show(Text(trust.headline, style=COLOURS[trust.level]))
    facts.show(*(Text(f"- {facts.in_options(reason)}") for reason in trust.reasons))
