"""Benchmark of the page in Chromium: from opening it to its rows on the screen.

It is compared with the page of an empty store, which loads the same files and asks as often.
"""

import importlib
import statistics
import tempfile
from contextlib import ExitStack
from typing import Any, NamedTuple

from bench.archived import add_crowd
from bench.deep import Bench
from bench.page import Server, serve
from bench.report import Limit, Row, Table
from bench.timing import CaseFailed, Sample, ratio, take_turns
from bench.world import make_store
from browser.chromium import NoBrowser, open_chromium

_EMPTY = "an empty store"
_TURNED = (Limit("over_empty", 2),)
_FIRST = (Limit("median_ms", 2_000),)

# The page draws in a callback of a frame, so a timer that is set there fires after it was painted.
_WATCH = """
globalThis.painted = new Promise((tell) => {
  new MutationObserver((_changes, watch) => {
    if (!document.querySelector("a.row, .empty")) return;
    watch.disconnect();
    setTimeout(() => tell(performance.now()));
  }).observe(document, { childList: true, subtree: true });
});
"""
_READ = """async () => [
  await globalThis.painted,
  performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
]"""


def measure_paint(bench: Bench) -> list[Table]:
    """Compare the page of a store with many threads with that of an empty one."""
    size = bench.scale.page
    title = f"the page with {size:,} threads in Chromium, {bench.scale.depth_rounds} rounds"
    with ExitStack() as stack:
        try:
            # Not in the world: the path of its socket may have 107 characters.
            home = stack.enter_context(tempfile.TemporaryDirectory())
            browser = stack.enter_context(open_chromium(home))
        except NoBrowser as missing:
            return [Table(title, [Row("paint", {}, failure=f"skipped: {missing}")])]
        except _get_error() as error:
            return [Table(title, [Row("paint", {}, failure=_first_line(error))])]
        empty = make_store(bench.world, "paint-empty", fsync=False)
        crowd = make_store(bench.world, "paint", fsync=False)
        add_crowd(crowd, size=size, is_active=True)
        bench.tell(f"the page with {size:,} threads in Chromium")
        servers = [stack.enter_context(serve(bench.world, each.path)) for each in (empty, crowd)]
        if None in servers:
            return [Table(title, [Row("paint", {}, failure="skipped: uwf[ui] is not installed")])]
        pages = [_Page(browser, each, []) for each in servers if each is not None]
        return [Table(title, _measure(*pages, size=size, rounds=bench.scale.depth_rounds))]


class _Page(NamedTuple):
    browser: Any
    server: Server
    framed: list[float]
    """When its first texts were painted, in each turn."""

    def open(self) -> Sample:
        """Open it in a new profile; return how long its rows took."""
        context = self.browser.new_context()
        try:
            page = context.new_page()
            page.add_init_script(_WATCH)
            page.goto(self.server.address)
            page.locator("a.row, .empty").first.wait_for()
            painted, framed = page.evaluate(_READ)
        except _get_error() as error:
            raise CaseFailed(_first_line(error)) from error
        finally:
            context.close()
        if framed is not None:
            self.framed.append(framed)
        # What its processes take of the processors is not known.
        return Sample(painted, 0)


def _measure(empty: _Page, crowd: _Page, *, size: int, rounds: int) -> list[Row]:
    again = f"{size:,} threads"
    # The browser's own first page, which is slower.
    empty.open()
    first = take_turns({"": crowd.open}, rounds=1, warm_up=0)[""]
    empty.framed.clear()
    crowd.framed.clear()
    series = take_turns({_EMPTY: empty.open, again: crowd.open}, rounds=rounds, warm_up=0)
    rows = [
        Row(
            f"{again}, first",
            {"median_ms": first.median_ms} if not first.failure else {},
            _FIRST,
            first.failure,
        )
    ]
    for (name, each), page in zip(series.items(), (empty, crowd), strict=True):
        figures: dict[str, float | None] = {**each.figures()}
        figures.pop("cpu_ms", None)
        if page.framed:
            figures["first_text_ms"] = statistics.median(page.framed)
        if name != _EMPTY:
            figures["over_empty"] = ratio(each, series[_EMPTY])
        rows.append(Row(name, figures, () if name == _EMPTY else _TURNED, each.failure))
    return rows


def _get_error() -> type[Exception]:
    """Return the class of Playwright's errors, which only a machine that has it can import."""
    error: type[Exception] = importlib.import_module("playwright.sync_api").Error
    return error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
