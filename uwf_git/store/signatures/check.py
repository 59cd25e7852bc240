"""Check the signature of a commit as `git verify-commit` does, without git.

Stricter than git in one point: a commit with two signatures is bad, since git would not notice
that one was added.
Source: gitformat-signature(5); git-config(1) on gpg.*.
"""

import os
import re
from collections.abc import Mapping
from functools import cache, cached_property

from uwf_git.store.signatures.gpg import TRUST_LEVELS, GpgCheck
from uwf_git.store.signatures.sign import (
    expand_path,
    get_signature_program,
    read_sign_timeout,
    unfit_setting,
)
from uwf_git.store.signatures.ssh import SshCheck
from uwf_git.store.signatures.verdict import Verdict
from uwf_git.store.store import Store

_MARKS = {
    b"-----BEGIN SSH SIGNATURE-----": "ssh",
    b"-----BEGIN PGP SIGNATURE-----": "openpgp",
    b"-----BEGIN PGP MESSAGE-----": "openpgp",
    b"-----BEGIN SIGNED MESSAGE-----": "x509",
}
_HEADER = re.compile(rb"^gpgsig([^ \n]*)(?: ([^\n]*(?:\n [^\n]*)*))?(?:\n|\Z)", re.MULTILINE)
_LONGEST_BYTES = 100_000


class SignatureChecker:
    """Checks signatures by the settings of one store."""

    def __init__(self, store: Store, environ: Mapping[str, str]) -> None:
        self._store = store
        self._environ = environ
        self._gpg = cache(self._make_gpg)

    def check(self, raw: bytes, *, time_s: int) -> Verdict:
        """Return the verdict on the signature in the commit *raw*, committed at *time_s*.

        Raises:
            Refused: a setting is invalid, or names a program or a file that does not exist.
            ProgramFailed: the program that checks signatures could not be started, or took too
                long.
        """
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
        """Return the file that gpg.ssh.<what>File names; None if that is not set.

        Raises:
            Refused: there is no such file; git would ignore that.
        """
        setting = f"gpg.ssh.{what}File"
        named = self._store.config.get(setting)
        if not named:
            return None
        path = expand_path(self._store, self._environ, named)
        if not os.path.isfile(path):
            raise unfit_setting(self._store, setting, f"names {path}, which is not a file")
        return path

    def _least_trust(self) -> str:
        named = self._store.config.get("gpg.minTrustLevel")
        level = (named or TRUST_LEVELS[0]).lower()
        if level not in TRUST_LEVELS:
            problem = f"cannot be {level[:60]!r}: {', '.join(TRUST_LEVELS)}"
            raise unfit_setting(self._store, "gpg.minTrustLevel", problem)
        return level


def split_signature(raw: bytes) -> tuple[bytes, list[bytes]]:
    """Split a commit's bytes into the signed payload and its signatures (at most one is valid).

    Headers that only begin with ``gpgsig`` are not part of the payload either; they count as
    signatures if there is a ``gpgsig`` header as well.
    """
    end = raw.find(b"\n\n") + 1 or len(raw)
    headers = _HEADER.findall(raw[:end])
    payload = _HEADER.sub(b"", raw[:end]) + raw[end:]
    if not any(rest == b"" for rest, _value in headers):
        return payload, []
    return payload, [value.replace(b"\n ", b"\n") + b"\n" for _rest, value in headers]
