"""Check ssh signatures with `ssh-keygen -Y`, called as git calls it, in git's order.

A signature is good only if `ssh-keygen -Y verify` accepted this very one; remembered principals
only save the search for the signer.
Source: ssh-keygen(1), "-Y find-principals", "-Y verify", "-Y check-novalidate".
"""

import base64
import binascii
import re
import tempfile
import time
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.store.git.program import Ran, run_program
from uwf_git.store.signatures.verdict import Verdict

_FORMAT = "ssh"
_NAMESPACE = "git"
_ARMOR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\s(.*?)-----END SSH SIGNATURE-----", re.DOTALL)
_LENGTH_BYTES = 4
_KEY_AT = len(b"SSHSIG") + 4
_GOOD = re.compile(r'Good "git" signature (?:for (?P<signer>.*) )?with \S+ key (?P<key>\S+)\s*')
_NOT_VALID_THEN = ("key has expired", "key is not yet valid")


class SshCheck:
    """Checks ssh signatures; remembers the principals of keys."""

    def __init__(
        self,
        program: str,
        environ: Mapping[str, str],
        *,
        allowed: str | None,
        revoked: str | None,
        timeout_s: float | None = None,
    ) -> None:
        self.program = program
        self.timeout_s = timeout_s
        self.environ = environ
        self.allowed = allowed
        self.revoked = revoked
        # By public key: a principal that it was good for; None if no principal has it at any time.
        self._seen: dict[bytes, str | None] = {}

    def check(self, payload: bytes, signature: bytes, *, time_s: int) -> Verdict:
        """Return the verdict on *signature* for *payload*, committed at *time_s*."""
        with tempfile.NamedTemporaryFile(prefix="uwf-signature-") as file:
            file.write(signature)
            file.flush()
            question = _Question(self, payload, file.name, _verify_time(time_s))
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
        found = question.find_principals()
        for principal in _principals(found):
            verdict = question.verify(principal)
            if verdict is not None:
                self._remember(public_key, principal)
                return verdict
        return self._account(question, found, public_key)

    def _account(
        self, question: "_Question", found: Ran | None, public_key: bytes | None
    ) -> Verdict:
        """Return the verdict on a signature that is not good."""
        ran = question.check_alone()
        sound = _read_good(ran)
        if sound is None:
            return Verdict("bad", _FORMAT, problem=_said(ran))
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
        self._remember(public_key, None)
        return Verdict("untrusted", _FORMAT, None, key, *self._unknown(public_key))

    def _remember(self, public_key: bytes | None, principal: str | None) -> None:
        if public_key:
            self._seen[public_key] = principal

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
    """One signature to check with ssh-keygen."""

    asker: SshCheck
    payload: bytes
    file: str
    time: str

    def find_principals(self) -> Ran:
        return self._ask("find-principals", "-f", self.asker.allowed or "", *self._when())

    def check_alone(self) -> Ran:
        return self._ask("check-novalidate", "-n", _NAMESPACE)

    def verify(self, principal: str, *, even_revoked: bool = False) -> Verdict | None:
        """Return the verdict if it is good for *principal*, else None."""
        words = ["-n", _NAMESPACE, "-f", self.asker.allowed or "", "-I", principal, *self._when()]
        if self.asker.revoked is not None and not even_revoked:
            words += ["-r", self.asker.revoked]
        good = _read_good(self._ask("verify", *words))
        return Verdict("good", _FORMAT, good["signer"], good["key"]) if good else None

    def _when(self) -> list[str]:
        return [f"-Overify-time={self.time}"] if self.time else []

    def _ask(self, question: str, *words: str) -> Ran:
        argv = [self.asker.program, "-Y", question, "-s", self.file, *words]
        return run_program(
            argv, self.asker.environ, given=self.payload, timeout_s=self.asker.timeout_s
        )


def _read_good(ran: Ran) -> re.Match[str] | None:
    if ran.status != 0:
        return None
    return _GOOD.fullmatch(ran.stdout.decode(errors="replace").partition("\n")[0])


def _said(ran: Ran) -> str:
    lines = _lines(ran.stderr) or _lines(ran.stdout) or [f"exit status {ran.status}"]
    return " ".join(lines[-1].split())[:300]


def _principals(found: Ran | None) -> list[str]:
    return _lines(found.stdout) if found is not None and found.status == 0 else []


def _lines(said: bytes) -> list[str]:
    return [line.rstrip("\r") for line in said.decode(errors="replace").split("\n") if line.strip()]


def _verify_time(time_s: int) -> str:
    """Return the time as ssh-keygen reads it, in local time as in git; "" for now."""
    if time_s <= 0:
        return ""
    try:
        return time.strftime("%Y%m%d%H%M%S", time.localtime(time_s))
    except (OverflowError, OSError, ValueError):
        # Beyond any calendar date; no key is valid then.
        return "99991231235959"


def _public_key(signature: bytes) -> bytes | None:
    """Return the public key in a signature; None if it cannot be read."""
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
    """Return a key as in a line of the allowed signers."""
    kind = _string_at(public_key, 0) or b"?"
    return f"{kind.decode(errors='replace')} {base64.b64encode(public_key).decode()}"
