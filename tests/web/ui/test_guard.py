"""Who is answered, from the head of a request alone."""

import pytest

from uwf_git.web.ui.answers import RequestHead, check_head, is_asset


def status(method: str = "GET", path: str = "/api/about", **headers: str) -> int:
    """Return the status of a refusal, or 200; ``sec_fetch_site=`` changes a header."""
    given = {"host": "localhost:1", "authorization": "Bearer right"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    refusal = check_head(RequestHead(method, path, pairs), "right", is_open=is_asset(path))
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:65535", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:1", 200),
        ("", 421),
        ("127.0.0.1:", 421),
        ("127.0.0.1:x", 421),
        ("127.0.0.1@evil.example", 421),
        ("127.0.0.2", 421),
        ("127.0.0.1\n", 421),
        ("[::2]", 421),
    ],
)
def test_host(host: str, expected: int) -> None:
    assert status(host=host) == expected


@pytest.mark.parametrize(
    ("token", "expected"),
    [("Bearer right", 200), ("bearer  right ", 200), ("right", 401), ("Bearer righ", 401),
     ("Bearer", 401), ("Bearer wr\u00f6ng", 401), ("", 401)],
)  # fmt: skip
def test_token(token: str, expected: int) -> None:
    assert status(authorization=token) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("application/json", 200), ('Application/JSON; charset="UTF-8"', 200),
     ("application/json; charset=latin-1", 415), ("text/json", 415), ("", 415)],
)  # fmt: skip
def test_type_of_a_body(kind: str, expected: int) -> None:
    assert status("POST", content_type=kind) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [("0", 200), ("4194304", 200), ("4194305", 413), ("-1", 413), ("9" * 5000, 413), ("x", 413)],
)
def test_length_of_a_body(length: str, expected: int) -> None:
    assert status("POST", content_type="application/json", content_length=length) == expected


def test_page_is_opened_in_a_tab_from_anywhere_and_nothing_else() -> None:
    opened = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}

    assert status(path="/", **opened, sec_fetch_dest="document") == 200
    assert status("POST", "/", **opened, sec_fetch_dest="document") == 403
    assert status(path="/", **opened, sec_fetch_dest="iframe") == 403
    assert status(path="/app.js", **opened, sec_fetch_dest="document") == 403
    assert status(**opened, sec_fetch_dest="document") == 403
    assert status(origin="http://localhost:1", sec_fetch_site="same-origin") == 200
    assert status(origin="https://localhost:1") == 403
