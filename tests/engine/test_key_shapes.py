import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.masking import _AFTER, _KEY, _may_have, mask_keys, mask_keys_in

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


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [masked]"),
        ("\x1b[1mOPENAI_API_KEY=hunter2hunter2", "\x1b[1mOPENAI_API_KEY=[masked]"),
        ("OPENAI_API_KEY=hunter2hunter2 uwf", "OPENAI_API_KEY=[masked] uwf"),
        ("https://me:hunter2@example.com/x", "https://me:[masked]@example.com/x"),
    ],
)
def test_of_what_names_its_owner_only_the_key_is_masked(text: str, masked: str) -> None:
    assert mask_keys(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "a task-list of tokens",
        "risk-averse-people-everywhere",
        "sk-learn-based-pipelines",
        "TOKEN=short",
        "sk-1",
        "4f2a" * 10,
    ],
)
def test_prose_and_ids_stay(text: str) -> None:
    assert mask_keys(text) == text


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


@pytest.mark.parametrize(
    "name", ["tokens", "inputTokens", "passwordLength", "key", "monkey", "secretary", "keys"]
)
def test_member_of_another_name_is_not_masked(name: str) -> None:
    assert mask_keys_in({name: "PROJ-12", "n": {name: 12}}) == {name: "PROJ-12", "n": {name: 12}}
