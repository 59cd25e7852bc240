"""`uwf ui`: what it says when it cannot begin, and how it opens a browser."""

import socket
import sys

import pytest
from cli.program import Uwf

from uwf_git.web.ui import application as serve
from uwf_git.web.ui.application import Listening


def test_without_the_extra_it_says_what_to_install(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("uwf_git.web.ui")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    ran = uwf("ui").refused(1, "needs a package that is not installed: uvicorn")
    assert "pip install 'uwf[ui]'" in ran.err


def test_port_that_is_taken_is_named(uwf: Uwf) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        ran = uwf("ui", "--no-open", "--port", str(port))

    assert ran.status == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in ran.err


def test_standard_output_may_be_closed(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
    listening = Listening("http://127.0.0.1:1", 1, "page")
    monkeypatch.setattr(serve, "serve", lambda _request, tell: tell(listening))
    monkeypatch.setattr(sys, "stdout", None)

    assert uwf("ui", "--no-open").status == 0
