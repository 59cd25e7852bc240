"""Taking commits apart, and the settings by which their signatures are judged."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import write_program
from refusing import refuses
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
    needs_ssh,
    trusting,
    with_settings,
)

from uwf_git.store.objects.commit import read_raw_commit
from uwf_git.store.signatures import GpgCheck, SignatureChecker, split_signature
from uwf_git.store.store import Store

HEAD = b"tree 1\nparent 2\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n"


@pytest.mark.parametrize(
    ("headers", "payload", "signatures"),
    [
        (b"", b"", []),
        (b"gpgsig a\n b\n \n  c\n", b"", [b"a\nb\n\n c\n"]),
        (b"encoding x\ngpgsig a\n b\nother c\n", b"encoding x\nother c\n", [b"a\nb\n"]),
        (b"gpgsig a\n b\nx y\ngpgsig c\n", b"x y\n", [b"a\nb\n", b"c\n"]),
        (b"gpgsig a\ngpgsig-sha256 b\n c\n", b"", [b"a\n", b"b\nc\n"]),
        (b"gpgsig-sha256 b\n c\n", b"", []),
        (b"mergetag object 1\n gpgsig a\n b\n", b"mergetag object 1\n gpgsig a\n b\n", []),
    ],
    ids=repr,
)
@pytest.mark.parametrize("rest", [b"", b"\n", b"\nmessage\n\ngpgsig no\n header\n"], ids=repr)
def test_commit_is_taken_apart(
    headers: bytes, payload: bytes, signatures: list[bytes], rest: bytes
) -> None:
    assert split_signature(HEAD + headers + rest) == (HEAD + payload + rest, signatures)


@given(
    st.binary(max_size=80),
    st.lists(st.binary(max_size=10).map(lambda b: b.replace(b"\n", b"")), min_size=1),
)
def test_what_was_put_in_comes_out(rest: bytes, lines: list[bytes]) -> None:
    header = b"gpgsig " + b"\n ".join(lines) + b"\n"
    raw = HEAD + header + b"\n" + rest
    assert split_signature(raw) == (HEAD + b"\n" + rest, [b"\n".join(lines) + b"\n"])


@given(st.binary(max_size=200))
def test_nothing_that_is_no_commit_is_an_error(raw: bytes) -> None:
    payload, signatures = split_signature(raw)
    assert len(payload) <= len(raw)
    assert signatures or b"gpgsig" in raw or payload == raw


def test_signature_of_no_known_kind_is_bad(store: Store) -> None:
    for header in (b"gpgsig junk\n", b"gpgsig \n", b"gpgsig -----BEGIN \x00\n"):
        verdict = check(store, with_header(store, header))
        assert (verdict.status, verdict.format) == ("bad", None)
        assert verdict.problem == "its signature has no format that git knows"


def test_huge_signature_is_bad_and_costs_no_program(store: Store) -> None:
    store = with_settings(store, gpg__ssh__program="/none/keygen")
    mark = b"gpgsig -----BEGIN SSH SIGNATURE-----\n "
    began = time.process_time()
    verdict = check(store, with_header(store, mark + b"A\n " * 500_000 + b"\n"))
    assert (verdict.status, verdict.signer) == ("bad", None)
    assert "1000031 bytes" in str(verdict.problem)
    assert time.process_time() - began < 5


@needs_ssh
@pytest.mark.parametrize("other", [b"gpgsig junk\n", b"gpgsig-sha256 junk\n", None])
def test_two_signatures_are_bad_whatever_the_first(
    trusted: Store, git: Git, other: bytes | None
) -> None:
    header = signature_header(trusted, sign_commit(trusted))
    for headers in (header + (other or header), (other or header) + header):
        verdict = check(trusted, with_header(trusted, headers))
        assert (verdict.status, verdict.signer) == ("bad", None)
    # git does not notice that something stands behind a good signature.
    assert ask_git(git, trusted, with_header(trusted, header + header))[0] == "G"


@needs_ssh
@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("gpg__ssh__allowedSignersFile", "/none/file", "names /none/file, which is not a file"),
        ("gpg__ssh__revocationFile", "~/none", "/home/none, which is not a file"),
        ("gpg__ssh__program", "/none/keygen", "there is no /none/keygen"),
        ("gpg__minTrustLevel", "much", "cannot be 'much': undefined, never"),
    ],
)
def test_settings_that_mean_nothing_are_reported(
    trusted: Store, setting: str, value: str, words: str
) -> None:
    oid = sign_commit(trusted)
    with refuses("unfit-setting") as caught:
        check(with_settings(trusted, **{setting: value}), oid)
    assert caught.value.message.startswith(setting.replace("__", "."))
    assert words in caught.value.message


def test_missing_gpg_is_reported_with_the_setting_that_names_it(store: Store) -> None:
    oid = with_header(store, b"gpgsig -----BEGIN PGP SIGNATURE-----\n")
    with refuses("unfit-setting", match=r"gpg\.openpgp\.program needs a program.* gpg$"):
        check(store, oid, {"PATH": "/none"})
    oid = with_header(store, b"gpgsig -----BEGIN SIGNED MESSAGE-----\n")
    with refuses("unfit-setting", match=r"gpg\.x509\.program .* gpgsm$"):
        check(store, oid, {"PATH": "/none"})


@needs_ssh
def test_more_trust_than_ssh_keys_have_is_refused_them(trusted: Store, git: Git) -> None:
    oid = sign_commit(trusted)
    for level, status in (("fully", "good"), ("ultimate", "untrusted")):
        store = with_settings(trusted, gpg__minTrustLevel=level)
        assert check(store, oid).status == status
        if status == "good":
            git("verify-commit", oid, cwd=Path(store.path))
    with pytest.raises(subprocess.CalledProcessError):
        git("verify-commit", oid, cwd=Path(store.path))


@needs_ssh
def test_known_key_costs_one_process_a_commit(trusted: Store, tmp_path: Path) -> None:
    log, program = tmp_path / "log", tmp_path / "keygen"
    keygen = shutil.which("ssh-keygen")
    write_program(program, f'echo "$2" >> {log}\nexec {keygen} "$@"')
    raw = [
        read_raw_commit(trusted.objects, sign_commit(trusted, message=b"a: %d\n" % number))
        for number in range(4)
    ]
    store = with_settings(trusted, gpg__ssh__program=str(program))
    checker = SignatureChecker(store, os.environ)
    assert {checker.check(each, time_s=1_700_000_000).status for each in raw} == {"good"}
    assert log.read_text().split() == ["find-principals", *["verify"] * 4]

    log.unlink()
    checker = SignatureChecker(trusting(store, tmp_path, name="nobody"), os.environ)
    assert {checker.check(each, time_s=1_700_000_000).status for each in raw} == {"untrusted"}
    assert log.read_text().split() == ["find-principals", *["check-novalidate"] * 4]


# OpenPGP signatures, held against what git says of the same commits.


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
    for oid in (
        put_commit(gpg_store, read_raw_commit(gpg_store.objects, good) + b"more\n"),
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
    said = "\n".join(lines)
    script = f"cat >/dev/null\ncat <<'END'\n{said}\nEND\nexit {status}"
    program = write_program(tmp_path / "says", script)
    verdict = GpgCheck("x509", str(program), os.environ, "marginal").check(b"payload", b"signature")
    # They name commands of gpg, which gpgsm does not have.
    assert verdict.hint is None
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
    assert said_by_gpg(tmp_path, *GOOD[:2], "[GNUPG:] TRUST_NEVER")[0] == "untrusted"
    assert said_by_gpg(tmp_path, "[GNUPG:] ERRSIG ABCD 1") == ("untrusted", None, "ABCD")


def test_several_signatures_in_one_are_bad(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, *GOOD, *GOOD) == ("bad", None, None)
    assert said_by_gpg(tmp_path, *GOOD, "[GNUPG:] BADSIG 1 Bob") == ("bad", None, None)


def test_unreported_trust_is_none(tmp_path: Path) -> None:
    assert said_by_gpg(tmp_path, *GOOD[:2])[0] == "untrusted"
    assert said_by_gpg(tmp_path, *GOOD[:2], "[GNUPG:] TRUST_NEVER")[0] == "untrusted"
    assert said_by_gpg(tmp_path, *GOOD[:2], "[GNUPG:] TRUST_EXTREME")[0] == "untrusted"
