"""Sizes as git config spells them: ``512``, ``64k``, ``32m``, ``1g``."""

import re

_NUMBER = re.compile(r"([0-9]{1,15})([kmg]?)", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def parse_size(text: str) -> int | None:
    """Return the number of bytes that *text* spells; None if it spells none."""
    match = _NUMBER.fullmatch(text)
    return None if match is None else int(match[1]) * _FACTORS[match[2].lower()]
