"""The verdict on a result, as commands say it."""

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
    facts.say(
        verdict={
            "level": trust.level,
            "headline": trust.headline,
            "convergence": convergence,
            "checks": dict(trust.checks),
        }
    )
    if facts.is_silent:
        return
    from rich.text import Text

    if convergence is not None and trust.checks["convergence"].ok:
        facts.show(convergence)
    facts.show(Text(trust.headline, style=COLOURS[trust.level]))
    facts.show(*(Text(f"- {reason}") for reason in trust.reasons))
