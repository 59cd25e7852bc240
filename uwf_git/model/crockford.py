"""Crockford Base32 as node hashes and thread ids use it.

Owns: the alphabet, what is forgiven on input, and the 64-bit form of 13 symbols.
Knows nothing of: what the numbers mean.
Source: https://www.crockford.com/base32.html; json-cas writes its hashes this way.
"""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

# Letter by letter: `upper` would turn foreign letters into ours ("ß" into "SS").
_FORGIVEN = str.maketrans("abcdefghijklmnopqrstuvwxyzILO", "ABCDEFGH1JK1MN0PQRSTUVWXYZ110")


def encode_u64(number: int) -> str:
    """Write *number* (0 to 2**64-1) as 13 symbols, most significant first.

    13 symbols hold 65 bits, so the first is always 0 to F.
    """
    return "".join([ALPHABET[(number >> shift) & 31] for shift in range(60, -1, -5)])


def fold(text: str) -> str:
    """Give the form in which *text* would have been written: upper case, I and L as 1, O as 0.

    Symbols outside the alphabet are left as they are, for the caller to refuse.
    """
    return text.translate(_FORGIVEN)
