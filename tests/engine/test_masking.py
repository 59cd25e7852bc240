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
        "DB_PWD",
        "NPM_CONFIG__AUTH",
        "GEMINI_API_KEY_2",
        "TOKEN1",
    ]:
        assert find_secrets({name: f" {KEY}\n"}) == (KEY,)


@pytest.mark.parametrize("key", [f"/{'aB3' * 13}", "/aB+3aB3/aB3", "~aB3#aB3"])
def test_key_that_begins_as_a_path_is_a_secret(key: str) -> None:
    assert find_secrets({"MY_KEY": key}) == (key,)


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
        ("PRIVATE_KEY", "/application-credentials.json"),
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
