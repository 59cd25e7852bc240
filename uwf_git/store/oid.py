"""Object ids: 40 lower-case hexadecimal digits, as git prints them."""

import re
from typing import NewType

Oid = NewType("Oid", str)
"""A git object id: 40 lower-case hex digits."""


_OID = re.compile(rb"[0-9a-f]{40}")


def is_oid(text: str) -> bool:
    return text.isascii() and _OID.fullmatch(text.encode()) is not None
