"""The page of `uwf ui` in a browser: its server as a process, a tab that is listened to."""

import importlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands.world import World, says

from uwf_git.model.names import ThreadId
from uwf_git.store.trust import trust_agents

_PATIENCE_MS = 15_000

ASKED = """\
name: asked
description: A person judges what was written.
roles:
  writer:
    description: Writes.
    systemPrompt: Write.
    outputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
  judge:
    description: Judges it.
    systemPrompt: Is it **good**? Say why.
    outputSchema:
      type: object
      properties:
        good: {type: boolean, description: Whether it may go out}
        why: {type: string, minLength: 3}
        grade: {enum: [1, 2, three]}
        weight: {type: number, minimum: 0}
        pages: {type: integer}
        version: {const: 7}
        topics: {type: array, items: {type: string}}
        findings:
          type: array
          items:
            type: object
            properties:
              file: {type: string}
              at: {type: object, properties: {line: {type: integer}}}
            required: [file]
        then:
          oneOf:
            - {title: Stop, type: object, properties: {do: {const: stop}}, required: [do]}
            - title: Send it
              type: object
              properties: {do: {const: send}, to: {type: string}}
              required: [do, to]
        extra: {}
      required: [good, why, version, then]
  printer:
    description: Prints it.
    systemPrompt: Print.
    outputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: judge}
  - {from: judge, to: judge, condition: meta.good = false}
  - {from: judge, to: printer}
  - {from: printer, to: $END}
"""


@dataclass(slots=True)
class Server:
    """`uwf ui` on a store."""

    process: subprocess.Popen[bytes]
    address: str
    """With the token."""

    @property
    def origin(self) -> str:
        """The address without its fragment."""
        return self.address.partition("#")[0]

    @property
    def port(self) -> str:
        """The number of the port."""
        return self.origin.rstrip("/").rpartition(":")[2]

    def stop(self) -> bytes:
        """End it as Ctrl-C does; return what it wrote."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=10)
        return out + err


@contextmanager
def serve(world: World, port: str = "0") -> Iterator[Server]:
    """Run the server of the page of *world*."""
    process = world.process("ui", "--no-open", "--port", port)
    assert process.stdout is not None
    try:
        found = None
        while found is None:
            line = process.stdout.readline().decode()
            if not line:
                raise AssertionError(f"it ended: {process.communicate()[1].decode()}")
            found = re.search(r"http://127\.0\.0\.1:\d+/#[\w-]+", line)
        yield Server(process, found[0])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


@dataclass(slots=True)
class Tab:
    """A tab that shows the page, and what it complained of."""

    page: Any
    server: Server
    heard: list[str] = field(default_factory=list)
    """Dialogs, errors, words on the console, requests to others."""

    def open(self, where: str = "/") -> None:
        """Show an address within the page, with the token, as the first one or the next."""
        if self.page.url.startswith(self.server.origin):
            self.page.evaluate("where => { location.hash = where; }", where)
        else:
            self.page.goto(self.server.address)
            # The page has taken the token out of the address.
            expect(self.page).to_have_url(f"{self.server.origin}#/")
            if where != "/":
                self.open(where)

    def find(self, role: str, name: str | re.Pattern[str] | None = None, **said: Any) -> Any:
        """Return what has an ARIA role and a name."""
        exact = {"exact": True} if isinstance(name, str) else {}
        return self.page.get_by_role(role, **({"name": name} if name else {}), **exact, **said)

    def text(self, text: str) -> Any:
        """Return the elements that have *text*."""
        return self.page.get_by_text(text)

    def click(self, *names: str) -> None:
        """Click buttons, one after the other."""
        for name in names:
            self.find("button", name).click()

    def fill(self, **values: str) -> None:
        """Fill fields in, by what their labels say."""
        for label, value in values.items():
            self.page.get_by_label(label).fill(value)

    def focused(self) -> str:
        """Return the tag and the name of what has the focus."""
        told: str = self.page.evaluate(
            "(at => `${at.localName} ${at.getAttribute('aria-label') ?? at.textContent.trim()}`)"
            "(document.activeElement)"
        )
        return told


def listen(page: Any, heard: list[str], *own: str) -> None:
    """Collect what *page* says and shows, and its requests but for those of its *own*."""

    def hear_request(request: Any) -> None:
        if not request.url.startswith(own):
            heard.append(f"request {request.url}")

    def hear_dialog(dialog: Any) -> None:
        heard.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda each: heard.append(f"console {each.text}"))
    page.on("pageerror", lambda each: heard.append(f"error {each}"))
    page.on("request", hear_request)
    page.on("dialog", hear_dialog)


class Listener:
    """An agent's program that prints to its log what it is told, until it is let go."""

    def __init__(self, world: World, *, name: str = "agent") -> None:
        self._pipe = Path(world.place, f"{name}.pipe")
        os.mkfifo(self._pipe)
        self.command = world.program(
            f"while read -r line; do echo \"$line\" >&2; done < '{self._pipe}'\n"
            'echo \'{"meta": {"text": "printed", "ok": true}}\'',
            name=name,
        )
        trust(world, self.command)
        self._file: Any = None

    def say(self, line: str) -> None:
        """Have it print *line*; the first time wait until it is at work."""
        if self._file is None:
            self._file = self._pipe.open("w")
        self._file.write(f"{line}\n")
        self._file.flush()

    def finish(self) -> None:
        """Have it answer and end."""
        self.say("done")
        self.close()

    def close(self) -> None:
        """Let go of it; it was stopped already, or answers now."""
        self._file.close()
        self._file = None


def expect(found: Any) -> Any:
    """Return Playwright's assertions of what was *found*; they wait until they hold."""
    # Files of tests are imported where Playwright is missing as well.
    expect = importlib.import_module("playwright.sync_api").expect
    expect.set_options(timeout=_PATIENCE_MS)
    return expect(found)


RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd Ada!"
"""A greeting that begins at the right, and ends at the left with its mark."""

_LEFTS = """at => ['\u05e9', 'Ada', '!'].map(word => {
    const walker = document.createTreeWalker(at, NodeFilter.SHOW_TEXT);
    while (walker.nextNode() && !walker.currentNode.data.includes(word));
    const range = document.createRange();
    const start = walker.currentNode.data.indexOf(word);
    range.setStart(walker.currentNode, start);
    range.setEnd(walker.currentNode, start + word.length);
    return range.getBoundingClientRect().left;
})"""


def reads_right_to_left(found: Any) -> bool:
    """Check where the parts of RIGHT_TO_LEFT stand in what was *found*."""
    lefts: list[float] = found.evaluate(_LEFTS)
    return lefts == sorted(lefts, reverse=True)


def end(driver: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended by itself; return its exit status."""
    driver.communicate(timeout=20)
    return driver.returncode


def ask(world: World, *agents: str, source: str = ASKED, prompt: str = "Do it.") -> ThreadId:
    """Start a thread that waits for a person."""
    workflow = world.put(source).workflow
    thread = world.start("nobody", "judge=human", *agents, workflow=workflow, prompt=prompt)
    world.step(thread, says({"text": "a text"}))
    world.step(thread)
    return thread


def trust(world: World, *commands: str) -> None:
    """Trust *commands* as the user of the store."""
    trust_agents(world.store, [{"command": each} for each in commands], str(world.place))
