// The chosen entry of a timeline: what it says, its prompt, log and difference, and how to check it.

import { get, path } from "./api.js";
import { h } from "./dom.js";
import { cost, count, duration, plural, since } from "./format.js";
import { Loader } from "./loader.js";
import { link } from "./route.js";
import { describeTabPanel, describeTabs } from "./tabs.js";
import { command, problem } from "./told.js";

// Shown above the tabs: it is short, and what one opens a step for.
const ABOVE = new Set(["meta", "note", "changes"]);
const PREFERRED = ["content", "log", "diff", "state", "prompt", "check"];

export class Entry {
  constructor(thread, draw) {
    this.thread = thread;
    this.draw = draw;
    this.commit = null;
    this.tab = "";
    this.read = new Loader(() => get(path("threads", thread, "entries", this.commit)), draw);
  }

  choose(commit) {
    if (commit === this.commit) return;
    this.commit = commit;
    if (commit !== null) this.read.renew({ keep: true });
  }

  describePrevious(commit) {
    const before = link(["t", this.thread, "e", commit.slice(0, 12)]);
    return h(
      "p",
      { class: "aside" },
      "Compared with ",
      h("a", { href: before }, "the visit before"),
    );
  }

  renew() {
    if (this.commit !== null && this.read.error) this.read.load();
  }

  describe(missing) {
    if (this.commit === null) return h("div", { class: "body soft" }, missing);
    if (this.read.error) return h("div", { class: "body" }, problem(this.read.error));
    const { value } = this.read;
    if (value === null) return h("div", { class: "body soft" }, "Loading…");
    const above = value.parts.filter((part) => ABOVE.has(part.name));
    const tabs = [
      ...value.parts.filter((part) => !ABOVE.has(part.name)).map((part) => [part.name, part.title]),
      ["check", "Check"],
    ];
    const tab = tabs.some(([name]) => name === this.tab)
      ? this.tab
      : PREFERRED.find((name) => tabs.some(([each]) => each === name));
    const choose = (name) => {
      this.tab = name;
      this.draw();
    };
    return [
      h(
        "div",
        { class: "title", key: "title", "data-commit": value.entry.commit },
        h("h2", null, value.entry.title),
      ),
      h(
        "div",
        { class: "body", key: `about ${value.entry.commit}` },
        describeFacts(value.entry),
        value.entry.problem && h("p", { class: "bad" }, "✗ ", value.entry.problem),
        above.map((part) =>
          h(
            "div",
            {
              key: part.name,
              class: `part-${part.name}`,
              // It scrolls if it is long.
              ...(part.name === "meta"
                ? { tabindex: "0", role: "group", "aria-label": part.title }
                : {}),
            },
            describePart(part),
          ),
        ),
      ),
      describeTabs("Parts of the step", tabs, tab, choose),
      describeTabPanel(
        tab,
        h(
          "div",
          { key: `${value.entry.commit} ${tab}` },
          tab === "check"
            ? describeCheck(value)
            : describePart(value.parts.find((part) => part.name === tab)),
          tab === "diff" && value.previous && this.describePrevious(value.previous),
        ),
      ),
    ];
  }
}

function describeFacts(entry) {
  const facts = [
    entry.agent && h("code", null, entry.agent),
    entry.by && entry.by !== entry.role && `recorded by ${entry.by}`,
    since(entry.started ?? entry.time),
    duration(entry.durationMs ?? NaN),
    entry.tokens > 0 && `${count(entry.tokens)} tokens`,
    cost(entry.costUsd ?? NaN),
    entry.failedAttempts > 0 && `after ${plural(entry.failedAttempts, "failed attempt")}`,
    entry.files && describeFiles(entry.files),
    entry.takenBack && h("strong", { class: "wait" }, "taken back"),
  ];
  return h(
    "ul",
    { class: "facts" },
    facts.filter(Boolean).map((each) => h("li", null, each)),
  );
}

function describeFiles({ changed, added, removed }) {
  return changed === undefined ? "changed files" : `${plural(changed, "file")} +${added} -${removed}`;
}

function describePart(part) {
  return h("div", { class: part.name === "content" ? "content" : null, html: part.html });
}

function describeCheck({ entry, commands }) {
  return [
    h("p", { class: "aside" }, "What is shown here is in git. These commands print it:"),
    commands.map((each) =>
      h("div", { key: each.what }, h("h3", null, each.what), command(each.command)),
    ),
    h("p", { class: "aside" }, "Commit ", h("code", null, entry.commit)),
  ];
}
