"""Signatures: commits signed as git signs them, by the programs that git would run.

Owns: which settings of git's speak of signing, and calling ssh-keygen, gpg and gpgsm to sign.
Knows nothing of: what is signed, and whether a signature is any good (signature_check.py).
Always true: nobody is asked for a passphrase on our terminal: ssh-agent and gpg-agent hold keys
that have one.
Why not dulwich.signature: it knows neither `~/`, `key::` nor keys that an agent holds, runs
gpg.ssh.defaultKeyCommand through a shell, checks ssh signatures for a signer called "git", and
fails with the exception of a process.
Source: git-config(1) on commit.gpgSign, gpg.* and user.signingKey; ssh-keygen(1), "-Y sign".
"""

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.program import Ran, find_program, run_program
from uwf_git.store.store import Store

FORMATS = {"openpgp": "gpg", "x509": "gpgsm", "ssh": "ssh-keygen"}
"""What gpg.format may be, and the program that signs and verifies it unless another is named."""

_BEGINS = re.compile(rb"-----BEGIN [A-Z ]+-----\n")
_STATUS_LINE = re.compile(rb"^\[GNUPG:\].*\n?", re.MULTILINE)
_SIGNED = re.compile(rb"^\[GNUPG:\] SIG_CREATED ", re.MULTILINE)

Sign = Callable[[bytes], bytes]


class CannotSign(Refused):
    """The settings ask for signed commits, and this one cannot be signed."""

    code = "cannot-sign"

    def __init__(self, store: Store, problem: str, *, fix: str) -> None:
        super().__init__(
            f"the commit cannot be signed, as commit.gpgsign asks: {problem}",
            hint=f"{fix}, or leave commits unsigned with "
            f"`{git_config(store)} commit.gpgsign false`; then do the same again: nothing was lost",
        )


class UnfitSetting(Refused):
    """A setting of git's about signatures has a value that means nothing."""

    code = "unfit-setting"

    def __init__(self, store: Store, name: str, problem: str) -> None:
        super().__init__(
            f"{name} {problem}", hint=f"change it with `{git_config(store)} {name} …`", setting=name
        )


class _Signer(NamedTuple):
    """What signing takes."""

    store: Store
    environ: Mapping[str, str]
    program: str
    key: str
    """A file, or the public key itself; for gpg whatever names a key. "" asks a command."""


def git_config(store: Store) -> str:
    """Give the beginning of the command that changes a setting of *store*."""
    return f"git -C {shlex.quote(store.path)} config"


def build_signer(store: Store, environ: Mapping[str, str], *, committer: bytes) -> Sign:
    """Give what signs a commit's bytes, as the settings of *store* say.

    All is looked at that can be without signing, so that a step can ask before its agent runs.

    Raises:
        CannotSign: no key or no program; what is given back raises it as well.
        UnfitSetting: the settings make no sense.
    """
    name = store.config.get("gpg.format") or "openpgp"
    if name not in FORMATS:
        raise UnfitSetting(store, "gpg.format", f"cannot be {name[:60]!r}: {', '.join(FORMATS)}")
    program = get_signature_program(store, environ, name)
    key = store.config.get("user.signingkey") or ""
    if name != "ssh":
        named = key or committer.decode(errors="replace")
        return partial(_sign_with_gpg, _Signer(store, environ, program, named))
    if not key:
        _key_command(store)  # It is run when there is something to sign.
    elif _literal_key(key) is None:
        key = expand_path(store, environ, key)
        if not os.path.isfile(key):
            raise CannotSign(
                store,
                f"user.signingKey names {key}, which is no file",
                fix="name the file of your key with "
                f"`{git_config(store)} user.signingKey ~/.ssh/id_ed25519.pub`",
            )
    return partial(_sign_with_ssh, _Signer(store, environ, program, key))


def get_signature_program(store: Store, environ: Mapping[str, str], name: str) -> str:
    """Give the program for signatures of the format *name*.

    Raises:
        UnfitSetting: there is no such program.
    """
    setting = f"gpg.{name}.program"
    named = store.config.get(setting)
    if named is None and name == "openpgp":
        named = store.config.get("gpg.program")
    wanted = expand_path(store, environ, named) if named and "/" in named else named
    program = find_program(wanted or FORMATS[name], environ)
    if program is None:
        raise UnfitSetting(
            store, setting, f"needs a program, and there is no {wanted or FORMATS[name]}"
        )
    return program


def expand_path(store: Store, environ: Mapping[str, str], path: str) -> str:
    """Give the file that git would take *path* for, which a setting of *store* names.

    ``~/`` is the home; others begin where git stands when it works on the store.
    """
    home = environ.get("HOME")
    if home and path.startswith("~/"):
        return os.path.join(home, path[2:])
    folder, name = os.path.split(store.path)
    return os.path.join(folder if name == ".git" else store.path, os.path.expanduser(path))


def _literal_key(key: str) -> str | None:
    """Give the public key that a setting holds itself, None if it names a file."""
    if key.startswith("key::"):
        return key.removeprefix("key::")
    return key if key.startswith("ssh-") else None


def _sign_with_gpg(signer: _Signer, payload: bytes) -> bytes:
    argv = [signer.program, "--status-fd=2", "-bsau", signer.key]
    ran = run_program(argv, signer.environ, given=payload)
    # gpg says by its status line whether it has signed, whatever its exit status.
    if not _SIGNED.search(ran.stderr):
        ran = ran._replace(status=ran.status or 1)
    words = _STATUS_LINE.sub(b"", ran.stderr)
    asks = f"echo | {shlex.quote(signer.program)} -u {shlex.quote(signer.key)} -s > /dev/null"
    unlock = (
        f"unlock the key in gpg-agent (at a terminal, `{asks}` asks for its passphrase) or name "
        "another with user.signingKey"
    )
    return _signature_of(signer, ran._replace(stderr=words), unlock=unlock)


def _sign_with_ssh(signer: _Signer, payload: bytes) -> bytes:
    key = signer.key or _ask_for_key(signer)
    literal = _literal_key(key)
    if literal is None:
        unlock = f"unlock the key with `ssh-add {shlex.quote(key.removesuffix('.pub'))}`"
        return _signature_of(signer, _run_ssh(signer, payload, ["-f", key]), unlock=unlock)
    with tempfile.NamedTemporaryFile(prefix="uwf-key-") as file:
        file.write(literal.encode(errors="surrogateescape") + b"\n")
        file.flush()
        # -U: only the agent can have the other half.
        ran = _run_ssh(signer, payload, ["-U", "-f", file.name])
    return _signature_of(signer, ran, unlock="give the key to ssh-agent with `ssh-add`")


def _run_ssh(signer: _Signer, payload: bytes, key: list[str]) -> Ran:
    # ssh-keygen would open the terminal by itself to ask for a passphrase.
    environ = {"SSH_ASKPASS_REQUIRE": "force", **signer.environ}
    return run_program([signer.program, "-Y", "sign", "-n", "git", *key], environ, given=payload)


def _signature_of(signer: _Signer, ran: Ran, *, unlock: str) -> bytes:
    signature = ran.stdout.replace(b"\r", b"")
    if ran.status == 0 and _BEGINS.match(signature):
        return signature
    said = " ".join(ran.last_line.split())[:300] or f"exit status {ran.status}"
    program = os.path.basename(signer.program)
    raise CannotSign(signer.store, f"{program}: {said}", fix=unlock)


def _key_command(store: Store) -> list[str]:
    """Give the words of the command that names a key.

    Raises:
        CannotSign: there is none.
        UnfitSetting: its quotes do not match.
    """
    command = store.config.get("gpg.ssh.defaultkeycommand")
    if not command:
        raise CannotSign(
            store,
            "user.signingKey names no key",
            fix=f"name one with `{git_config(store)} user.signingKey ~/.ssh/id_ed25519.pub`",
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        problem = f"is no command: {str(error).lower()}"
        raise UnfitSetting(store, "gpg.ssh.defaultKeyCommand", problem) from error
    return words


def _ask_for_key(signer: _Signer) -> str:
    ran = run_program(_key_command(signer.store), signer.environ)
    first = ran.stdout.decode(errors="surrogateescape").partition("\n")[0].strip()
    if ran.status == 0 and _literal_key(first) is not None:
        return first
    said = " ".join(ran.last_line.split())[:300] or f"exit status {ran.status}"
    raise CannotSign(
        signer.store,
        f"gpg.ssh.defaultKeyCommand gives no key: {said}",
        fix="give the key to ssh-agent with `ssh-add`, or name it with "
        f"`{git_config(signer.store)} user.signingKey`",
    )
