import base64
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.masking import (
    find_secrets,
    find_unsettled,
    mask,
    mask_bytes,
    mask_value,
    read_all,
)

KEY = "sk-ant-0123456789abcdef"


def test_names_of_keys_are_known() -> None:
    for name in [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "PGPASSWORD",
        "db_password",
        "CLIENT_SECRET",
        "GPG_PASSPHRASE",
        "GITLAB_PAT",
        "GOOGLE_CREDENTIALS",
        "SMTP_PASS",
        "NPM_CONFIG__AUTH",
        "GEMINI_API_KEY_2",
        "TOKEN1",
    ]:
        assert find_secrets({name: f" {KEY}\n"}) == (KEY,)


def test_other_values_are_no_secrets() -> None:
    for name, value in [
        ("HOME", KEY),
        ("TOKENIZER", KEY),
        ("PWD", "/home/me/project-1"),
        ("SSH_AUTH_SOCK", "/tmp/agent.123"),
        ("SHORT_KEY", "s3cr3t!"),
        ("EMPTY_KEY", ""),
        ("WORD_KEY", "disabled"),
        ("WORD_PASSWORD", "ANONYMOUS"),
        ("WORD_SECRET", "Changeme"),
        ("MAX_TOKEN", "100000000"),
        ("PRIVATE_KEY", "~/.ssh/id_ed25519"),
        ("PRIVATE_KEY", "./keys/deploy.pem"),
        ("PRIVATE_KEY", "/etc/ssl/private/key.pem"),
        ("HTTP_PROXY", "http://proxy:3128"),
        ("HTTP_PROXY", "http://me:short@proxy:3128"),
    ]:
        assert find_secrets({name: value}) == ()


def test_password_in_a_url_is_a_secret() -> None:
    environ = {"DATABASE_URL": "postgres://me:c0rrect-h0rse@db/x?sslmode=require"}

    assert find_secrets(environ) == ("c0rrect-h0rse",)


def test_lines_of_a_key_are_secrets_each() -> None:
    lines = ["b3BlbnNzaC1rZXktdjEAAAAA", "QyNTUxOQAAACBxYz1234abcd", "AQ=="]
    pem = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])

    secrets = find_secrets({"DEPLOY_KEY": pem + "\n"})

    assert set(secrets) == {pem, *lines[:2]}
    assert mask(f"key:\n{pem}\nend", secrets) == "key:\n[masked]\nend"
    assert mask("\n".join(f"    {line}" for line in lines), secrets) == (
        "    [masked]\n    [masked]\n    AQ=="
    )


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (KEY, "[masked]"),
        (f"curl -H 'x-api-key: {KEY}' a", "curl -H 'x-api-key: [masked]' a"),
        (f"https://api.test/?key={KEY}&n=1", "https://api.test/?key=[masked]&n=1"),
        (f"{KEY}{KEY}", "[masked]"),
        (f"{KEY} {KEY}", "[masked] [masked]"),
        (KEY[:-1], KEY[:-1]),
        ("", ""),
    ],
)
def test_key_is_found_anywhere(text: str, masked: str) -> None:
    assert mask(text, (KEY,)) == masked


def test_key_is_found_in_the_spelling_of_urls_and_json() -> None:
    secret = 'a+b/c"d\\é&1'

    assert mask("?k=a%2Bb%2Fc%22d%5C%C3%A9%261", (secret,)) == "?k=[masked]"
    assert mask("?k=a%2bb%2fc%22d%5c%c3%a9%261", (secret,)) == "?k=[masked]"
    assert mask("?k=a+b/c%22d%5C%C3%A9&1", (secret,)) == "?k=[masked]"
    assert mask("?k=It%27s+mine%21+1", ("It's mine! 1",)) == "?k=[masked]"
    assert mask("?k=It's%20mine!%201", ("It's mine! 1",)) == "?k=[masked]"
    assert mask('{"k": "a+b\\/c\\/d"}', ("a+b/c/d",)) == '{"k": "[masked]"}'
    assert mask(json.dumps({"k": secret}), (secret,)) == '{"k": "[masked]"}'
    assert mask(json.dumps({"k": secret}, ensure_ascii=False), (secret,)) == '{"k": "[masked]"}'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("<abcdefghij>", "<[masked]>"),
        ("<abcdefgh>", "<[masked]>"),
        ("<abcdefghijklmnop>", "<[masked]>"),
        ("<12345678123456781234>", "<[masked]1234>"),
    ],
)
def test_nothing_is_left_of_secrets_that_overlap(text: str, masked: str) -> None:
    secrets = ("abcdefgh", "abcdefghij", "ghijklmnop", "1234567812345678")

    assert mask(text, secrets) == masked


@pytest.mark.parametrize("before", ["", "u", "me", "you:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_key_is_found_in_base64_wherever_it_begins(
    before: str, encode: Callable[[bytes], bytes]
) -> None:
    secret = "\xff~?>~?a+b/c"
    for after in ("", ":x", "\n", "end"):
        encoded = encode(f"{before}{secret}{after}".encode()).decode()
        masked = mask(f"Basic {encoded}.", (secret,))

        assert masked.startswith("Basic ")
        assert masked.endswith(".")
        # A character on each side may encode a part of what is around as well.
        left = masked.removeprefix("Basic ").removesuffix(".").split("[masked]")
        assert len(left) == 2
        assert len(left[0]) < len(before) * 4 / 3 + 2
        assert len(left[1].rstrip("=")) < len(after) * 4 / 3 + 2


def test_line_break_alone_hides_and_loses_nothing() -> None:
    text = f"a\n  {KEY[:9]}\n{KEY[9:]}\n\n{KEY}\n{KEY}\nb {KEY}"

    assert mask(text, (KEY,)) == "a\n  [masked]\n\n[masked]\n[masked]\nb [masked]"


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


@pytest.mark.parametrize(
    ("output", "place"),
    [
        (b"", 0),
        (b"nothing of it", 13),
        (b"key: sk-a", 5),
        (b"key: s", 5),
        (b"sk-ant-0123456789abcde", 0),
        (b"sk-ant-0123456789abcdef", 23),
        (b"sk-ant-0123456789abcdef s", 24),
        (b"ssk-", 1),
        (b"sk-ansk-ans", 10),
    ],
)
def test_beginning_of_a_secret_at_the_end_is_unsettled(output: bytes, place: int) -> None:
    assert find_unsettled(output, (KEY,)) == place


def test_secret_in_which_another_one_may_begin_is_unsettled_whole() -> None:
    assert find_unsettled(b"x abcdefgh", ("abcdefgh", "gh012345")) == 2
