"""Reports of commands without figures, which take most of the time of a small run."""

import pytest

from graphuq.report import figures as drawn


@pytest.fixture
def figures():
    """Ask for the report's figures. `tests/report` tests them."""


@pytest.fixture(autouse=True)
def leave_out_figures(request, monkeypatch):
    if "figures" not in request.fixturenames:
        monkeypatch.setattr(drawn, "themed_pictures", lambda picture: {"light": "", "dark": ""})
