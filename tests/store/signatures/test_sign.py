"""Signing, held against git: `git verify-commit` has to accept what we sign."""

import os
import signal
from pathlib import Path

import pytest
import seal
from dulwich.objects import Tree
from programs import write_program
from refusing import refuses
from store.signed_commits import sign_commit
from store.signing_keys import (
    Git,
    gpg_home,
    make_ssh_key,
    needs_gpg,
    needs_ssh,
    public_half,
    signed_and_trusted,
    signed_by,
    ssh_agent,
    with_settings,
)
from store.story import COMMITTER

from uwf_git.errors import Refused
from uwf_git.store.git.config import set_config
from uwf_git.store.objects.commit import CommitDraft, Signing, write_commit
from uwf_git.store.signatures import build_signer
from uwf_git.store.store import Store, open_store


def judge(git: Git, store: Store, oid: str) -> str:
    """Let git verify a commit: its verdict, the signer, and fsck must have nothing to say."""
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""
    git("verify-commit", oid, cwd=Path(store.path))
    return git("log", "-1", "--format=%G? %GS", oid, cwd=Path(store.path)).strip()


@needs_ssh
@pytest.mark.parametrize("half", ["key", "key.pub"])
def test_commit_signed_by_a_key_file_is_accepted_by_git(
    trusted: Store, half: str, tmp_path: Path, git: Git
) -> None:
    store = signed_by(trusted, tmp_path / half)
    assert judge(git, store, sign_commit(store)) == "G ada@example.com"


@needs_ssh
@pytest.mark.parametrize(
    "message",
    [b"", b"a", b"\n\n", "é: ü\n\n    gpgsig x\n".encode(), b"a: b\n\ngpgsig me\n\xff\n"],
    ids=repr,
)
def test_whatever_the_message_the_signature_is_good(
    trusted: Store, message: bytes, git: Git
) -> None:
    assert judge(git, trusted, sign_commit(trusted, message=message))[0] == "G"


@needs_ssh
@pytest.mark.parametrize("prefix", ["key::", ""])
def test_key_that_an_agent_holds_is_named_by_its_public_half(
    trusted: Store, key: Path, tmp_path: Path, git: Git, prefix: str
) -> None:
    store = signed_by(trusted, prefix + public_half(key))
    with ssh_agent(tmp_path / "s", key) as environ:
        key.unlink()
        assert judge(git, store, sign_commit(store, environ))[0] == "G"


@needs_ssh
def test_key_is_asked_of_the_command_that_names_it(
    trusted: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    script = f"echo \"$1::{public_half(key)}\"; echo 'key::other'"
    command = write_program(tmp_path / "which key", script)
    store = signed_by(trusted, "", gpg__ssh__defaultKeyCommand=f"'{command}' key")
    with ssh_agent(tmp_path / "s", key) as environ:
        assert judge(git, store, sign_commit(store, environ))[0] == "G"


@needs_ssh
def test_locked_key_is_an_error_that_says_how_to_unlock_it(store: Store, tmp_path: Path) -> None:
    key = make_ssh_key(tmp_path / "key", passphrase="secret")
    with refuses("cannot-sign") as caught:
        sign_commit(signed_by(store, key))
    assert "ssh-keygen: " in caught.value.message
    assert "passphrase" in caught.value.message
    assert f"`ssh-add {key}`" in str(caught.value.hint)
    assert f"`git -C {store.path} config commit.gpgsign false`" in str(caught.value.hint)
    assert not list(Path(store.path, "objects").glob("??"))


@needs_ssh
def test_locked_key_is_unlocked_by_the_agent(
    store: Store, key: Path, tmp_path: Path, git: Git
) -> None:
    with ssh_agent(tmp_path / "s", key) as environ:
        key.write_text("nobody reads this, as the agent has it\n")
        store = signed_and_trusted(store, key, tmp_path, signer="ada")
        store = signed_by(store, f"{key}.pub")
        assert judge(git, store, sign_commit(store, environ)) == "G ada"


@needs_ssh
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "user.signingKey names no key"),
        ({"user__signingkey": "/none/key"}, "user.signingKey names /none/key, which is not a file"),
        ({"gpg__ssh__defaultKeyCommand": "'x"}, "gpg.ssh.defaultKeyCommand is not a command"),
        ({"gpg__ssh__program": "/none/keygen"}, "gpg.ssh.program needs a program"),
        ({"gpg__format": "rot13"}, "gpg.format cannot be 'rot13': openpgp, x509, ssh"),
    ],
)
def test_settings_that_cannot_sign_are_reported_before_anything_is_signed(
    store: Store, settings: dict[str, str], words: str
) -> None:
    store = with_settings(store, **{"commit__gpgsign": "true", "gpg__format": "ssh", **settings})
    with refuses("cannot-sign", "unfit-setting") as caught:
        build_signer(store, dict(os.environ), committer=COMMITTER)
    assert words in caught.value.message
    assert f"`git -C {store.path} config " in str(caught.value.hint)


@pytest.mark.parametrize(
    ("format_", "setting"),
    [
        ("ssh", "gpg.ssh.program"),
        ("ssh", "gpg.ssh.defaultKeyCommand"),
        ("openpgp", "gpg.program"),
        ("openpgp", "gpg.openpgp.program"),
        ("x509", "gpg.x509.program"),
    ],
)
def test_program_that_only_the_store_names_is_not_run(
    store: Store, tmp_path: Path, format_: str, setting: str
) -> None:
    """git would run it; but a store may come from anywhere."""
    program = write_program(tmp_path / "evil", f"touch {tmp_path}/ran")
    settings = {"gpg.format": format_, "gpg.ssh.program": "ssh-keygen", setting: program}
    if setting.endswith("program"):
        settings["user.signingKey"] = "key::mine"
    for name, value in settings.items():
        set_config(f"{store.path}/config", name, value)
    store = open_store(store.path, environ=os.environ)

    with refuses("setting-not-trusted") as caught:
        sign_commit(store)
    assert not (tmp_path / "ran").exists()
    assert caught.value.facts == {"setting": setting, "value": program}

    mine = {**os.environ, "GIT_CONFIG_GLOBAL": str(tmp_path / "user")}
    set_config(mine["GIT_CONFIG_GLOBAL"], setting, program)
    with refuses("cannot-sign"):
        sign_commit(open_store(store.path, environ=mine))
    assert (tmp_path / "ran").exists()


def test_program_that_gives_no_signature_is_an_error(store: Store, tmp_path: Path) -> None:
    for setting, name in (("gpg__ssh__program", "ssh"), ("gpg__program", "openpgp")):
        program = write_program(tmp_path / name, "cat > /dev/null; echo Signed.")
        unfit = signed_by(store, program, **{setting: program})
        with refuses("cannot-sign", match=f"{name}: "):
            sign_commit(with_settings(unfit, gpg__format=name))


@needs_ssh
def test_no_terminal_is_asked_for_a_passphrase(store: Store, tmp_path: Path) -> None:
    """A prompt would leave an unattended step waiting, with the thread locked."""
    store = signed_by(store, make_ssh_key(tmp_path / "key", passphrase="secret"))
    child, terminal = os.forkpty()
    if child == 0:  # pragma: no cover (another process)
        status = 9
        signal.alarm(20)
        try:
            sign_commit(store)
        except Refused:
            status = 0
        finally:
            os._exit(status)
    said = b""
    try:
        while chunk := os.read(terminal, 1000):
            said += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(terminal)
    assert (os.waitpid(child, 0)[1], said) == (0, b"")


@needs_gpg
@pytest.mark.parametrize("key", ["", "ada@example.com"])
def test_commit_signed_by_gpg_is_accepted_by_git(
    store: Store, tmp_path: Path, git: Git, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a key the committer's own is taken."""
    store = with_settings(store, commit__gpgsign="true", user__signingkey=key)
    with gpg_home(tmp_path, "Ada", "C O Mitter") as environ:
        monkeypatch.setenv("GNUPGHOME", environ["GNUPGHOME"])
        sign = build_signer(store, environ, committer=b"C O Mitter <c o mitter@example.com>")
        signing = Signing(COMMITTER, COMMITTER, seal.START_MS, sign)
        oid = write_commit(store.objects, CommitDraft(Tree(), (), b"a: b\n", ()), signing)
        signer = "Ada <ada@example.com>" if key else "C O Mitter <c o mitter@example.com>"
        assert judge(git, store, oid) == f"G {signer}"


@needs_gpg
def test_key_that_gpg_does_not_have_is_an_error(store: Store, tmp_path: Path) -> None:
    store = with_settings(store, commit__gpgsign="true", user__signingkey="bob")
    with gpg_home(tmp_path) as environ, refuses("cannot-sign", match="gpg: ") as caught:
        sign_commit(store, environ)
    assert "[GNUPG:]" not in caught.value.message
    assert "user.signingKey" in str(caught.value.hint)
    assert "gpg -u bob -s" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["ssh", "openpgp", "x509"])
def test_program_that_never_ends_is_killed_and_named(
    kind: str, store: Store, key: Path, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "signer", "exec sleep 600")
    settings = {f"gpg__{kind}__program": str(program), "gpg__format": kind, "uwf__signTimeout": "1"}
    store = with_settings(signed_by(store, key), **settings)

    with refuses("cannot-sign", match=r"signer was killed after 1 s") as caught:
        sign_commit(store)

    assert "`uwf config set uwf.signTimeout 10`" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["0", "-1", "soon", "1.5", "9" * 9])
def test_time_to_sign_is_a_number_of_seconds(text: str, store: Store, key: Path) -> None:
    store = signed_by(store, key, uwf__signTimeout=text)
    with refuses("unfit-setting", match=r"uwf\.signTimeout cannot be"):
        build_signer(store, os.environ, committer=COMMITTER)
