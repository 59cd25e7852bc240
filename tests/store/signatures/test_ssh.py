"""ssh signatures, good and forged, held against what git says of the same commits."""

import base64
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import seal
from hypothesis import given
from hypothesis import strategies as st
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
    make_ssh_key,
    needs_ssh,
    public_half,
    signed_by,
    trusting,
    with_settings,
)

from uwf_git.model.names import Oid
from uwf_git.store.objects.commit import read_raw_commit
from uwf_git.store.signatures import SshCheck, _public_key, split_signature
from uwf_git.store.store import Store

pytestmark = needs_ssh

BEFORE, AFTER = "20250101", "20260101"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return make_ssh_key(tmp_path / "other")


def fingerprint(key: Path) -> str:
    argv = ["ssh-keygen", "-lf", str(key)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[1]


def checker_of(store: Store) -> SshCheck:
    """Return what checks signatures by the settings of *store*."""
    signers = str(store.config.get("gpg.ssh.allowedSignersFile"))
    return SshCheck("ssh-keygen", os.environ, allowed=signers, revoked=None)


def test_good_signature_is_its_signer_s(trusted: Store, key: Path, git: Git) -> None:
    oid = sign_commit(trusted)
    verdict = check(trusted, oid)
    assert (verdict.status, verdict.format) == ("good", "ssh")
    assert (verdict.signer, verdict.key) == ("ada@example.com", fingerprint(key))
    assert (verdict.problem, verdict.hint) == (None, None)
    assert in_letters(verdict) == ask_git(git, trusted, oid)


def test_unknown_key_is_untrusted_and_may_be_added(
    trusted: Store, other: Path, tmp_path: Path, git: Git
) -> None:
    oid = sign_commit(signed_by(trusted, other))
    verdict = check(trusted, oid)
    assert in_letters(verdict) == ask_git(git, trusted, oid) == ("U", "", fingerprint(other))
    assert verdict.problem == "its key is not among the allowed signers"
    store = trusting(trusted, tmp_path, str(verdict.hint).split("`")[1].replace("WHO", "bob"))
    assert check(store, oid).signer == "bob"


def test_without_allowed_signers_no_key_is_known(store: Store, key: Path) -> None:
    store = signed_by(store, key)
    verdict = check(store, sign_commit(store))
    assert (verdict.status, verdict.signer, verdict.key) == ("untrusted", None, fingerprint(key))
    assert "gpg.ssh.allowedSignersFile is not set" in str(verdict.problem)
    assert "`git config --global gpg.ssh.allowedSignersFile PATH`" in str(verdict.hint)


def test_without_allowed_signers_a_forgery_is_still_bad(store: Store, key: Path) -> None:
    store = signed_by(store, key)
    raw = read_raw_commit(store.objects, sign_commit(store))
    assert check(store, put_commit(store, raw + b"more\n")).status == "bad"


def changed_message(store: Store, oid: Oid) -> Oid:
    return put_commit(store, read_raw_commit(store.objects, oid) + b"Uwf-Role: boss\n")


def changed_author(store: Store, oid: Oid) -> Oid:
    raw = read_raw_commit(store.objects, oid)
    return put_commit(store, raw.replace(b"author C O Mitter", b"author Somebody", 1))


def another_s_signature(store: Store, oid: Oid) -> Oid:
    return with_header(store, signature_header(store, oid), message=b"c: d\n")


def flipped_bit(store: Store, oid: Oid) -> Oid:
    raw = bytearray(read_raw_commit(store.objects, oid))
    at = raw.index(b"-----END SSH") - 10
    raw[at] = ord("A") if raw[at] != ord("A") else ord("B")
    return put_commit(store, bytes(raw))


def cut_short(store: Store, oid: Oid) -> Oid:
    return with_header(store, signature_header(store, oid)[:-60] + b"\n")


def nothing_in_it(store: Store, oid: Oid) -> Oid:
    mark = b"gpgsig -----BEGIN SSH SIGNATURE-----\n -----END SSH SIGNATURE-----\n"
    return with_header(store, mark)


def base64_junk(store: Store, oid: Oid) -> Oid:
    header = signature_header(store, oid)
    return with_header(store, header.replace(b"\n U1NIU0lH", b"\n !!!!\xff\x1b[2J", 1))


FORGERIES = [
    changed_message,
    changed_author,
    another_s_signature,
    flipped_bit,
    cut_short,
    nothing_in_it,
    base64_junk,
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_forgery_is_bad_and_has_no_signer(
    trusted: Store, git: Git, forge: Callable[[Store, Oid], Oid]
) -> None:
    oid = forge(trusted, sign_commit(trusted))
    verdict = check(trusted, oid)
    assert in_letters(verdict) == ask_git(git, trusted, oid) == ("B", "", "")
    assert verdict.problem
    with pytest.raises(subprocess.CalledProcessError):
        git("verify-commit", oid, cwd=Path(trusted.path))


def test_forgery_after_a_good_one_is_bad_too(trusted: Store) -> None:
    """The owner of a key is remembered; the verdict on a signature is not."""
    oid = sign_commit(trusted)
    checker = checker_of(trusted)
    payload, (signature,) = split_signature(read_raw_commit(trusted.objects, oid))
    time_s = seal.START_MS // 1000
    for more, status in ((b"", "good"), (b"more", "bad")) * 2:
        assert checker.check(payload + more, signature, time_s=time_s).status == status


@pytest.mark.parametrize("namespace", ["file", "git\n", "Git"])
def test_signature_for_something_else_than_git_is_bad(
    trusted: Store, key: Path, git: Git, namespace: str
) -> None:
    unsigned = with_header(trusted, b"")
    argv = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", str(key)]
    payload = read_raw_commit(trusted.objects, unsigned)
    made = subprocess.run(argv, input=payload, capture_output=True, check=True).stdout
    oid = with_header(trusted, b"gpgsig " + made.rstrip(b"\n").replace(b"\n", b"\n ") + b"\n")
    assert in_letters(check(trusted, oid)) == ask_git(git, trusted, oid) == ("B", "", "")


def test_key_that_may_not_sign_for_git_is_untrusted(
    trusted: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    """Git calls it bad; but the signature is not forged, the file just does not list the key."""
    store = trusting(trusted, tmp_path, f'ada namespaces="file" {public_half(key)}')
    oid = sign_commit(store)
    assert check(store, oid).status == "untrusted"
    assert "do not let its key sign for git" in str(check(store, oid).problem)
    assert ask_git(git, store, oid)[0] == "B"


@pytest.mark.parametrize("limit", [f'valid-before="{BEFORE}"', f'valid-after="{AFTER}"'])
def test_key_that_was_not_valid_at_the_commit_s_time(
    trusted: Store, key: Path, tmp_path: Path, git: Git, limit: str
) -> None:
    store = trusting(trusted, tmp_path, f"ada {limit} {public_half(key)}")
    oid = sign_commit(store)
    verdict = check(store, oid)
    assert (verdict.status, verdict.key) == ("expired", fingerprint(key))
    assert str(verdict.problem).startswith("key ")
    assert ask_git(git, store, oid)[0] == "U"


def test_key_that_changed_hands_is_each_one_s_in_their_time(
    trusted: Store, key: Path, tmp_path: Path
) -> None:
    store = trusting(
        trusted,
        tmp_path,
        f'ada valid-before="{BEFORE}" {public_half(key)}',
        f'bob valid-after="{BEFORE}" {public_half(key)}',
    )
    checker = checker_of(store)
    told = []
    for year in (2024, 2025, 2024):
        now_s = seal.START_MS // 1000 - (2025 - year) * 366 * 86_400
        raw = read_raw_commit(store.objects, sign_commit(store, now_ms=now_s * 1000))
        payload, (signature,) = split_signature(raw)
        told.append(checker.check(payload, signature, time_s=now_s).signer)
    assert told == ["ada", "bob", "ada"]


@pytest.mark.parametrize("now_ms", [0, 999, 400_000_000_000_000, 10**30])
def test_strange_dates_are_no_error(trusted: Store, now_ms: int) -> None:
    payload, (signature,) = split_signature(read_raw_commit(trusted.objects, sign_commit(trusted)))
    verdict = checker_of(trusted).check(payload, signature, time_s=now_ms // 1000)
    assert verdict.status in {"good", "untrusted"}


def test_revoked_key_is_distinguished_from_a_forgery(
    trusted: Store, key: Path, other: Path, tmp_path: Path, git: Git
) -> None:
    revoked = tmp_path / "revoked"
    revoked.write_text(f"{public_half(key)}\n")
    store = with_settings(trusted, gpg__ssh__revocationFile=str(revoked))
    oid = sign_commit(store)
    verdict = check(store, oid)
    assert (verdict.status, verdict.signer, verdict.key) == (
        "revoked",
        "ada@example.com",
        fingerprint(key),
    )
    assert ask_git(git, store, oid)[0] == "B"
    assert check(store, changed_message(store, oid)).status == "bad"
    revoked.write_text(f"{public_half(other)}\n")
    assert check(store, oid).status == "good"


def test_public_key_is_read_out_of_a_signature(trusted: Store, key: Path) -> None:
    _payload, (signature,) = split_signature(read_raw_commit(trusted.objects, sign_commit(trusted)))
    assert _public_key(signature) == base64.b64decode(public_half(key).split()[1])


@given(st.binary(max_size=200), st.booleans())
def test_no_key_is_read_out_of_junk(junk: bytes, encoded: bool) -> None:  # noqa: FBT001 (hypothesis)
    inner = base64.b64encode(b"SSHSIG" + junk) if encoded else junk
    armored = b"-----BEGIN SSH SIGNATURE-----\n" + inner + b"\n-----END SSH SIGNATURE-----\n"
    found = _public_key(armored)
    assert found is None or found in base64.b64decode(inner + b"==")
