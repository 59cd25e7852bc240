"""Expressions and data drawn by chance, from the grammar and beside it."""

import random
from typing import Any

TEXTS = [
    *("", "0", "1", "10", "9", "-1", " 12 ", "0x1F", "1e3", "1e400", ".5", "5.", "abc", "ABC"),
    *("é", "ß", "İ", "ΑΣ", "ΑΣ Σ", "σς", "ǆ", "ﬁ", "a😀é", "😀", "\ud83d", "\ude00", "\ud83dx"),
    *("\u00a0\ufeff\t x \u2028", "\u0085", "\u180e", "\u200b", "Infinity", "-Infinity", "NaN"),
    *("true", "null", "undefined", "length", "a", "b", "a,b", "constructor", "𐐀", "\u0130\u0307"),
    *("0b11", "0o17", "+5", "+0x5", "1_0", "--1", "1e", "\n7\n", "00", "01", "4294967294"),
]
NUMBERS = [
    *(0, -0.0, 1, -1, 2, 3, 5, 10, 100, 0.1, 0.2, 0.3, 1.5, -1.5, 1e21, 1e-7, 123456789e13),
    *(2**53, 2**53 + 1, 2**63, 10**21, 10**400, 5e-324, 1.7976931348623157e308, 0.000001, 4.35),
    *(1e20, 12345.6789, 1e-6, 0.1 + 0.2, 1 / 3, 2**31, 2**32, 1.0),
]
KEYS = ["a", "b", "c", "1", "0", "length", "10", "01", "x y", "é", "𐐀", "list", "4294967295"]
NAMES = ["state", "iteration", "prompt", "depth", "item"]

_BINARY = [
    *("===", "!==", "==", "!=", "<", "<=", ">", ">=", "+", "+", "+", "-", "*", "/", "%"),
    *("&&", "||", "??"),
]
_LITERALS = [
    *("true", "false", "null", "undefined", "NaN", "Infinity", "0", "1", "2", "-0", "1.5", ".5"),
    *("5.", "0x1F", "1e21", "1e-7", "9007199254740993", "0.1", "''", "'a'", '"1"', "'0x10'"),
    *("' 1 '", "'é'", "'\\u{1F600}'", "'\\x41'", "'\\\n'", "`t`", "'\\ud83d'", "'ß'", "'length'"),
]
_LINKS = [
    *(".a", ".b", ".length", ".list", ".missing", "?.a", "?.missing", "[0]", "[1]", "?.[0]"),
    *("['𐐀']", ".é", "['01']", "[-0]", "?.['x y']", "[4294967295]"),
]
_ARROW_METHODS = ["some", "every", "filter", "map", "find"]
_NOISE = [
    *("", " ", "(", ")", "[", "]", "{", "}", "=", "!", "&", "|", "?", ".", ",", ":", ";", "/", "*"),
    *("\\", "'", '"', "`", "${", "$", "_", "=>", "++", "--", "**", "?.", "??", "\n", "//", "/*"),
    *("*/", "0", "1", "e", "x", "n", "_", "this", "in", "new ", "void ", "typeof ", "..."),
    *("\u2028", "<!--", "-->", "#", "@", "yield", "await", "async ", "let", "arguments", "08"),
    *("0n", "é", "😀"),
    *("\u200d", "\ufeff", "\x00", "\u0061", "\\u0061", "\r", "`${", "}`", "(x)=>", "x=>", "^", "~"),
]


def draw_value(chance: random.Random, depth: int = 3) -> Any:
    """Return JSON data."""
    kind = chance.randrange(8 if depth else 5)
    if kind == 0:
        return chance.choice([None, True, False])
    if kind <= 2:
        return chance.choice(NUMBERS)
    if kind <= 4:
        return chance.choice(TEXTS)
    if kind <= 6:
        return [draw_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): draw_value(chance, depth - 1) for _ in range(chance.randrange(5))}


def draw_names(chance: random.Random) -> dict[str, Any]:
    """Return data for all of NAMES."""
    state = {key: draw_value(chance) for key in ("a", "b", "c", "1")}
    state["list"] = [draw_value(chance, 2) for _ in range(chance.randrange(4))]
    return {
        "state": state,
        "iteration": chance.randrange(4),
        "prompt": chance.choice(TEXTS),
        "depth": draw_value(chance, 0),
        "item": draw_value(chance),
    }


class Expressions:
    """Draws expressions of the grammar; the names that are bound grow inside of arrows."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def draw(self, depth: int, names: tuple[str, ...] = tuple(NAMES)) -> str:
        """Return an expression of at most *depth* levels."""
        if depth <= 0:
            return self._leaf(names)
        rules = (self._binary, self._binary, self._access, self._access, self._unary, self._more)
        text = self._chance.choice(rules)(depth - 1, names)
        return f"({text})" if self._chance.random() < 0.4 else text

    def _leaf(self, names: tuple[str, ...]) -> str:
        if self._chance.random() < 0.35:
            return self._chance.choice(_LITERALS)
        name = self._chance.choice(names)
        link = self._chance.choice([".a", ".b", ".c", ".list", "[1]"])
        return name + link if name == "state" else name

    def _binary(self, depth: int, names: tuple[str, ...]) -> str:
        operators = self._chance.choices(_BINARY, k=self._chance.choice((1, 1, 2, 3)))
        parts = [self.draw(depth, names)]
        for operator in operators:
            parts += [operator, self.draw(depth - 1, names)]
        return " ".join(parts)

    def _unary(self, depth: int, names: tuple[str, ...]) -> str:
        operator = self._chance.choice(("!", "-", "+", "typeof ", "!!", "- -"))
        return operator + self.draw(depth, names)

    def _access(self, depth: int, names: tuple[str, ...]) -> str:
        text = self.draw(depth, names)
        if not text.startswith("(") and self._chance.random() < 0.5:
            text = f"({text})"
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            text += self._link(depth, names)
        return text

    def _link(self, depth: int, names: tuple[str, ...]) -> str:
        chance = self._chance
        dot = chance.choice((".", ".", "?."))
        match chance.randrange(8):
            case 0 | 1:
                return chance.choice(_LINKS)
            case 2:
                return f"[{self.draw(depth - 1, names)}]"
            case 3:
                method = chance.choice(("trim", "toLowerCase", "toUpperCase", "join"))
                return f"{dot}{method}()"
            case 4 | 5:
                method = chance.choice(("includes", "startsWith", "endsWith", "join"))
                return f"{dot}{method}({self.draw(depth - 1, names)})"
        parameter = chance.choice(("x", "i", "state", "y"))
        parameters, bound = parameter, (*names, parameter, parameter)
        if chance.random() < 0.4:
            parameters, bound = f"({parameter}, k)", (*bound, "k")
        body = self.draw(depth - 1, bound)
        return f"{dot}{chance.choice(_ARROW_METHODS)}({parameters} => {body})"

    def _more(self, depth: int, names: tuple[str, ...]) -> str:
        one, two, three = (self.draw(depth - each, names) for each in (0, 1, 1))
        match self._chance.randrange(5):
            case 0:
                return f"{one} ? {two} : {three}"
            case 1:
                return f"[{one}, {two}]"
            case 2:
                return f"`a${{{one}}}-${{{two}}}\\n`"
            case 3:
                return f"Array.isArray({one})"
        return f"Object.keys({one})"


def mutate(chance: random.Random, text: str) -> str:
    """Return *text* with some characters taken out, put in, doubled or moved."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 1, 2, 5)))
        text = text[:start] + chance.choice(_NOISE) + text[end:]
    return text
