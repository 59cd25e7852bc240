"""Identities; that git takes them is judged by git in interop/test_identities.py."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.store.git.identity import agent_identity, clean_identity

# As fsck wants it: a name, one space, an address without angle brackets, nothing else.
ACCEPTED = re.compile(rb"[^<>\n\0]*[^<>\n\0 ] <[^<>\n\0 ]+>")


@pytest.mark.parametrize(
    ("name", "email", "identity"),
    [
        ("C O Mitter", "c@example.com", "C O Mitter <c@example.com>"),
        ("Jürgen 山田", "j@example.com", "Jürgen 山田 <j@example.com>"),
        ("", "", "unknown <unknown>"),
        ("  ", "<>", "unknown <unknown>"),
        ("dev> <x", "a b<c>d", "dev x <abcd>"),
        ("a\nb\0c\x1b[31m", "a\nb", "a b c [31m <ab>"),
        ("a\x85b\u2028c", "x", "a b c <x>"),
        (' "quoted", ', ".a.", "quoted <a>"),
        ("lone \ud800 one", "\ud800@x", "lone one <@x>"),
    ],
)
def test_names_are_cleaned(name: str, email: str, identity: str) -> None:
    assert clean_identity(name, email) == identity.encode()


@given(st.text(), st.text())
def test_whatever_it_is_called_it_is_an_identity(name: str, email: str) -> None:
    assert ACCEPTED.fullmatch(clean_identity(name, email))
    assert ACCEPTED.fullmatch(agent_identity(name, email))


@pytest.mark.parametrize(
    ("role", "program", "identity"),
    [
        ("developer", "uwf-cursor", b"developer <uwf-cursor@uwf>"),
        ("developer", "my agent@home", b"developer <myagenthome@uwf>"),
        ("", "", b"unknown <unknown@uwf>"),
        ("developer", "日本", b"developer <unknown@uwf>"),
    ],
)
def test_a_step_is_by_the_role_and_the_program(role: str, program: str, identity: bytes) -> None:
    assert agent_identity(role, program) == identity


@given(st.text(), st.text())
def test_cleaning_again_changes_nothing(name: str, email: str) -> None:
    cleaned, address = clean_identity(name, email).decode()[:-1].rsplit(" <", 1)
    assert clean_identity(cleaned, address) == clean_identity(name, email)
