import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uwf_git.engine.masking import (
    find_forms,
    find_secrets_in,
    mask,
    read_all,
    take_fingerprints,
)

KEY = "sk-ant_0123/456+789"
SALT = b"0123456789abcdef"


def as_percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def as_unicode(text: str) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in text)


def as_bytes(text: str) -> str:
    return "".join(f"\\x{byte:02X}" for byte in text.encode())


def as_octal(text: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in text.encode())


def as_entities(text: str) -> str:
    return "".join(f"&#{ord(each)};" for each in text)


def as_hexadecimal(text: str) -> str:
    return "".join(f"&#X00{ord(each):x}" for each in text) + ";"


def as_names(text: str) -> str:
    return text.replace("_", "&lowbar;").replace("/", "&sol;").replace("+", "&plus;")


def as_markdown(text: str) -> str:
    return f"{text[:2]}\\{text[2]}**{text[3:6]}**`{text[6:]}`"


SPELLINGS: list[Callable[[str], str]] = [
    str,
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: quote(text, safe="").lower(),
    json.dumps,
    lambda text: json.dumps(text).replace("/", "\\/"),
    html.escape,
    as_percent,
    as_unicode,
    as_bytes,
    as_octal,
    as_entities,
    as_hexadecimal,
    as_names,
    as_markdown,
]


@pytest.mark.parametrize("outer", [str, json.dumps, html.escape, as_percent])
@pytest.mark.parametrize("inner", SPELLINGS)
def test_each_spelling_is_masked_and_found_in_any_other(
    inner: Callable[[str], str], outer: Callable[[str], str]
) -> None:
    spelled = outer(f"<{inner(KEY)}>")
    masked = mask(f"key: {spelled}", (KEY,))

    assert masked.startswith("key: ")
    assert masked.count("[masked]") == 1
    # What is left are the marks around it.
    assert len(masked) - len(outer("<>")) < 35
    assert KEY in find_secrets_in(spelled.encode(), take_fingerprints([KEY], SALT))


# Where two of them meet, no mark of one begins an escape of the other.
@given(st.lists(st.sampled_from(SPELLINGS[8:-1]), min_size=len(KEY), max_size=len(KEY)))
def test_no_mixture_of_spellings_hides_a_key(spell: list[Callable[[str], str]]) -> None:
    spelled = "".join(each(letter) for each, letter in zip(spell, KEY, strict=True))

    assert mask(f"<{spelled}>", (KEY,)).strip(";") in {"<[masked]>", "<[masked];>"}
    assert find_secrets_in(spelled.encode(), take_fingerprints([KEY], SALT)) == (KEY,)


def test_key_that_holds_what_looks_like_escapes_is_known() -> None:
    key = r"a\qb%41c\\d&amp;ef"

    for spelled in (key, json.dumps(key)[1:-1], quote(key), html.escape(key), as_percent(key)):
        assert mask(f"<{spelled}>", (key,)) == "<[masked]>"
        assert find_secrets_in(spelled.encode(), take_fingerprints([key], SALT))


def test_short_pieces_of_base64_are_none() -> None:
    assert all(len(form) >= 8 for form in find_forms(("abc",)) - {b"abc"})


@example("000000\\0", b"", b"")
@given(st.text(min_size=8, max_size=20), st.binary(max_size=5), st.binary(max_size=5))
def test_each_encoder_yields_what_is_found(secret: str, before: bytes, after: bytes) -> None:
    data = secret.encode()
    for encode in (quote, quote_plus, json.dumps):
        assert "[masked]" in mask(encode(secret), (secret,))
    for encode_64 in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode_64(before + data + after).decode()
        masked = mask(encoded, (secret,))
        assert "[masked]" in masked
        assert len(masked) < (len(before) + len(after) + 3) * 4 / 3 + 10


def test_reading_ends_however_deep_a_text_is_encoded() -> None:
    deep = b"%" + b"25" * 100_000 + b"41"

    assert len(read_all(deep)) <= 9
