"""OpenPGP signatures, held against what git says of the same commits."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.signed_commits import (
    ask_git,
    check,
    in_letters,
    put_commit,
    sign_commit,
    signature_header,
    with_header,
)
from store.signing_keys import (
    Git,
    gpg,
    gpg_home,
    make_certificate,
    needs_gpg,
    needs_gpgsm,
    with_settings,
)

from uwf_git.store.objects.commit import read_raw_commit
from uwf_git.store.signatures import GpgCheck
from uwf_git.store.store import Store

ADA = "Ada <ada@example.com>"


@pytest.fixture
def gpg_store(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return a store whose commits are signed by Ada's key, which gpg trusts ultimately."""
    with gpg_home(tmp_path, "Ada") as environ:
        monkeypatch.setenv("GNUPGHOME", environ["GNUPGHOME"])
        yield with_settings(store, commit__gpgsign="true", user__signingkey="ada@example.com")


def fingerprint() -> str:
    listed = gpg(dict(os.environ), "--with-colons", "--list-keys", "ada@example.com")
    return next(line.split(":")[9] for line in listed.split("\n") if line.startswith("fpr:"))


def distrust(level: int) -> None:
    gpg(dict(os.environ), "--import-ownertrust", given=f"{fingerprint()}:{level}:\n")


@needs_gpg
def test_good_signature_is_its_signer_s(gpg_store: Store, git: Git) -> None:
    oid = sign_commit(gpg_store)
    verdict = check(gpg_store, oid)
    assert (verdict.status, verdict.format) == ("good", "openpgp")
    assert in_letters(verdict) == ask_git(git, gpg_store, oid) == ("G", ADA, fingerprint())


@needs_gpg
def test_forgeries_are_bad(gpg_store: Store, git: Git) -> None:
    good = sign_commit(gpg_store)
    header = signature_header(gpg_store, good)
    raw = read_raw_commit(gpg_store.objects, good)
    for oid in (
        put_commit(gpg_store, raw + b"more\n"),
        with_header(gpg_store, header, message=b"x"),
    ):
        assert check(gpg_store, oid).status == "bad"
        assert check(gpg_store, oid).signer is None
        assert ask_git(git, gpg_store, oid)[0] == "B"
    junk = with_header(gpg_store, header[:60] + b"\n")
    assert check(gpg_store, junk).status == "bad"
    with pytest.raises(subprocess.CalledProcessError):
        git("verify-commit", junk, cwd=Path(gpg_store.path))


@needs_gpg
def test_unsigned_gpg_key_is_untrusted(gpg_store: Store, git: Git) -> None:
    oid = sign_commit(gpg_store)
    distrust(2)
    verdict = check(gpg_store, oid)
    assert in_letters(verdict) == ask_git(git, gpg_store, oid) == ("U", ADA, fingerprint())
    assert f"`gpg --lsign-key {fingerprint()}`" in str(verdict.hint)


@needs_gpg
def test_how_much_trust_is_needed_is_a_setting(gpg_store: Store) -> None:
    oid = sign_commit(gpg_store)
    distrust(6)
    assert check(gpg_store, oid).status == "good"
    least = with_settings(gpg_store, gpg__minTrustLevel="Ultimate")
    assert check(least, oid).status == "good"
    distrust(5)
    assert check(least, oid).status == "untrusted"


@needs_gpg
def test_missing_key_is_untrusted(gpg_store: Store, tmp_path: Path) -> None:
    oid = sign_commit(gpg_store)
    key = fingerprint()
    (tmp_path / "h").mkdir()
    with gpg_home(tmp_path / "h") as environ:
        verdict = check(gpg_store, oid, environ)
    assert (verdict.status, verdict.signer, verdict.key) == ("untrusted", None, key[-16:])
    assert f"`gpg --recv-keys {key[-16:]}`" in str(verdict.hint)


@needs_gpg
def test_revoked_key_is_reported(gpg_store: Store, git: Git) -> None:
    oid = sign_commit(gpg_store)
    home = os.environ["GNUPGHOME"]
    made = Path(home, "openpgp-revocs.d", f"{fingerprint()}.rev").read_text()
    gpg(dict(os.environ), "--import", given=made.replace(":-----", "-----"))
    verdict = check(gpg_store, oid)
    assert (verdict.status, verdict.signer, verdict.key) == ("revoked", ADA, fingerprint())
    assert ask_git(git, gpg_store, oid)[0] == "R"


@needs_gpgsm
def test_certificate_signs_as_well(
    store: Store, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gpg_home(tmp_path) as environ:
        monkeypatch.setenv("GNUPGHOME", environ["GNUPGHOME"])
        key = make_certificate(environ)
        store = with_settings(
            store, commit__gpgsign="true", gpg__format="x509", user__signingkey=key
        )
        oid = sign_commit(store)
        verdict = check(store, oid)
        assert (verdict.status, verdict.format) == ("good", "x509")
        assert in_letters(verdict) == ask_git(git, store, oid) == ("G", "/CN=Ada", key)
        forged = put_commit(store, read_raw_commit(store.objects, oid) + b"more\n")
        assert check(store, forged).status == "bad"


def said_by_gpg(tmp_path: Path, *lines: str, status: int = 0) -> tuple[str, str | None, str | None]:
    """Check with a program that prints the status *lines*."""
    program = tmp_path / "says"
    said = "\n".join(lines)
    program.write_text(f"#!/bin/sh\ncat >/dev/null\ncat <<'END'\n{said}\nEND\nexit {status}\n")
    program.chmod(0o755)
    verdict = GpgCheck("x509", str(program), os.environ, "marginal").check(b"payload", b"signature")
    return verdict.status, verdict.signer, verdict.key


GOOD = (
    "[GNUPG:] GOODSIG ABCD Ada",
    "[GNUPG:] VALIDSIG 1234 2026-11-21 1 0",
    "[GNUPG:] TRUST_FULLY",
)


def test_status_lines_are_read_as_git_reads_them(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, *GOOD) == ("good", "Ada", "1234")
    assert said_by_gpg(tmp_path, "", "gpg: noise", *GOOD) == ("good", "Ada", "1234")
    expired = [line.replace("GOODSIG", "EXPKEYSIG") for line in GOOD]
    assert said_by_gpg(tmp_path, *expired) == ("expired", "Ada", "1234")
    expired = [line.replace("GOODSIG", "EXPSIG") for line in GOOD]
    assert said_by_gpg(tmp_path, *expired) == ("expired", "Ada", "1234")


def test_program_that_fails_has_not_said_good(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, *GOOD, status=2)[0] == "untrusted"


def test_several_signatures_in_one_are_bad(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, *GOOD, *GOOD) == ("bad", None, None)
    assert said_by_gpg(tmp_path, *GOOD, "[GNUPG:] BADSIG 1 Bob") == ("bad", None, None)


def test_words_that_are_no_status_are_not_believed(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, "gpg: [GNUPG:] GOODSIG ABCD Ada")[0] == "bad"
    assert said_by_gpg(tmp_path, "[GNUPG:] GOODSIGN ABCD Ada")[0] == "bad"
    assert said_by_gpg(tmp_path, status=2)[0] == "bad"


def test_unreported_trust_is_none(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, *GOOD[:2])[0] == "untrusted"
    assert said_by_gpg(tmp_path, *GOOD[:2], "[GNUPG:] TRUST_NEVER")[0] == "untrusted"
    assert said_by_gpg(tmp_path, *GOOD[:2], "[GNUPG:] TRUST_EXTREME")[0] == "untrusted"
