"""Check OpenPGP and X.509 signatures with gpg or gpgsm, by their status lines as git does.

Only status lines are read: other output holds names that a signer chose.
Source: doc/DETAILS of GnuPG, "Format of the --status-fd output"; git-log(1), "%G?".
"""

import re
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.store.git.program import Ran, run_program
from uwf_git.store.signatures.verdict import SignatureStatus, Verdict

TRUST_LEVELS = ("undefined", "never", "marginal", "fully", "ultimate")
"""As git orders them (gpg.minTrustLevel)."""

_STATUS = re.compile(r"\[GNUPG:\] (?P<word>[A-Z_]+)(?: (?P<rest>.*))?")
_STATUSES: dict[str, SignatureStatus] = {
    "GOODSIG": "good",
    "BADSIG": "bad",
    "ERRSIG": "untrusted",
    "EXPSIG": "expired",
    "EXPKEYSIG": "expired",
    "REVKEYSIG": "revoked",
}
_PROBLEMS = {
    "BADSIG": "it is not a signature of this commit",
    "ERRSIG": "its key is not in the keyring, or of a kind that cannot be checked",
    "EXPSIG": "the signature has expired",
    "EXPKEYSIG": "its key has expired",
    "REVKEYSIG": "its key was revoked",
}


class GpgCheck(NamedTuple):
    """Checks signatures of one format with one program."""

    format: str
    program: str
    environ: Mapping[str, str]
    least_trust: str
    """One of the TRUST_LEVELS: the least that a key needs to be trusted."""

    timeout_s: float | None = None
    """How long the program may take."""

    def check(self, payload: bytes, signature: bytes) -> Verdict:
        """Return the verdict on *signature* for *payload*."""
        words = ["--keyid-format=long"] if self.format == "openpgp" else []
        with tempfile.NamedTemporaryFile(prefix="uwf-signature-") as file:
            file.write(signature)
            file.flush()
            argv = [self.program, *words, "--status-fd=1", "--verify", file.name, "-"]
            ran = run_program(argv, self.environ, given=payload, timeout_s=self.timeout_s)
        return self._read(ran)

    def _read(self, ran: Ran) -> Verdict:
        said = [
            (match["word"], match["rest"] or "")
            for line in ran.stdout.decode(errors="replace").split("\n")
            if (match := _STATUS.fullmatch(line.rstrip("\r")))
        ]
        answers = [(word, rest) for word, rest in said if word in _STATUSES]
        if len(answers) != 1:
            # No answer, or those of several signatures, which git rejects as well.
            problem = "it holds several signatures" if answers else _last_line(ran)
            return Verdict("bad", self.format, problem=problem)
        word, rest = answers[0]
        status = _STATUSES[word]
        if status == "bad":
            return Verdict("bad", self.format, problem=_PROBLEMS[word])
        key, _space, signer = rest.partition(" ")
        if word == "ERRSIG":
            hint = f"if you know whose it is, add it to your keyring: `gpg --recv-keys {key}`"
            return Verdict(status, self.format, None, key, _PROBLEMS[word], hint)
        fingerprint = next((rest.split(" ")[0] for word, rest in said if word == "VALIDSIG"), key)
        verdict = Verdict(status, self.format, signer, fingerprint, _PROBLEMS.get(word))
        return (
            verdict if status != "good" else self._weigh(verdict, ran, [word for word, _ in said])
        )

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
