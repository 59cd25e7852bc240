// The timeline of a thread: a line for each event, with when it was and how long it took.

import { h } from "./dom.js";
import { badge, duration, moment } from "./format.js";
import { link } from "./route.js";

const STEPS = new Set(["step", "answer", "join"]);
const BARRED = new Set(["step", "answer", "attempt", "wait"]);
const MOST = 200;
// Of the work's time: the longest that a wait, and a time without work, are drawn.
const LONGEST_WAIT = 0.25;
const LONGEST_GAP = 0.02;
const LEAST_WIDTH = 1.5;

/** Complete a thread's document: a wait lasts until the next event, and an answer takes no time. */
export function complete(thread) {
  completeAll(thread.entries, thread.waiting ? Date.now() : thread.updated);
  return thread;
}

function completeAll(entries, end) {
  for (const [index, entry] of entries.entries()) {
    const until = entries[index + 1]?.time ?? end;
    if (entry.event === "wait") entry.durationMs = Math.max(0, until - entry.time);
    if (entry.event === "answer") [entry.started, entry.durationMs] = [entry.time, 0];
    for (const branch of entry.branches ?? []) completeAll(branch.entries ?? [], end);
  }
}

/** Return the entry that an address names: `s` a step by its number, `e` any by its commit. */
export function findEntry(entries, kind, at) {
  const newest = (fits) => entries.findLast(fits);
  if (kind === "s")
    return (
      newest((entry) => STEPS.has(entry.event) && String(entry.depth) === at && !entry.takenBack) ??
      newest((entry) => STEPS.has(entry.event) && String(entry.depth) === at)
    );
  if (kind === "e") return newest((entry) => entry.commit?.startsWith(at));
  return newest((entry) => STEPS.has(entry.event) || entry.event === "attempt") ?? entries.at(-1);
}

/** Return the newest entry that *role* played, after *chosen* the one before it; round about. */
export function findPlayed(thread, role, chosen) {
  const found = [];
  const walk = (entries, of) => {
    for (const entry of entries) {
      if (entry.role === role && BARRED.has(entry.event)) found.push({ ...entry, thread: of });
      for (const branch of entry.branches ?? []) walk(branch.entries ?? [], branch.thread);
    }
  };
  walk(thread.entries, thread.thread);
  found.sort((one, other) => other.time - one.time);
  return found[(found.findIndex((entry) => entry.commit === chosen) + 1) % found.length];
}

/** Return the newest *most* steps that hold, newest first. */
export function newestSteps(entries, most) {
  const isStep = ({ event, takenBack }) => STEPS.has(event) && !takenBack;
  return entries.filter(isStep).slice(-most).reverse();
}

/** Return the address of an entry. */
export function linkOf(thread, entry) {
  return STEPS.has(entry.event) && !entry.takenBack
    ? link(["t", thread, "s", String(entry.depth)])
    : link(["t", thread, "e", entry.commit.slice(0, 12)]);
}

/** Describe the events of *thread*; *more()* shows those that are left out. */
export function describeTimeline(thread, chosen, more) {
  const entries = thread.entries.filter((entry) => entry.event !== null);
  const place = makeScale(spansOf(thread));
  const at = entries.findIndex((entry) => entry.commit === chosen);
  const first = more
    ? Math.min(Math.max(0, entries.length - MOST), at < 0 ? Infinity : Math.max(0, at - 5))
    : 0;
  const rows = entries
    .slice(first)
    .flatMap((entry) => describeEntry(thread, entry, { chosen, place, level: 0 }));
  return h(
    "ol",
    { class: "timeline", key: "events", onkeydown: walk },
    first > 0 &&
      h(
        "li",
        { key: "more" },
        h(
          "button",
          { type: "button", class: "quiet", onclick: more },
          `Show ${first} earlier events`,
        ),
      ),
    rows,
    thread.running && describeNow(thread, chosen, place),
  );
}

function describeEntry(thread, entry, at) {
  const row = describeRow(thread, entry, at);
  const below = (entry.branches ?? []).flatMap((branch) =>
    describeBranch(thread, branch, { ...at, level: at.level + 1 }),
  );
  return [row, ...below];
}

function describeRow(thread, entry, { chosen, place, level }) {
  const isMain = BARRED.has(entry.event);
  const isCurrent = entry.commit === chosen;
  const took = isMain && entry.event !== "answer" ? duration(entry.durationMs ?? 0) : "";
  const told = isMain ? entry.title : tellMinor(entry);
  return h(
    "li",
    { key: entry.commit },
    h(
      "a",
      {
        class: `event level-${Math.min(level, 3)}${isMain ? "" : " minor"}`,
        href: linkOf(thread.thread, entry),
        "aria-current": isCurrent ? "true" : null,
        title: `${moment(entry.started ?? entry.time)}${entry.by ? `, ${entry.by}` : ""}`,
      },
      h("span", { class: "depth" }, STEPS.has(entry.event) ? entry.depth : ""),
      h("span", { class: `what${entry.takenBack ? " back" : ""}` }, nameOf(entry, told)),
      isMain && describeTrack(entry, place),
      h("span", { class: "took" }, took),
    ),
  );
}

/** Return the title of an event with what was said of it, if that is something else. */
function tellMinor({ title, summary }) {
  const isTold = !summary || title.toLowerCase().includes(summary.toLowerCase());
  return isTold ? title : `${title}: ${summary}`;
}

function nameOf(entry, told) {
  if (entry.event === "attempt")
    return [
      h("span", { class: "bad" }, "✗ "),
      entry.role,
      h("span", { class: "unseen" }, ": failed attempt"),
    ];
  if (entry.event === "wait") return [h("span", { class: "wait" }, "? "), `${entry.role} waits`];
  if (!STEPS.has(entry.event)) return told;
  return [
    entry.event === "join" ? told.replace(/^\d+\. /, "") : entry.role,
    entry.event === "answer" && h("span", { class: "soft" }, " by a person"),
    entry.takenBack && h("span", { class: "unseen" }, " taken back"),
  ];
}

function describeBranch(thread, branch, at) {
  // One that is at work now is told so beside it, too.
  const child = thread.children?.find((each) => each.thread === branch.thread);
  const status = child?.status ?? branch.status;
  // One that has not begun is no thread yet.
  const hasBegun = status !== "ready" || branch.entries?.length > 0;
  const head = h(
    "li",
    { key: `branch ${branch.thread}` },
    h(
      hasBegun ? "a" : "span",
      {
        class: `event minor branch level-${Math.min(at.level, 3)}`,
        href: hasBegun ? link(["t", branch.thread]) : null,
      },
      h("span", { class: "depth" }, "⇉"),
      h(
        "span",
        { class: "what" },
        branch.label || `branch ${branch.number}`,
        " ",
        status && badge(status),
      ),
      h("span", { class: "took" }),
    ),
  );
  const inside = (branch.entries ?? []).filter(
    (entry) => BARRED.has(entry.event) || entry.event === "split",
  );
  return [
    head,
    ...inside.flatMap((entry) =>
      describeEntry({ ...thread, thread: branch.thread }, entry, at),
    ),
  ];
}

function describeNow(thread, chosen, place) {
  const { role, since } = thread.running;
  return h(
    "li",
    { key: "now" },
    h(
      "a",
      {
        class: "event",
        href: link(["t", thread.thread, "now"]),
        "aria-current": chosen === "now" ? "true" : null,
      },
      h("span", { class: "depth" }, thread.depth + 1),
      h(
        "span",
        { class: "what" },
        h("span", { class: "now pulse", "aria-hidden": "true" }, "▶ "),
        role || (thread.status === "split" ? "branches at work" : "at work"),
      ),
      describeTrack({ event: "now", started: since, durationMs: Date.now() - since }, place),
      h("span", { class: "took" }, duration(Date.now() - since)),
    ),
  );
}

function describeTrack(entry, place) {
  const kind = { attempt: "failed", wait: "wait", now: "now" }[entry.event] ?? "done";
  const [from, to] = [place(startOf(entry)), place(startOf(entry) + (entry.durationMs ?? 0))];
  const width = Math.max(LEAST_WIDTH, to - from);
  const x = Math.min(from, 100 - width);
  return h(
    "svg",
    { class: "track", "aria-hidden": "true", focusable: "false" },
    h("rect", { class: "ground", width: "100%", height: "100%", rx: "3" }),
    h("rect", {
      class: kind,
      x: `${x.toFixed(2)}%`,
      width: `${width.toFixed(2)}%`,
      height: "100%",
      rx: "2",
    }),
  );
}

const startOf = (entry) => entry.started ?? entry.time;

/** List when there was work (true) and when the thread waited (false). */
function spansOf(thread) {
  const spans = [];
  const walk = (entries) => {
    for (const entry of entries) {
      if (BARRED.has(entry.event))
        spans.push([
          startOf(entry),
          startOf(entry) + (entry.durationMs ?? 0),
          entry.event !== "wait",
        ]);
      for (const branch of entry.branches ?? []) walk(branch.entries ?? []);
    }
  };
  walk(thread.entries);
  if (thread.running) spans.push([thread.running.since, Date.now(), true]);
  return spans;
}

/** Return what places a time between 0 and 100; times without work are shortened. */
function makeScale(spans) {
  // How many works and waits begin at each time, less those that end.
  const begun = new Map(spans.flatMap(([from, to]) => [from, to]).map((time) => [time, [0, 0]]));
  for (const [from, to, isWork] of spans) {
    begun.get(from)[isWork ? 0 : 1] += 1;
    begun.get(to)[isWork ? 0 : 1] -= 1;
  }
  const times = [...begun.keys()].sort((a, b) => a - b);
  let [works, waits] = [0, 0];
  const parts = times.slice(1).map((to, index) => {
    const from = times[index];
    works += begun.get(from)[0];
    waits += begun.get(from)[1];
    return [from, to, works > 0 ? "work" : waits > 0 ? "wait" : "gap"];
  });
  const work =
    parts.reduce((sum, [from, to, state]) => sum + (state === "work" ? to - from : 0), 0) || 1;
  const longest = { work: Infinity, wait: work * LONGEST_WAIT, gap: work * LONGEST_GAP };
  const ends = [0];
  for (const [from, to, state] of parts)
    ends.push(ends.at(-1) + Math.min(to - from, longest[state]));
  const whole = ends.at(-1) || 1;
  return (time) => {
    const index = times.findLastIndex((each) => each <= time);
    if (index < 0) return 0;
    if (index >= parts.length) return 100;
    const [from, to] = parts[index];
    return (
      ((ends[index] + ((time - from) / (to - from)) * (ends[index + 1] - ends[index])) / whole) *
      100
    );
  };
}

/** Walk through the events with the arrow keys. */
function walk(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
  const rows = [...event.currentTarget.querySelectorAll("a.event")];
  const next = rows[rows.indexOf(document.activeElement) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
