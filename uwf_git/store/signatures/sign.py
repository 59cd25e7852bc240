"""Sign commits as git does, with the programs that git would run.

A program that the store's own config names runs only if the user trusts it; git would run it.
No passphrase is asked for on the terminal: ssh-agent and gpg-agent hold protected keys.
Why not dulwich.signature: it knows neither `~/`, `key::` nor keys of an agent, runs
gpg.ssh.defaultKeyCommand through a shell, checks ssh signatures for a signer called "git", and
fails with the exception of a process.
Source: git-config(1) on commit.gpgSign, gpg.* and user.signingKey; ssh-keygen(1), "-Y sign".
"""

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.find_program import find_program
from uwf_git.store.git.program import ProgramTooSlow, Ran, run_program
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted

SIGNATURE_FORMATS = {"openpgp": "gpg", "x509": "gpgsm", "ssh": "ssh-keygen"}

_KEY_COMMAND = "gpg.ssh.defaultKeyCommand"
_BEGINS = re.compile(rb"-----BEGIN [A-Z ]+-----\n")
_STATUS_LINE = re.compile(rb"^\[GNUPG:\].*\n?", re.MULTILINE)
_SIGNED = re.compile(rb"^\[GNUPG:\] SIG_CREATED ", re.MULTILINE)

SIGN_TIMEOUT = "uwf.signTimeout"
_TIMEOUT_S = 120
_SECONDS = re.compile(r"[1-9][0-9]{0,5}")

Sign = Callable[[bytes], bytes]


def cannot_sign(store: Store, problem: str, *, fix: str) -> Refused:
    return Refused(
        f"the commit cannot be signed, as commit.gpgsign requires: {problem}",
        code="cannot-sign",
        hint=f"{fix}, or leave commits unsigned with "
        f"`{git_config(store)} commit.gpgsign false`; then try again: nothing was lost",
    )


def unfit_setting(store: Store, name: str, problem: str) -> Refused:
    return Refused(
        f"{name} {problem}",
        code="unfit-setting",
        hint=f"change it with `{git_config(store)} {name} …`",
        setting=name,
    )


class _Signer(NamedTuple):
    store: Store
    environ: Mapping[str, str]
    program: str
    key: str
    """A file or a public key; for gpg any name of a key; "": ask gpg.ssh.defaultKeyCommand."""

    def run(self, argv: Sequence[str], *, given: bytes = b"") -> Ran:
        timeout_s = read_sign_timeout(self.store)
        try:
            return run_program(argv, self.environ, given=given, timeout_s=timeout_s)
        except ProgramTooSlow as error:
            longer = f"give it longer with `uwf config set {SIGN_TIMEOUT} {timeout_s * 10}`"
            fix = f"unlock the key in its agent before, or {longer}"
            raise cannot_sign(self.store, error.message, fix=fix) from error


def git_config(store: Store) -> str:
    """Return the beginning of the command that changes a setting of *store*."""
    return f"git -C {shlex.quote(store.path)} config"


def build_signer(store: Store, environ: Mapping[str, str], *, committer: bytes) -> Sign:
    """Return the function that signs by the settings of *store*, checked before an agent runs."""
    read_sign_timeout(store)  # Checked here, used when there is something to sign.
    name = store.config.get("gpg.format") or "openpgp"
    if name not in SIGNATURE_FORMATS:
        raise unfit_setting(
            store, "gpg.format", f"cannot be {name[:60]!r}: {', '.join(SIGNATURE_FORMATS)}"
        )
    program = get_signature_program(store, environ, name)
    key = store.config.get("user.signingkey") or ""
    if name != "ssh":
        named = key or committer.decode(errors="replace")
        return partial(_sign_with_gpg, _Signer(store, environ, program, named))
    if not key:
        _key_command(store)  # Checked here, run when there is something to sign.
    elif _literal_key(key) is None:
        key = expand_path(store, environ, key)
        if not os.path.isfile(key):
            raise cannot_sign(
                store,
                f"user.signingKey names {key}, which is not a file",
                fix="name the file of your key with "
                f"`{git_config(store)} user.signingKey ~/.ssh/id_ed25519.pub`",
            )
    return partial(_sign_with_ssh, _Signer(store, environ, program, key))


def read_sign_timeout(store: Store) -> int:
    """Return how many seconds a program may take to sign or to check a signature."""
    text = store.config.get(SIGN_TIMEOUT) or str(_TIMEOUT_S)
    if _SECONDS.fullmatch(text) is None:
        raise unfit_setting(store, SIGN_TIMEOUT, f"cannot be {text[:60]!r}: whole seconds, from 1")
    return int(text)


def get_signature_program(store: Store, environ: Mapping[str, str], name: str) -> str:
    setting = f"gpg.{name}.program"
    usual = SIGNATURE_FORMATS[name]
    named = store.config.get(setting)
    if named is None and name == "openpgp" and store.config.get("gpg.program"):
        setting, named = "gpg.program", store.config.get("gpg.program")
    named = named or usual
    program = find_program(expand_path(store, environ, named) if "/" in named else named, environ)
    if program is None:
        raise unfit_setting(store, setting, f"needs a program, and there is no {named}")
    if named != usual:
        require_trusted(store, setting, store.path)
    return program


def expand_path(store: Store, environ: Mapping[str, str], path: str) -> str:
    """Return *path* from a setting, absolute: from ``~/``, the work tree, or a bare repository."""
    home = environ.get("HOME")
    if home and path.startswith("~/"):
        return os.path.join(home, path[2:])
    folder, name = os.path.split(store.path)
    return os.path.join(folder if name == ".git" else store.path, os.path.expanduser(path))


def _literal_key(key: str) -> str | None:
    """Return the public key that the setting itself holds; None if it names a file."""
    if key.startswith("key::"):
        return key.removeprefix("key::")
    return key if key.startswith("ssh-") else None


def _sign_with_gpg(signer: _Signer, payload: bytes) -> bytes:
    argv = [signer.program, "--status-fd=2", "-bsau", signer.key]
    ran = signer.run(argv, given=payload)
    # The status line of gpg says whether it has signed; its exit status does not.
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
        # -U: only the agent can have the private key.
        ran = _run_ssh(signer, payload, ["-U", "-f", file.name])
    return _signature_of(signer, ran, unlock="give the key to ssh-agent with `ssh-add`")


def _run_ssh(signer: _Signer, payload: bytes, key: list[str]) -> Ran:
    # Else ssh-keygen opens the terminal to ask for a passphrase.
    asking = signer._replace(environ={"SSH_ASKPASS_REQUIRE": "force", **signer.environ})
    return asking.run([signer.program, "-Y", "sign", "-n", "git", *key], given=payload)


def _signature_of(signer: _Signer, ran: Ran, *, unlock: str) -> bytes:
    signature = ran.stdout.replace(b"\r", b"")
    if ran.status == 0 and _BEGINS.match(signature):
        return signature
    said = " ".join(ran.last_line.split())[:300] or f"exit status {ran.status}"
    program = os.path.basename(signer.program)
    raise cannot_sign(signer.store, f"{program}: {said}", fix=unlock)


def _key_command(store: Store) -> list[str]:
    command = store.config.get(_KEY_COMMAND)
    if not command:
        raise cannot_sign(
            store,
            "user.signingKey names no key",
            fix=f"name one with `{git_config(store)} user.signingKey ~/.ssh/id_ed25519.pub`",
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        problem = f"is not a command: {str(error).lower()}"
        raise unfit_setting(store, _KEY_COMMAND, problem) from error
    require_trusted(store, _KEY_COMMAND, store.path)
    return words


def _ask_for_key(signer: _Signer) -> str:
    ran = signer.run(_key_command(signer.store))
    first = ran.stdout.decode(errors="surrogateescape").partition("\n")[0].strip()
    if ran.status == 0 and _literal_key(first) is not None:
        return first
    said = " ".join(ran.last_line.split())[:300] or f"exit status {ran.status}"
    raise cannot_sign(
        signer.store,
        f"gpg.ssh.defaultKeyCommand prints no key: {said}",
        fix="give the key to ssh-agent with `ssh-add`, or name it with "
        f"`{git_config(signer.store)} user.signingKey`",
    )
