import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.engine.masking import (
    _AFTER,
    _KEY,
    _may_have,
    find_forms,
    find_secrets,
    find_secrets_in,
    find_unsettled,
    mask,
    mask_bytes,
    mask_keys,
    mask_keys_in,
    mask_value,
    read_all,
    take_fingerprints,
)

NAMES_OF_KEYS = Path(__file__).parent / "made_up" / "names_of_keys.json"


KEY = "sk-ant-0123456789abcdef"


def test_keys_are_told_by_their_names(golden: Callable[[str, str], None]) -> None:
    answers = {
        "find_secrets": lambda name, value: find_secrets({name: value}),
        "mask_keys": mask_keys,
        "mask_keys_in": lambda name: mask_keys_in({name: "PROJ-12", "n": {name: 12}}),
        "find_unsettled": lambda output: find_unsettled(output.encode(), (KEY,)),
    }
    golden("engine/names_of_keys.txt", tell_cases(NAMES_OF_KEYS, answers))


def test_lines_of_a_key_are_secrets_each() -> None:
    lines = ["b3BlbnNzaC1rZXktdjEAAAAA", "QyNTUxOQAAACBxYz1234abcd", "AQ=="]
    pem = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])

    secrets = find_secrets({"DEPLOY_KEY": pem + "\n"})

    assert set(secrets) == {pem, *lines[:2]}
    assert mask(f"key:\n{pem}\nend", secrets) == "key:\n[masked]\nend"
    assert mask("\n".join(f"    {line}" for line in lines), secrets) == (
        "    [masked]\n    [masked]\n    AQ=="
    )


@given(st.text("ab\n \r\\n", max_size=30), st.sampled_from(["abab", "aab"]))
def test_no_line_break_hides_a_secret(text: str, secret: str) -> None:
    masked = mask(text, (secret,))

    def says(each: str) -> bool:
        return any(secret.encode() in reading for reading in read_all(each.encode()))

    assert not any(says(part) for part in masked.split("[masked]"))
    if not says(text):
        assert masked == text


def test_variable_that_is_no_text_is_masked() -> None:
    value = b"k\xffy-0123456789"
    secrets = find_secrets({"MY_KEY": value.decode(errors="surrogateescape")})

    assert mask_bytes(b"<" + value + b">", secrets) == b"<[masked]>"
    assert mask(value.decode(errors="replace"), secrets) == "[masked]"


def test_keys_that_become_equal_are_numbered() -> None:
    value = {f"{KEY}": 1, f"{KEY}{KEY}": 2, "[masked] 2": 3, "x": 4}

    assert mask_value(value, (KEY,)) == {"[masked]": 1, "[masked] 3": 2, "[masked] 2": 3, "x": 4}


def test_texts_of_a_value_are_masked_and_nothing_else() -> None:
    value = {"a": [f"x {KEY}", 1, None, True], KEY: {"b": KEY}}

    assert mask_value(value, (KEY,)) == {
        "a": ["x [masked]", 1, None, True],
        "[masked]": {"b": "[masked]"},
    }
    assert mask_value(value, ()) is value


def test_bytes_that_are_no_text_stay_as_they_were() -> None:
    assert mask_bytes(b"\xff" + KEY.encode() + b"\xfe\n", (KEY,)) == b"\xff[masked]\xfe\n"
    assert mask_bytes(b"\xff\xfe", (KEY,)) == b"\xff\xfe"


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_no_secret_is_left_and_nothing_else_is_lost(text: str, secrets: list[str]) -> None:
    masked = mask(text, secrets)

    assert not any(secret in part for part in masked.split("[masked]") for secret in secrets)
    assert "".join(masked.split("[masked]")).count("a") <= text.count("a")
    if not any(secret in text for secret in secrets):
        assert masked == text


def test_secret_in_which_another_one_may_begin_is_unsettled_whole() -> None:
    assert find_unsettled(b"x abcdefgh", ("abcdefgh", "gh012345")) == 2


KEY_FORMS = "sk-ant_0123/456+789"
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
    spelled = outer(f"<{inner(KEY_FORMS)}>")
    masked = mask(f"key: {spelled}", (KEY_FORMS,))

    assert masked.startswith("key: ")
    assert masked.count("[masked]") == 1
    # What is left are the marks around it.
    assert len(masked) - len(outer("<>")) < 35
    assert KEY_FORMS in find_secrets_in(spelled.encode(), take_fingerprints([KEY_FORMS], SALT))


# Where two of them meet, no mark of one begins an escape of the other.
@given(st.lists(st.sampled_from(SPELLINGS[8:-1]), min_size=len(KEY_FORMS), max_size=len(KEY_FORMS)))
def test_no_mixture_of_spellings_hides_a_key(spell: list[Callable[[str], str]]) -> None:
    spelled = "".join(each(letter) for each, letter in zip(spell, KEY_FORMS, strict=True))

    assert mask(f"<{spelled}>", (KEY_FORMS,)).strip(";") in {"<[masked]>", "<[masked];>"}
    assert find_secrets_in(spelled.encode(), take_fingerprints([KEY_FORMS], SALT)) == (KEY_FORMS,)


@pytest.mark.parametrize(
    "spelled",
    [
        b"Gr\\xfc\\xdfe-\\u5bc6-2024",
        b"Gr%FC%DFe-%E5%AF%86-2024",
        "Gr\udcfc\udcdfe-密-2024".encode(errors="surrogateescape"),
        base64.b64encode(b"Gr\xfc\xdfe-\xe5\xaf\x86-2024"),
    ],
)
def test_letters_of_latin_1_are_masked_and_found_as_bytes(spelled: bytes) -> None:
    secret = "Grüße-密-2024"

    assert mask_bytes(b"<" + spelled + b">", (secret,)) == b"<[masked]>"
    found = find_secrets_in(spelled, take_fingerprints([secret], SALT))
    assert mask_bytes(spelled, found) == b"[masked]"


def test_key_that_holds_what_looks_like_escapes_is_known() -> None:
    key = r"a\qb%41c\\d&amp;ef"

    for spelled in (key, json.dumps(key)[1:-1], quote(key), html.escape(key), as_percent(key)):
        assert mask(f"<{spelled}>", (key,)) == "<[masked]>"
        assert find_secrets_in(spelled.encode(), take_fingerprints([key], SALT))


def as_bash(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def as_dash(text: str) -> str:
    return "'" + re.sub("'+", lambda found: f"""'"{found[0]}"'""", text) + "'"


@pytest.mark.parametrize("secret", ["ab'cdEF9gh7Kx2", "'ab''cd\"EF9gh7Kx'"])
@pytest.mark.parametrize("outer", [str, json.dumps, html.escape, as_percent])
@pytest.mark.parametrize("inner", [as_bash, as_dash, shlex.quote])
def test_single_quote_is_masked_and_found_as_shells_quote_it(
    inner: Callable[[str], str], outer: Callable[[str], str], secret: str
) -> None:
    spelled = outer(inner(f"bob:{secret}"))
    masked = mask(spelled, (secret,))

    assert masked.count("[masked]") == 1
    assert len(masked) - len(outer("'bob:'")) < 30
    assert secret in find_secrets_in(spelled.encode(), take_fingerprints([secret], SALT))
    whole = inner(secret).encode()
    assert {find_unsettled(whole[:end], (secret,)) for end in range(1, len(whole) - 1)} <= {0, 1}


def test_short_pieces_of_base64_are_none() -> None:
    assert all(len(form) >= 8 for form in find_forms(("abc",)) - {b"abc"})


@example("000000\\0", b"", b"")
@given(st.text(min_size=8, max_size=20), st.binary(max_size=5), st.binary(max_size=5))
def test_each_encoder_yields_what_is_found(secret: str, before: bytes, after: bytes) -> None:
    data = secret.encode()
    for encode in (quote, quote_plus, json.dumps):
        assert "[masked]" in mask(encode(secret), (secret,))
    for encode_64 in (base64.b64encode, base64.urlsafe_b64encode):
        masked = mask(encode_64(before + data + after).decode(), (secret,))
        assert "[masked]" in masked
        assert len(masked) < (len(before) + len(after) + 3) * 4 / 3 + 10


@pytest.mark.parametrize("before", ["", "7"])
def test_hexadecimal_is_masked_and_found(before: str) -> None:
    dumped = KEY.encode().hex()
    for spelled in (dumped, dumped.upper(), f"{dumped[:20]}\n{dumped[20:]}"):
        text = f"{before}{spelled}\n"
        assert mask(text, (KEY,)) == f"{before}[masked]\n"
        assert find_secrets_in(text.encode(), take_fingerprints([KEY], SALT)) == (KEY,)


def test_reading_ends_however_deep_a_text_is_encoded() -> None:
    assert len(read_all(b"%" + b"25" * 100_000 + b"41")) <= 9


KEYS = [
    "sk-" + "a1" * 12,
    "sk-ant-api03-" + "x_-9" * 8,
    "sk_live_" + "4e" * 12,
    "gsk_" + "Ab3" * 10,
    "ghp_" + "Ab3" * 12,
    "github_pat_" + "Ab3_" * 12,
    "glpat-" + "x1" * 10,
    "xoxb-" + "123-" * 5 + "abc",
    "npm_" + "a" * 36,
    "hf_" + "a" * 34,
    "AKIA" + "ABCD1234" * 2,
    "AIza" + "x" * 35,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:12])
def test_key_is_masked_anywhere(key: str) -> None:
    assert mask_keys(f"it said {key}, and went on") == "it said [masked], and went on"
    assert mask_keys(f"\x1b[01;31m\x1b[K{key}\x1b[0m") == "\x1b[01;31m\x1b[K[masked]\x1b[0m"
    assert mask_keys_in({key: [key, 1, None]}) == {"[masked]": ["[masked]", 1, None]}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:12])
def test_key_that_is_spelled_otherwise_is_masked(key: str) -> None:
    for spelled in (
        f"&#x{ord(key[0]):x};{key[1:]}",
        f"{key[:3]}**{key[3:7]}**{key[7:]}",
        "".join(f"%{ord(each):02x}" for each in key),
        json.dumps({key: "".join(f"\\u{ord(each):04x}" for each in key)}),
    ):
        masked = mask_keys(f"it said {spelled} and went on")

        assert masked.startswith("it said ")
        assert masked.endswith(" and went on")
        assert "[masked]" in masked
        assert len(masked) < 55


def test_private_key_that_is_cut_short_is_masked_to_its_end() -> None:
    assert mask_keys("x -----BEGIN PRIVATE KEY-----\nMIIE\nxyz") == "x [masked]"


@given(st.text(), st.sampled_from(KEYS))
def test_key_never_passes_and_masking_again_changes_nothing(text: str, key: str) -> None:
    masked = mask_keys(f"{text} {key} {text}")

    assert key not in masked
    assert mask_keys(masked) == masked


@given(
    st.lists(
        st.sampled_from([*KEYS, "Bearer ", "a1" * 9, "API_KEY=", "x://me:", "@", " ", "-", "é"]),
        max_size=4,
    )
    .map("".join)
    .flatmap(lambda text: st.integers(0, len(text)).map(lambda start: text[start:]))
)
def test_text_without_a_hint_has_no_key(text: str) -> None:
    if not _may_have(text):
        assert _KEY.search(text) is _AFTER.search(text) is None


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "API_KEY_2", "client-secret", "accessToken", "Passwords", "pwd"]
)
def test_member_of_a_secrets_name_is_masked_whatever_it_is(name: str) -> None:
    for value in ("hunter2secret", 1234, ["a", {"b": "c"}]):
        masked = mask_keys_in({"x": {name: value}})["x"][name]

        assert str(masked).count("[masked]") == (2 if isinstance(value, list) else 1)
        assert not {"hunter2secret", "1234", "c"} & set(str(masked).split("'"))
    assert mask_keys_in({name: ["", None, True]}) == {name: ["", None, True]}
