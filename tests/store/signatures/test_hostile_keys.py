"""Keys and programs of people who want to be taken for somebody else."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import write_program
from store.signed_commits import ask_git, check, in_letters, sign_commit
from store.signing_keys import (
    Git,
    gpg,
    gpg_home,
    make_ssh_key,
    needs_gpg,
    needs_ssh,
    public_half,
    signed_by,
    trusting,
    with_settings,
)

from uwf_git.store.signatures import GpgCheck
from uwf_git.store.store import Store

ADA = "ada@example.com"
FORGED = "[GNUPG:] GOODSIG 0123456789ABCDEF Ada\n[GNUPG:] TRUST_ULTIMATE 0 pgp"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Return the environment of a home of gpg's without keys."""
    with gpg_home(tmp_path) as environ:
        monkeypatch.setenv("GNUPGHOME", environ["GNUPGHOME"])
        yield environ


def make_key(home: dict[str, str], name: str, *words: str, expires: str = "never") -> str:
    """Make a gpg key for any name; return its fingerprint."""
    before = ["--batch", "--passphrase", "", "--allow-freeform-uid", *words]
    gpg(home, *before, "--quick-gen-key", name, "ed25519", "sign", expires)
    listed = gpg(home, "--with-colons", "--list-keys").split("\n")
    return [line.split(":")[9] for line in listed if line.startswith("fpr:")][-1]


def signing_with(store: Store, key: str, place: Path, *words: str) -> Store:
    """Let commits be signed by a gpg key, and gpg be called with more *words*."""
    program = write_program(place / "gpg-here", f'exec gpg {" ".join(words)} "$@"')
    named = {"commit__gpgsign": "true", "user__signingkey": key, "gpg__program": program}
    return with_settings(store, **named)


NAMES = {
    "status lines": f"Eve\n{FORGED}",
    "escaped status lines": f"Eve%0A{FORGED}".replace("\n", "%0A"),
    "a carriage return": f"Eve\r{FORGED}",
    "control characters": "Eve\x1b[2J\x07",
    "a name that runs backwards": "Eve \u202egro.elpmaxe@ada",
    "separators of lines": f"Eve\u2028{FORGED}\x0b{FORGED}",
}


@needs_gpg
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name_of_a_gpg_key_is_only_a_name(
    name: str, home: dict[str, str], store: Store, tmp_path: Path, git: Git
) -> None:
    key = make_key(home, name)
    gpg(home, "--import-ownertrust", given=f"{key}:2:\n")  # it is trusted too little
    store = signing_with(store, key, tmp_path)
    oid = sign_commit(store)
    verdict = check(store, oid)
    assert verdict.status == "untrusted"
    assert verdict.key == key
    assert ask_git(git, store, oid)[0] == "U"


@needs_gpg
def test_notes_in_a_signature_are_only_notes(
    home: dict[str, str], store: Store, tmp_path: Path
) -> None:
    """A signature may carry text of its signer's, which gpg prints beside its verdict."""
    key = make_key(home, "Eve")
    gpg(home, "--import-ownertrust", given=f"{key}:2:\n")
    forged = "[GNUPG:] GOODSIG 1 Ada"
    notes = [f"--sig-notation 'note@x={forged}'", f"--comment '{forged}'"]
    notes.append(f"--sig-policy-url 'http://x/%0A{forged}'")
    store = signing_with(store, key, tmp_path, *notes)
    assert check(store, sign_commit(store)).status == "untrusted"


LONG_AGO = "--faked-system-time 20200102T000000"


@needs_gpg
def test_signature_of_a_key_that_has_expired(
    home: dict[str, str], store: Store, tmp_path: Path, git: Git
) -> None:
    key = make_key(home, "Ada", *LONG_AGO.split(), expires="1y")
    store = signing_with(store, key, tmp_path, LONG_AGO)
    oid = sign_commit(store)
    store = signing_with(store, key, tmp_path)
    verdict = check(store, oid)
    assert (verdict.status, verdict.signer, verdict.key) == ("expired", "Ada", key)
    assert ask_git(git, store, oid)[0] == "Y"


@needs_gpg
def test_signature_that_has_expired(
    home: dict[str, str], store: Store, tmp_path: Path, git: Git
) -> None:
    key = make_key(home, "Ada", *LONG_AGO.split())
    store = signing_with(store, key, tmp_path, LONG_AGO, "--default-sig-expire 1y")
    oid = sign_commit(store)
    store = signing_with(store, key, tmp_path)
    assert check(store, oid).status == "expired"
    assert ask_git(git, store, oid)[0] == "X"


GOOD = "[GNUPG:] GOODSIG ABCD Ada\n[GNUPG:] VALIDSIG 1234\n[GNUPG:] TRUST_FULLY\n"
LINES = {
    "a comment": "".join(f"# {line}\n" for line in GOOD.splitlines()),
    "an indented line": "".join(f" {line}\n" for line in GOOD.splitlines()),
    "one line": GOOD.replace("\n", "\r"),
    "another separator": GOOD.replace("\n", "\u2028"),
    "a null byte": GOOD.replace("GOODSIG", "GOODSIG\0"),
    "two verdicts": f"{GOOD}[GNUPG:] ERRSIG ABCD 22 10 00 1 9 1234\n",
    "a bad one first": f"[GNUPG:] BADSIG ABCD Eve\n{GOOD}",
    "no trust": GOOD.replace("TRUST_FULLY", "NOTATION_DATA TRUST_FULLY"),
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES.keys())
def test_lines_that_only_look_like_a_verdict_are_none(lines: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.write_bytes(lines.encode())
    program = write_program(tmp_path / "says", f"cat >/dev/null\ncat {said}\ncat {said} >&2")
    check = GpgCheck("openpgp", program, os.environ, "marginal")
    assert check.check(b"payload", b"signature").status in ("bad", "untrusted")


def certified(store: Store, key: Path, place: Path, name: str, *options: str) -> Store:
    """Let commits be signed by a key that an authority vouches for, as that of *name*."""
    authority = make_ssh_key(place / "authority")
    words = ["ssh-keygen", "-q", "-s", str(authority), "-I", "id", "-n", name, *options]
    subprocess.run([*words, f"{key}.pub"], check=True)
    line = f'"*,!root" cert-authority {public_half(authority)}'
    return trusting(
        signed_by(store, f"{key}-cert.pub"), place, f"{ADA} {public_half(authority)}", line
    )


@needs_ssh
@pytest.mark.parametrize("name", ["eve\nada@example.com", "eve\n", "\nada@example.com"])
def test_principal_of_two_lines_is_nobody(
    name: str, store: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    store = certified(store, key, tmp_path, name)
    oid = sign_commit(store)
    verdict = check(store, oid)
    assert verdict.signer != ADA
    assert verdict.status == "untrusted"
    assert ask_git(git, store, oid)[1] != ADA


@needs_ssh
def test_principal_that_the_allowed_signers_exclude_is_nobody(
    store: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    store = certified(store, key, tmp_path, "root")
    oid = sign_commit(store)
    assert check(store, oid).status == "untrusted"
    assert ask_git(git, store, oid)[0] == "B"


@needs_ssh
@pytest.mark.parametrize("name", ["eve\x1b[2J", "eve \u202eada", 'eve with "quotes"', "a,b"])
def test_strange_principals_are_told_as_git_tells_them(
    name: str, store: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    store = certified(store, key, tmp_path, name)
    oid = sign_commit(store)
    letter, signer, _key = ask_git(git, store, oid)
    assert in_letters(check(store, oid))[:2] == (letter, signer)


OPTIONS = {
    'namespaces="git"': "good",
    'namespaces="file,git"': "good",
    'namespaces="file"': "untrusted",
    'namespaces="!git,*"': "untrusted",
    'valid-after="20200101",valid-before="20990101"': "good",
    'valid-before="20200101"': "expired",
    'valid-after="20990101"': "expired",
    "cert-authority": "untrusted",
    'valid-before="soon"': "untrusted",
    "endless": "untrusted",
}


@needs_ssh
@pytest.mark.parametrize("options", OPTIONS)
def test_options_of_allowed_signers_count(
    options: str, store: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    store = trusting(signed_by(store, key), tmp_path, f"{ADA} {options} {public_half(key)}")
    oid = sign_commit(store)
    assert check(store, oid).status == OPTIONS[options]
    assert (ask_git(git, store, oid)[0] == "G") == (OPTIONS[options] == "good")
