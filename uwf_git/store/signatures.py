"""The verdict on a commit's signature."""

import base64
import binascii
import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Literal, NamedTuple

from uwf_git.errors import Refused
from uwf_git.model.text import quote_path
from uwf_git.store.git.config import find_program
from uwf_git.store.git.program import ProgramTooSlow, Ran, run_program
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted

SignatureStatus = Literal["good", "bad", "revoked", "expired", "untrusted", "unsigned", "derived"]
"""good       made for this commit by a trusted key
bad        not a signature of this commit
revoked    of this commit, by a revoked key
expired    of this commit, by a key that was not valid at its date
untrusted  of this commit, by a key that is not trusted, or that cannot be checked here
unsigned   there is no signature
derived    there is none, and nobody made it: it follows from the commits before it"""


class Verdict(NamedTuple):
    status: SignatureStatus
    format: str | None = None
    """``ssh``, ``openpgp`` or ``x509``; None if unknown."""

    signer: str | None = None
    """The owner of the key: a principal of the allowed signers, or a gpg user id."""

    key: str | None = None

    problem: str | None = None

    hint: str | None = None
    """What to do about it; the same text for every commit with the same problem."""


# Sign commits as git does, with the programs that git would run.
#
# A program that the store's own config names runs only if the user trusts it; git would run it.
# No passphrase is asked for on the terminal: ssh-agent and gpg-agent hold protected keys. Why not
# dulwich.signature: it knows neither `~/`, `key::` nor keys of an agent, runs
# gpg.ssh.defaultKeyCommand through a shell, checks ssh signatures for a signer called "git", and
# fails with the exception of a process. Source: git-config(1) on commit.gpgSign, gpg.* and
# user.signingKey; ssh-keygen(1), "-Y sign".

SIGNATURE_FORMATS = {"openpgp": "gpg", "x509": "gpgsm", "ssh": "ssh-keygen"}

_KEY_COMMAND = "gpg.ssh.defaultKeyCommand"
_BEGINS = re.compile(rb"-----BEGIN [A-Z ]+-----\n")
_STATUS_LINE = re.compile(rb"^\[GNUPG:\].*\n?", re.MULTILINE)
_SIGNED = re.compile(rb"^\[GNUPG:\] SIG_CREATED ", re.MULTILINE)

SIGN_TIMEOUT = "uwf.signTimeout"
_TIMEOUT_S = 120
_SECONDS = re.compile(r"[1-9][0-9]{0,5}")
_MOST_TIMEOUT_S = 999_999

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
            longer_s = min(timeout_s * 10, _MOST_TIMEOUT_S)
            longer = f"give it longer with `uwf config set {SIGN_TIMEOUT} {longer_s}`"
            fix = f"unlock the key in its agent before, or {longer}"
            raise cannot_sign(self.store, error.message, fix=fix) from error


def git_config(store: Store) -> str:
    """Return the beginning of the command that changes a setting of *store*."""
    return f"git -C {quote_path(store.path)} config"


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
        unlock = f"unlock the key with `ssh-add {quote_path(key.removesuffix('.pub'))}`"
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
    program = os.path.basename(signer.program)
    raise cannot_sign(signer.store, f"{program}: {_last_line(ran)}", fix=unlock)


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
    raise cannot_sign(
        signer.store,
        f"gpg.ssh.defaultKeyCommand prints no key: {_last_line(ran)}",
        fix="give the key to ssh-agent with `ssh-add`, or name it with "
        f"`{git_config(signer.store)} user.signingKey`",
    )


# Check OpenPGP and X.509 signatures with gpg or gpgsm, by their status lines as git does.
#
# Only status lines are read: other output holds names that a signer chose. Source: doc/DETAILS of
# GnuPG, "Format of the --status-fd output"; git-log(1), "%G?".

TRUST_LEVELS = ("undefined", "never", "marginal", "fully", "ultimate")
"""As git orders them (gpg.minTrustLevel)."""

_STATUS = re.compile(r"\[GNUPG:\] (?P<word>[A-Z_]+)(?: (?P<rest>.*))?")
_ANSWERS: dict[str, tuple[SignatureStatus, str | None]] = {
    "GOODSIG": ("good", None),
    "BADSIG": ("bad", "it is not a signature of this commit"),
    "ERRSIG": ("untrusted", "its key is not in the keyring, or of a kind that cannot be checked"),
    "EXPSIG": ("expired", "the signature has expired"),
    "EXPKEYSIG": ("expired", "its key has expired"),
    "REVKEYSIG": ("revoked", "its key was revoked"),
}


class GpgCheck(NamedTuple):
    format: str
    program: str
    environ: Mapping[str, str]
    least_trust: str
    """The least of the TRUST_LEVELS that a key needs to be trusted."""

    timeout_s: float | None = None

    def check(self, payload: bytes, signature: bytes) -> Verdict:
        words = ["--keyid-format=long"] if self.format == "openpgp" else []
        with tempfile.NamedTemporaryFile(prefix="uwf-signature-") as file:
            file.write(signature)
            file.flush()
            argv = [self.program, *words, "--status-fd=1", "--verify", file.name, "-"]
            ran = run_program(argv, self.environ, given=payload, timeout_s=self.timeout_s)
        verdict = self._read(ran)
        # The hints are commands of gpg; gpgsm has none like them.
        return verdict if self.format == "openpgp" else verdict._replace(hint=None)

    def _read(self, ran: Ran) -> Verdict:
        said = [
            (match["word"], match["rest"] or "")
            for line in ran.stdout.decode(errors="replace").split("\n")
            if (match := _STATUS.fullmatch(line.rstrip("\r")))
        ]
        answers = [(word, rest) for word, rest in said if word in _ANSWERS]
        if len(answers) != 1:
            # No answer, or those of several signatures, which git rejects as well.
            several = "it holds several signatures" if answers else _last_line(ran)
            return Verdict("bad", self.format, problem=several)
        word, rest = answers[0]
        status, problem = _ANSWERS[word]
        if status == "bad":
            return Verdict("bad", self.format, problem=problem)
        key, _space, signer = rest.partition(" ")
        if word == "ERRSIG":
            hint = f"if you know whose it is, add it to your keyring: `gpg --recv-keys {key}`"
            return Verdict(status, self.format, None, key, problem, hint)
        fingerprint = next((rest.split(" ")[0] for word, rest in said if word == "VALIDSIG"), key)
        verdict = Verdict(status, self.format, signer, fingerprint, problem)
        if status != "good":
            return verdict
        return self._weigh(verdict, ran, [word for word, _rest in said])

    def _weigh(self, verdict: Verdict, ran: Ran, words: list[str]) -> Verdict:
        """Check that the key of a good signature is trusted as well."""
        if ran.status != 0:
            return verdict._replace(status="untrusted", problem=_last_line(ran))
        trusts = [
            word.removeprefix("TRUST_").lower() for word in words if word.startswith("TRUST_")
        ]
        trust = trusts[-1] if trusts and trusts[-1] in TRUST_LEVELS else "undefined"
        if TRUST_LEVELS.index(trust) >= TRUST_LEVELS.index(self.least_trust):
            return verdict
        return verdict._replace(
            status="untrusted",
            problem=f"its key is trusted too little: {trust}",
            hint=f"if it is the signer's key, sign it: `gpg --lsign-key {verdict.key}`",
        )


def _last_line(ran: Ran) -> str:
    return " ".join(ran.last_line.split())[:300] or f"exit status {ran.status}"


# Check ssh signatures with `ssh-keygen -Y`, called as git calls it, in git's order.
#
# A signature is good only if `ssh-keygen -Y verify` accepted this very one; remembered principals
# only save the search for the signer. Source: ssh-keygen(1), "-Y find-principals", "-Y verify",
# "-Y check-novalidate".

_FORMAT = "ssh"
_NAMESPACE = "git"
_ARMOR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\s(.*?)-----END SSH SIGNATURE-----", re.DOTALL)
_LENGTH_BYTES = 4
_KEY_AT = len(b"SSHSIG") + 4
_GOOD = re.compile(r'Good "git" signature (?:for (?P<signer>.*) )?with \S+ key (?P<key>\S+)\s*')
_NOT_VALID_THEN = ("key has expired", "key is not yet valid")


@dataclass(slots=True)
class SshCheck:
    program: str
    environ: Mapping[str, str]
    allowed: str | None = field(kw_only=True)
    revoked: str | None = field(kw_only=True)
    timeout_s: float | None = field(default=None, kw_only=True)
    _seen: dict[bytes, str | None] = field(default_factory=dict, init=False)
    """By public key: a principal that it was good for; None if no principal has it at any time."""

    def check(self, payload: bytes, signature: bytes, *, time_s: int) -> Verdict:
        with tempfile.NamedTemporaryFile(prefix="uwf-signature-") as file:
            file.write(signature)
            file.flush()
            moment = _verify_time(time_s)
            when = [f"-Overify-time={moment}"] if moment else []
            question = _Question(self, payload, file.name, when)
            return self._check(question, _public_key(signature))

    def _check(self, question: "_Question", public_key: bytes | None) -> Verdict:
        is_seen = public_key is not None and public_key in self._seen
        known = self._seen.get(public_key) if public_key else None
        verdict = question.verify(known) if known else None
        if verdict is not None:
            return verdict
        if self.allowed is None or (is_seen and known is None):
            return self._account(question, None, public_key)
        # Also for a known key: at another time it may be valid for another principal.
        found = question.ask("find-principals", "-f", self.allowed, *question.when)
        for principal in _principals(found):
            verdict = question.verify(principal)
            if verdict is not None:
                if public_key:
                    self._seen[public_key] = principal
                return verdict
        return self._account(question, found, public_key)

    def _account(
        self, question: "_Question", found: Ran | None, public_key: bytes | None
    ) -> Verdict:
        """Return the verdict on a signature that is not good."""
        ran = question.ask("check-novalidate", "-n", _NAMESPACE)
        sound = _read_good(ran)
        if sound is None:
            return Verdict("bad", _FORMAT, problem=_last_line(ran))
        key = sound["key"]
        principals = _principals(found)
        for principal in principals:
            if self.revoked is not None and question.verify(principal, even_revoked=True):
                return Verdict("revoked", _FORMAT, principal, key, "its key was revoked")
        said = "" if found is None else found.stderr.decode(errors="replace")
        if any(words in said for words in _NOT_VALID_THEN):
            problem = next(line for line in said.split("\n") if "key " in line)
            return Verdict("expired", _FORMAT, None, key, problem.partition(": ")[2])
        if principals:
            problem = "the allowed signers do not let its key sign for git"
            return Verdict("untrusted", _FORMAT, None, key, problem)
        if public_key:
            self._seen[public_key] = None
        return Verdict("untrusted", _FORMAT, None, key, *self._unknown(public_key))

    def _unknown(self, public_key: bytes | None) -> tuple[str, str]:
        if self.allowed is None:
            setting = "gpg.ssh.allowedSignersFile"
            hint = f"name the file of the keys you know: `git config --global {setting} PATH`"
            return f"{setting} is not set, so no key is known", hint
        line = f"WHO {_key_text(public_key)}" if public_key else "WHO KEY"
        return (
            "its key is not among the allowed signers",
            f"to trust it, add `{line}` to {self.allowed}",
        )


class _Question(NamedTuple):
    asker: SshCheck
    payload: bytes
    file: str
    when: list[str]
    """The option for the date of the commit."""

    def verify(self, principal: str, *, even_revoked: bool = False) -> Verdict | None:
        words = ["-n", _NAMESPACE, "-f", self.asker.allowed or "", "-I", principal, *self.when]
        if self.asker.revoked is not None and not even_revoked:
            words += ["-r", self.asker.revoked]
        good = _read_good(self.ask("verify", *words))
        return Verdict("good", _FORMAT, good["signer"], good["key"]) if good else None

    def ask(self, question: str, *words: str) -> Ran:
        argv = [self.asker.program, "-Y", question, "-s", self.file, *words]
        return run_program(
            argv, self.asker.environ, given=self.payload, timeout_s=self.asker.timeout_s
        )


def _read_good(ran: Ran) -> re.Match[str] | None:
    if ran.status != 0:
        return None
    return _GOOD.fullmatch(ran.stdout.decode(errors="replace").partition("\n")[0])


def _principals(found: Ran | None) -> list[str]:
    said = found.stdout.decode(errors="replace") if found and found.status == 0 else ""
    return [line.rstrip("\r") for line in said.split("\n") if line.strip()]


def _verify_time(time_s: int) -> str:
    """Return the time as ssh-keygen reads it, in local time as in git; "" for now."""
    if time_s <= 0:
        return ""
    with suppress(OverflowError, OSError, ValueError):
        return time.strftime("%Y%m%d%H%M%S", time.localtime(time_s))
    # Beyond any calendar date; no key is valid then.
    return "99991231235959"


def _public_key(signature: bytes) -> bytes | None:
    armor = _ARMOR.match(signature)
    try:
        blob = binascii.a2b_base64(armor[1] if armor else b"")
    except binascii.Error:
        return None
    return _string_at(blob, _KEY_AT) if blob.startswith(b"SSHSIG") else None


def _string_at(blob: bytes, at: int) -> bytes | None:
    """Return the string of the ssh protocol at *at*: four bytes of length, then the content."""
    start = at + _LENGTH_BYTES
    end = start + int.from_bytes(blob[at:start], "big")
    return blob[start:end] if start < end <= len(blob) else None


def _key_text(public_key: bytes) -> str:
    kind = _string_at(public_key, 0) or b"?"
    return f"{kind.decode(errors='replace')} {base64.b64encode(public_key).decode()}"


_MARKS = {
    b"-----BEGIN SSH SIGNATURE-----": "ssh",
    b"-----BEGIN PGP SIGNATURE-----": "openpgp",
    b"-----BEGIN PGP MESSAGE-----": "openpgp",
    b"-----BEGIN SIGNED MESSAGE-----": "x509",
}
_HEADER = re.compile(rb"^gpgsig([^ \n]*)(?: ([^\n]*(?:\n [^\n]*)*))?(?:\n|\Z)", re.MULTILINE)
_LONGEST_BYTES = 100_000


# Check the signature of a commit as `git verify-commit` does, without git.
#
# Stricter than git in one point: a commit with two signatures is bad, since git would not notice
# that one was added. Source: gitformat-signature(5); git-config(1) on gpg.*.


class SignatureChecker:
    def __init__(self, store: Store, environ: Mapping[str, str]) -> None:
        self._store = store
        self._environ = environ
        self._gpg = cache(self._make_gpg)

    def check(self, raw: bytes, *, time_s: int) -> Verdict:
        payload, signatures = split_signature(raw)
        if not signatures:
            return Verdict("unsigned")
        if len(signatures) > 1:
            return Verdict("bad", problem="it has several signatures")
        signature = signatures[0]
        if len(signature) > _LONGEST_BYTES:
            return Verdict("bad", problem=f"its signature has {len(signature)} bytes")
        name = next((name for mark, name in _MARKS.items() if signature.startswith(mark)), None)
        if name is None:
            return Verdict("bad", problem="its signature has no format that git knows")
        if name != "ssh":
            return self._gpg(name).check(payload, signature)
        verdict = self._ssh.check(payload, signature, time_s=time_s)
        if verdict.status == "good" and self._least_trust() == "ultimate":
            # The allowed signers are trusted fully: git-config(1), gpg.ssh.allowedSignersFile.
            problem = "gpg.minTrustLevel asks for more than the allowed signers are trusted"
            return verdict._replace(status="untrusted", problem=problem)
        return verdict

    @cached_property
    def _ssh(self) -> SshCheck:
        return SshCheck(
            get_signature_program(self._store, self._environ, "ssh"),
            self._environ,
            allowed=self._find_file("allowedSigners"),
            revoked=self._find_file("revocation"),
            timeout_s=read_sign_timeout(self._store),
        )

    def _make_gpg(self, name: str) -> GpgCheck:
        program = get_signature_program(self._store, self._environ, name)
        least = max(self._least_trust(), "marginal", key=TRUST_LEVELS.index)
        return GpgCheck(name, program, self._environ, least, read_sign_timeout(self._store))

    def _find_file(self, what: str) -> str | None:
        setting = f"gpg.ssh.{what}File"
        named = self._store.config.get(setting)
        if not named:
            return None
        path = expand_path(self._store, self._environ, named)
        if not os.path.isfile(path):
            raise unfit_setting(self._store, setting, f"names {path}, which is not a file")
        return path

    def _least_trust(self) -> str:
        level = (self._store.config.get("gpg.minTrustLevel") or TRUST_LEVELS[0]).lower()
        if level not in TRUST_LEVELS:
            problem = f"cannot be {level[:60]!r}: {', '.join(TRUST_LEVELS)}"
            raise unfit_setting(self._store, "gpg.minTrustLevel", problem)
        return level


def split_signature(raw: bytes) -> tuple[bytes, list[bytes]]:
    """Split a commit's bytes into the signed payload and its signatures (at most one is valid).

    Headers that begin with ``gpgsig`` are no payload, and signatures if ``gpgsig`` is there.
    """
    end = raw.find(b"\n\n") + 1 or len(raw)
    headers = _HEADER.findall(raw[:end])
    payload = _HEADER.sub(b"", raw[:end]) + raw[end:]
    if not any(rest == b"" for rest, _value in headers):
        return payload, []
    return payload, [value.replace(b"\n ", b"\n") + b"\n" for _rest, value in headers]
