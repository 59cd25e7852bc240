"""Which proxy a host is reached by."""

import pytest
from refusing import refuses

from uwf_git.agentkit.llm.http_proxy import Proxy, find_proxy

FAR = "api.example.com"


def test_a_proxy_is_found_by_the_scheme_of_the_url() -> None:
    environ = {"https_proxy": "http://secure:1", "http_proxy": "http://plain:2"}
    assert find_proxy("https", FAR, 443, environ) == Proxy("secure", 1, None)
    assert find_proxy("http", FAR, 80, environ) == Proxy("plain", 2, None)


def test_a_lower_case_name_wins_and_upper_case_counts() -> None:
    assert find_proxy("http", FAR, 80, {"HTTP_PROXY": "a:1", "http_proxy": "b:2"}) == Proxy(
        "b", 2, None
    )
    assert find_proxy("https", FAR, 443, {"ALL_PROXY": "http://c"}) == Proxy("c", 80, None)


def test_an_empty_variable_is_none() -> None:
    assert find_proxy("http", FAR, 80, {"http_proxy": "", "HTTP_PROXY": ""}) is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_needs_no_proxy(host: str) -> None:
    assert find_proxy("http", host, 8080, {"http_proxy": "http://p:1"}) is None


@pytest.mark.parametrize(
    "no_proxy",
    ["*", "example.com", ".example.com", "*.example.com", "x, api.example.com", "EXAMPLE.com:443"],
)
def test_no_proxy_excepts_a_host(no_proxy: str) -> None:
    assert find_proxy("https", FAR, 443, {"https_proxy": "p:1", "no_proxy": no_proxy}) is None


@pytest.mark.parametrize("no_proxy", ["", ",", "ample.com", "example.com:80", "other.org"])
def test_no_proxy_excepts_no_other_host(no_proxy: str) -> None:
    environ = {"https_proxy": "p:1", "no_proxy": no_proxy}
    assert find_proxy("https", FAR, 443, environ) == Proxy("p", 1, None)


def test_a_login_is_taken_out_of_the_url() -> None:
    environ = {"http_proxy": "http://me:s%40crt@p:3128"}
    assert find_proxy("http", FAR, 80, environ) == Proxy("p", 3128, "me:s@crt")


@pytest.mark.parametrize("value", ["socks5://p:1", "http://", "http://p:port", "http://[p"])
def test_another_kind_of_proxy_is_refused_without_its_password(value: str) -> None:
    with refuses("bad-proxy") as caught:
        find_proxy("http", FAR, 80, {"http_proxy": value.replace("//", "//me:geheim@")})
    assert "http_proxy" in caught.value.message
    assert "geheim" not in caught.value.message
