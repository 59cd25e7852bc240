"""A small model of a terminal: what is on its screen after what a program has written.

It knows the few sequences that we write, wraps long lines, keeps what scrolls away, and wraps anew
when its size changes, as most terminals do.
"""

import re

from uwf_git.cli.output.screen import display_width

_PIECE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|([\s\S])")


class Terminal:
    """A terminal, and whether its cursor is shown and its other screen is used."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.height = columns, lines
        self.rows: list[str] = [""]
        self.is_wrapped: list[bool] = [False]
        """Whether a row goes on in the next one."""

        self.row = self.column = 0
        self.has_cursor, self.has_wrap, self.is_other = True, True, False
        self._kept: tuple[list[str], list[bool], int, int] | None = None

    @property
    def top(self) -> int:
        """The first row of the screen; those before have scrolled away."""
        return max(0, len(self.rows) - self.height)

    @property
    def screen(self) -> list[str]:
        """The rows of the screen that are not empty at its end, without their padding."""
        return "\n".join(row.rstrip() for row in self.rows[self.top :]).rstrip("\n").split("\n")

    @property
    def lines(self) -> list[str]:
        """All lines, those that have scrolled away as well."""
        told, line = [], ""
        for row, goes_on in zip(self.rows, self.is_wrapped, strict=True):
            line += row
            if not goes_on:
                told.append(line.rstrip())
                line = ""
        return "\n".join(told).rstrip("\n").split("\n")

    def write(self, text: str) -> None:
        """Obey *text*; a newline goes to the beginning of the next line, as a terminal does."""
        for arguments, command, character in _PIECE.findall(text):
            if command:
                self._obey(arguments, command)
            elif character == "\r":
                self.column = 0
            elif character == "\n":
                self._next_row()
            else:
                assert character.isprintable(), repr(character)
                self._put(character)

    def resize(self, columns: int, lines: int) -> None:
        """Wrap all lines anew."""
        line = sum(not goes_on for goes_on in self.is_wrapped[: self.row])
        first = self.row
        while first and self.is_wrapped[first - 1]:
            first -= 1
        offset = sum(map(len, self.rows[first : self.row])) + self.column
        whole = self.lines + [""] * (line + 1)
        self.columns, self.height = columns, lines
        self.rows, self.is_wrapped = [], []
        for number, text in enumerate(whole[: max(len(self.lines), line + 1)]):
            if number == line:
                self.row, self.column = len(self.rows) + offset // columns, offset % columns
            pieces = [text[at : at + columns] for at in range(0, len(text), columns)] or [""]
            self.rows += pieces
            self.is_wrapped += [*[True] * (len(pieces) - 1), False]
        while self.row >= len(self.rows):
            self.rows.append("")
            self.is_wrapped.append(False)

    def _obey(self, arguments: str, command: str) -> None:
        number = int(arguments) if arguments.isdecimal() else 1
        if command == "A":
            self.row = max(self.top, self.row - number)
        elif command == "B":
            self.row = min(len(self.rows) - 1, self.row + number)
        elif command == "H":
            self.row, self.column = self.top, 0
        elif command == "K":
            kept = "" if arguments == "2" else self.rows[self.row][: self.column]
            self.rows[self.row], self.is_wrapped[self.row] = kept, False
        elif command == "J":
            self.rows[self.row] = self.rows[self.row][: self.column]
            for row in range(self.row + 1, len(self.rows)):
                self.rows[row], self.is_wrapped[row] = "", False
        elif arguments == "?25":
            self.has_cursor = command == "h"
        elif arguments == "?7":
            self.has_wrap = command == "h"
        elif arguments == "?1049":
            self._switch(is_other=command == "h")
        else:
            assert command == "m", (arguments, command)

    def _switch(self, *, is_other: bool) -> None:
        assert is_other != self.is_other
        self.is_other = is_other
        if is_other:
            self._kept = (self.rows, self.is_wrapped, self.row, self.column)
            self.rows, self.is_wrapped = [""] * self.height, [False] * self.height
            self.row = self.column = 0
        elif self._kept is not None:
            self.rows, self.is_wrapped, self.row, self.column = self._kept

    def _next_row(self, *, is_wrapped: bool = False) -> None:
        self.is_wrapped[self.row] = is_wrapped
        self.row += 1
        if not is_wrapped:
            self.column = 0
        if self.row == len(self.rows):
            self.rows.append("")
            self.is_wrapped.append(False)

    def _put(self, character: str) -> None:
        assert display_width(character) <= 1, "this model has narrow characters only"
        if self.column == self.columns and not self.has_wrap:
            self.column -= 1
        elif self.column == self.columns:
            self._next_row(is_wrapped=True)
            self.column = 0
        row = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
        self.column += 1
