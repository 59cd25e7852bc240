"""Which URLs a model can be reached by."""

import pytest
from refusing import refuses

from uwf_git.agentkit.llm.http_json import split_url


@pytest.mark.parametrize(
    "url",
    ["", "api.example.com/v1", "ftp://x", "http://", "http://x:port/", "http://[x", "file:///etc"],
)
def test_what_is_no_url_of_a_web_server_is_refused(url: str) -> None:
    with refuses("bad-url"):
        split_url(url)


def test_a_url_with_a_password_is_refused_without_showing_it() -> None:
    with refuses("bad-url") as caught:
        split_url("https://me:geheim@api.example.com/v1")
    assert "geheim" not in caught.value.message
    assert "api.example.com" in caught.value.message
