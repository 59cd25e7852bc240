"""Mask text that has the shape of a key, whatever its origin, and in whatever spelling.

Each shape is too long and odd for prose; all other text is unchanged. Secrets known from the
environment are masked by value (masking.py).
Source: the prefixes that GitHub's secret scanning lists for its partners' keys.
"""

import re
from collections.abc import Iterator
from typing import Any

from uwf_git.engine.masking import MASK, change_texts, in_bytes, replace_spans
from uwf_git.engine.secret_forms import Span, find_spans, read_all

# A word begins here, also behind a colour or an erased line (`grep --color`).
_EDGE = r"(?:\b|(?<=[\d\[][mK]))"

_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    rf"|{_EDGE}(?:"
    # OpenAI, Anthropic, OpenRouter, DeepSeek; Stripe; Groq, xAI, Replicate, Perplexity.
    r"sk-(?=[\w-]*[0-9])[\w-]{16,}"
    r"|[sr]k_(?:live|test)_\w{16,}"
    r"|(?:gsk_|xai-|r8_|pplx-)\w{20,}"
    # GitHub, GitLab, Slack, npm, PyPI, Hugging Face.
    r"|(?:gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})"
    r"|xox[abeoprs]-[\w-]{10,}"
    r"|(?:npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{30,})"
    # Amazon, Google.
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|AIza[\w-]{35}"
    # A JSON web token: two objects and a signature in base64url.
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"
    r")",
    re.DOTALL,
)

# Only a part of these is the key; the rest names its owner.
_AFTER = re.compile(
    rf"{_EDGE}(?:"
    r"(?P<keep>Bearer[ ]+)[\w.~+/-]{16,}=*"
    r"|(?P<name>[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=)[^\s'\"]{8,}"
    r")|(?P<user>\w://[^\s/:@]*:)[^\s/@]+(?=@)"
)

# Each shape has one of these; most texts of an event have none.
_HINT = re.compile(r"[-_=]|AKIA|ASIA|AIza|eyJ|Bearer|://")

# And one of these, which takes longer to see, but not as long as the shapes.
_HINTS = (
    "sk-", "k_live_", "k_test_", "gsk_", "xai-", "r8_", "pplx-", "gho_", "ghp_", "ghs_", "ghu_",
    "ghr_", "github_pat_", "glpat-", "xox", "npm_", "pypi-", "hf_", "AKIA", "ASIA", "AIza", "eyJ",
    "PRIVATE KEY-----", "Bearer ", "KEY=", "TOKEN=", "SECRET=", "PASSWORD=", "://",
)  # fmt: skip

_PATTERNS = tuple(re.compile(each.pattern.encode(), re.DOTALL) for each in (_KEY, _AFTER))
_ENCODES = re.compile(r"[\\%&*`~]")


def mask_keys(text: str) -> str:
    """Return *text* with everything replaced that looks like a key, or reads like one."""
    if _may_have(text):
        text = _KEY.sub(MASK, text)
        text = _AFTER.sub(lambda found: f"{found[found.lastgroup or 0]}{MASK}", text)
    return in_bytes(text, _mask_encoded) if _ENCODES.search(text) else text


def _may_have(text: str) -> bool:
    return _HINT.search(text) is not None and any(hint in text for hint in _HINTS)


def _mask_encoded(data: bytes) -> bytes:
    """Return *data* with what reads like a key masked; lines are not joined for words of prose."""
    reading = read_all(data, joined=False)[-1]
    if reading == data or not _may_have(reading.decode(errors="replace")):
        return data

    def find(each: bytes) -> Iterator[Span]:
        return _find_keys(each) if each == reading else iter(())

    return replace_spans(data, find_spans(data, find, joined=False))


def _find_keys(reading: bytes) -> Iterator[Span]:
    for pattern in _PATTERNS:
        for found in pattern.finditer(reading):
            yield found.end(found.lastgroup) if found.lastgroup else found.start(), found.end()


def mask_keys_in(value: Any) -> Any:
    """Return a JSON value with all its texts masked, and the keys of its objects."""
    return change_texts(value, mask_keys)
