from collections.abc import Mapping
from typing import Any

import pytest

from uwf_git.store.remotes.remotes import RemoteUrl
from uwf_git.store.remotes.transport import request_safely
from uwf_git.store.remotes.transport_errors import RemoteFailed

HUB = "http://hub/t.git"
REMOTE = RemoteUrl("http", HUB)
HEADERS = {"Authorization": "Basic x", "Private-Token": "y", "Accept": "*/*"}


class Answer:
    """What a web server answers."""

    def __init__(self, place: str | None) -> None:
        self.status = 200 if place is None else 302
        self.headers = {} if place is None else {"Location": place}

    def geturl(self) -> str:
        raise NotImplementedError

    def close(self) -> None:
        """Be closed."""


def ask(places: Mapping[str, str], method: str = "GET") -> tuple[str, list[tuple[str, list[str]]]]:
    """Ask for the hub where servers redirect as *places* say; return the end, and what was sent."""
    sent: list[tuple[str, list[str]]] = []

    def request(_method: str, url: str, *, redirect: bool, headers: Mapping[str, str]) -> Answer:
        assert not redirect
        sent.append((url, list(headers)))
        return Answer(places.get(url))

    private = {"private-token"}
    answer: Any = request_safely(
        request, method, HUB, remote=REMOTE, private=private, headers=HEADERS
    )
    return answer.geturl(), sent


def test_without_redirect_everything_is_sent() -> None:
    assert ask({}) == (HUB, [(HUB, list(HEADERS))])


@pytest.mark.parametrize("place", ["/u.git", "http://hub:80/u.git"])
def test_same_server_gets_everything(place: str) -> None:
    end, sent = ask({HUB: place})
    assert end.endswith("/u.git")
    assert [headers for _url, headers in sent] == [list(HEADERS)] * 2


@pytest.mark.parametrize(
    "place", ["http://other/t.git", "https://hub/t.git", "http://hub:81/t.git", "//other/t.git"]
)
def test_another_server_gets_nothing_private(place: str) -> None:
    _end, sent = ask({HUB: place})
    assert [headers for _url, headers in sent] == [list(HEADERS), ["Accept"]]


def test_nothing_private_comes_back_from_another_server() -> None:
    end, sent = ask({HUB: "http://other/", "http://other/": "http://hub/v.git"})
    assert end == "http://hub/v.git"
    assert sent[-1] == (end, ["Accept"])


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://hub/", "ssh://hub/x"])
def test_what_is_not_on_the_web_is_not_asked(place: str) -> None:
    with pytest.raises(RemoteFailed, match="not on the web"):
        ask({HUB: place})


def test_redirects_end() -> None:
    with pytest.raises(RemoteFailed, match="without end"):
        ask({HUB: HUB})


def test_only_the_first_question_is_redirected() -> None:
    assert ask({HUB: "http://other/"}, "POST")[0] == HUB
