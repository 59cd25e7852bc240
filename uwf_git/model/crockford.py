"""Crockford Base32: the alphabet of node hashes and thread ids, and the form of a 64-bit number.

Source: https://www.crockford.com/base32.html; json-cas writes its hashes this way.
"""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

# A table, not `upper`, which maps some other letters into the alphabet ("ß" to "SS").
_FORGIVEN = str.maketrans("abcdefghijklmnopqrstuvwxyzILO", "ABCDEFGH1JK1MN0PQRSTUVWXYZ110")


def encode_u64(number: int) -> str:
    """Write *number* (0 to 2**64-1) as 13 symbols, most significant first.

    13 symbols hold 65 bits, so the first is always 0 to F.
    """
    return "".join([ALPHABET[(number >> shift) & 31] for shift in range(60, -1, -5)])


def fold(text: str) -> str:
    """Return the canonical spelling of *text*: upper case, I and L as 1, O as 0.

    Symbols outside the alphabet are unchanged; the caller refuses them.
    """
    return text.translate(_FORGIVEN)
