import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.secret_forms import find_forms


@pytest.mark.parametrize(
    "form",
    [
        "a+b/c=é d'1",
        "a%2Bb%2Fc%3D%C3%A9%20d%271",
        "a%2bb%2fc%3d%c3%a9%20d%271",
        "a%2Bb/c%3D%C3%A9%20d%271",
        "a%2Bb%2Fc%3D%C3%A9+d%271",
        # encodeURIComponent, encodeURI
        "a%2Bb%2Fc%3D%C3%A9%20d'1",
        "a+b/c=%C3%A9%20d'1",
        # json.dumps, json_encode of PHP
        r"a+b/c=\u00e9 d'1",
        r"a+b\/c=\u00e9 d'1",
        "YStiL2M9w6kgZCcx",
    ],
)
def test_spellings_of_other_programs_are_among_them(form: str) -> None:
    assert form in find_forms(("a+b/c=é d'1",))


def test_plain_token_has_few_spellings() -> None:
    forms = find_forms(("sk-0123456789",))

    # In base64 at three places, and at the end of a text with padding and without.
    assert len(forms) <= 12
    assert {"sk-0123456789", "c2stMDEyMzQ1Njc4OQ", "c2stMDEyMzQ1Njc4OQ=="} <= forms
    assert "c2stMDEyMzQ1Njc4OQ%3D%3D" in forms


def test_short_password_is_known_in_base64() -> None:
    assert "aHVudGVy" in find_forms(("hunter",))


def test_short_pieces_of_base64_are_none() -> None:
    assert all(len(form) >= 8 for form in find_forms(("abc",)) - {"abc"})


@given(st.text(min_size=8, max_size=20), st.binary(max_size=5), st.binary(max_size=5))
def test_each_encoder_yields_one_of_them(secret: str, before: bytes, after: bytes) -> None:
    forms = find_forms((secret,))
    data = secret.encode()

    assert {quote(secret), quote(secret, safe=""), quote_plus(secret)} <= forms
    assert {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]} <= forms
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(before + data + after).decode()
        assert any(len(form) >= len(data) and form in encoded for form in forms)
