// A thread: its picture, its timeline, the entry that is chosen, its controls, its children.

import { get, getText, path } from "./api.js";
import { Controls } from "./controls.js";
import { h } from "./dom.js";
import { Entry } from "./entry.js";
import { badge, clip, cost, count, duration, plural, short, since } from "./format.js";
import { Loader } from "./loader.js";
import { LogView } from "./log.js";
import { describePicture } from "./panels.js";
import { link } from "./route.js";
import { complete, describeTimeline, findEntry, findPlayed, linkOf } from "./timeline.js";
import { problem, say, withCode } from "./told.js";

/** What needs a person, or has ended. */
const ANNOUNCED = new Set(["waiting", "paused", "failed", "completed", "killed"]);

export class Thread {
  constructor({ draw, route, refuse }) {
    const [, id] = route.parts;
    this.id = id;
    this.draw = draw;
    const done = (error) => (error && refuse(error)) || this.update();
    this.thread = new Loader(async () => complete(await get(path("threads", id))), done);
    this.isWhole = false;
    this.picture = new Loader(
      () => getText(path("threads", id, "picture") + (this.isWhole ? "?whole=1" : "")),
      draw,
    );
    this.entry = new Entry(id, draw);
    this.log = new LogView(id, draw);
    this.controls = new Controls(id, draw, () => this.thread.load());
    this.earlier = false;
    this.move(route);
    this.thread.load();
    this.picture.load();
  }

  title() {
    return [statusOf(this.thread.value ?? {}), this.name()].filter(Boolean).join(" · ");
  }

  name() {
    return this.thread.value?.title || short(this.id);
  }

  move({ parts }) {
    [, , this.kind = "", this.at = ""] = parts;
    this.update();
    this.readLog();
    // Where the parts stand under each other, the chosen one is below the timeline.
    if (this.wasSeen && matchMedia("(max-width: 900px)").matches) {
      const step = document.querySelector(".of-step");
      step?.focus({ preventScroll: true });
      step?.scrollIntoView({ block: "start" });
    }
  }

  hear(message) {
    const { threads = [], all, reset } = message;
    const concerned = this.listConcerned();
    const [own] = concerned;
    if (message.type === "log" && message.thread === own) this.readLog();
    if (!all && !reset && !threads.some((each) => concerned.includes(each))) return;
    // Another server counts the lines anew.
    if (reset) this.log.next = 0;
    this.thread.load();
    this.picture.load();
    this.entry.renew();
    this.readLog();
  }

  /** Read the log on, if it is shown: the server tells its changes only while it is asked for. */
  readLog() {
    if (this.chosen === "now") this.log.load();
  }

  /** List the thread itself, and those whose changes are seen here. */
  listConcerned() {
    const within = (entries = []) =>
      entries.flatMap(({ branches = [] }) =>
        branches.flatMap((each) => [each.thread, ...within(each.entries)]),
      );
    const { thread = this.id, parent, children = [], entries } = this.thread.value ?? {};
    return [thread, parent?.thread, ...children.map((each) => each.thread), ...within(entries)];
  }

  /** Read what is chosen now: by the address, else what runs, else the newest. */
  update() {
    const thread = this.thread.value;
    const status = thread && statusOf(thread);
    if (this.status && status !== this.status && ANNOUNCED.has(status))
      say(`${this.name()}: ${status}`);
    this.status = status;
    const found = thread && findEntry(thread.entries, this.kind, this.at);
    const isNow = thread?.running && (this.kind === "now" || this.kind === "");
    this.chosen = isNow ? "now" : (found?.commit ?? null);
    if (isNow) this.log.start(thread.running);
    this.entry.choose(isNow ? null : this.chosen);
    this.draw();
  }

  drawn() {
    if (this.chosen === "now") this.log.drawn();
    // Once: where the timeline scrolls by itself, the chosen event is in sight.
    if (!this.thread.value || this.wasSeen) return;
    this.wasSeen = true;
    const timeline = document.querySelector("ol.timeline");
    const chosen = timeline?.querySelector("[aria-current]");
    if (chosen)
      timeline.scrollTop = chosen.offsetTop - timeline.offsetTop - timeline.clientHeight / 2;
  }

  describe() {
    const thread = this.thread.value;
    if (!thread)
      return this.thread.error ? this.describeMissing() : h("p", { class: "soft" }, "Loading…");
    const toggle = () => {
      this.isWhole = !this.isWhole;
      this.picture.load();
      this.draw();
    };
    return [
      this.describeHead(thread),
      this.thread.error && problem(this.thread.error),
      this.controls.describe(thread, this.chosen),
      this.describeNotices(thread),
      h(
        "div",
        { class: "thread", key: "parts" },
        describePicture(this.picture, {
          place: "of-picture",
          isWhole: this.isWhole,
          toggle,
          choose: (role) => {
            // The branches of a box that stands for many.
            if (/^\d+ × /.test(role)) return toggle();
            const played = findPlayed(thread, role, this.chosen);
            if (played) location.hash = linkOf(played.thread, played);
          },
        }),
        this.describeTimeline(thread),
        this.describeChosen(thread),
        h(
          "div",
          { class: "beside", key: "beside" },
          describeChildren(thread),
          describeAbout(thread),
        ),
      ),
    ];
  }

  describeMissing() {
    return [
      h("h1", { tabindex: "-1" }, `Thread ${short(this.id)}`),
      problem(this.thread.error),
      h("p", null, h("a", { href: link([]) }, "All threads")),
    ];
  }

  describeHead(thread) {
    const { totals } = thread;
    const facts = [
      h("a", { href: link([], { workflow: thread.workflow, show: "all" }) }, thread.workflow),
      plural(totals.steps - totals.takenBack, "step"),
      totals.takenBack > 0 && `${count(totals.takenBack)} taken back`,
      totals.failedAttempts > 0 && plural(totals.failedAttempts, "failed attempt"),
      totals.durationMs > 0 && `${duration(totals.durationMs)} of work`,
      totals.tokens > 0 && `${count(totals.tokens)} tokens`,
      cost(totals.costUsd),
      ["began ", since(thread.started)],
      thread.ended ? ["ended ", since(thread.ended)] : ["changed ", since(thread.updated)],
      h("code", null, this.id),
    ];
    return h(
      "div",
      { key: "head" },
      h(
        "nav",
        { class: "crumbs", "aria-label": "Where this is" },
        h("a", { href: link([]) }, "Threads"),
        thread.parent && [
          " / ",
          h(
            "a",
            { href: link(["t", thread.parent.thread]) },
            `${thread.parent.isBranch ? "branch of" : "started in"} ${short(thread.parent.thread)}`,
          ),
        ],
      ),
      h(
        "div",
        { class: "head" },
        h("h1", { tabindex: "-1" }, this.name()),
        badge(statusOf(thread)),
      ),
      h(
        "ul",
        { class: "facts" },
        facts.filter(Boolean).map((each) => h("li", null, each)),
      ),
    );
  }

  describeNotices(thread) {
    const { waiting, error, held = [], reason, status } = thread;
    /** Of each notice: its kind, and what is in it. */
    const notices = [];
    if (waiting && !waiting.until) {
      const answer = thread.can.includes("answer")
        ? h("a", { href: link(["t", this.id, "answer"]) }, "Answer")
        : "It can be answered once the thread is resumed.";
      const asked = [" waits for a person, asked ", since(waiting.since), ". "];
      notices.push(["wait", h("strong", null, waiting.role), asked, answer]);
    } else if (waiting) {
      const until = new Date(waiting.until).toLocaleString();
      const told = ` waits for its usage limit until ${until}.`;
      notices.push(["wait", h("strong", null, waiting.role), told]);
    }
    if (error) notices.push(describeBad(clip(`${error.kind}: ${error.message}`)));
    else if (reason)
      notices.push([
        "",
        h("strong", null, `${status}: `),
        withCode(clip(reason)),
        thread.by && h("span", { class: "soft" }, ` ${thread.by}`),
      ]);
    if (thread.workflow === "draft") {
      const draft = h("a", { href: link(["draft", this.id]) }, "Show the draft");
      notices.push(["", "This thread drafts a workflow. ", draft]);
    }
    if (thread.hint) notices.push(["", "Hint to the agent: ", clip(thread.hint)]);
    for (const each of held) {
      const who = h("a", { href: link(["t", each.thread]) }, each.label || short(each.thread));
      notices.push([
        "wait",
        each.thread === this.id
          ? ["Held up: ", each.error]
          : [each.label ? "Held up by branch " : "Held up by ", who, `: ${each.status}`],
        each.thread !== this.id && each.error ? `, ${each.error}` : "",
        each.hint && ["; ", withCode(each.hint)],
      ]);
    }
    notices.push(...(thread.problems ?? []).map(describeBad));
    return h(
      "div",
      { key: "notices" },
      notices.map(([kind, ...inside], number) =>
        h("div", { class: `notice ${kind}`, key: number }, h("p", null, inside)),
      ),
    );
  }

  describeTimeline(thread) {
    const more = () => {
      this.earlier = true;
      this.draw();
    };
    return h(
      "section",
      { class: "panel of-timeline", key: "timeline", "aria-labelledby": "timeline-title" },
      h(
        "div",
        { class: "title" },
        h("h2", { id: "timeline-title" }, "Timeline"),
        h("span", { class: "soft small said", title: thread.said }, thread.said),
      ),
      describeTimeline(thread, this.chosen, this.earlier ? null : more),
    );
  }

  describeChosen(thread) {
    const missing = this.at
      ? `This thread has no ${this.kind === "s" ? "step" : "event"} ${short(this.at)} here.`
      : "Nothing has happened yet.";
    const inside = this.chosen === "now" ? this.log.describeRunning(thread) : this.entry.describe(missing);
    return h(
      "section",
      { class: "panel of-step", key: "step", tabindex: "-1", "aria-label": "The chosen step" },
      inside,
    );
  }
}

const statusOf = (thread) => thread.branchStatus ?? thread.status;

const describeBad = (told) => ["bad", h("strong", { class: "bad" }, "✗ "), told];

function describeChildren({ children = [] }) {
  return (
    children.length > 0 &&
    h(
      "section",
      { class: "panel of-children", key: "children", "aria-labelledby": "children-title" },
      h(
        "div",
        { class: "title" },
        h("h2", { id: "children-title" }, "Branches and children"),
        h("span", { class: "soft small" }, count(children.length)),
      ),
      h("ul", { class: "timeline" }, children.map(describeChild)),
    )
  );
}

function describeChild(child) {
  // A branch that has not begun is no thread yet.
  const hasBegun = !child.isBranch || child.title;
  return h(
    "li",
    { key: child.thread },
    h(
      hasBegun ? "a" : "span",
      { class: "event child", href: hasBegun ? link(["t", child.thread]) : null },
      badge(child.status),
      h("span", { class: "what" }, child.label || child.title || short(child.thread)),
      h("span", { class: "took" }, child.isBranch ? "branch" : "child"),
    ),
  );
}

function describeAbout(thread) {
  const facts = [
    ...Object.entries(thread.agents ?? {}).map(([role, agent]) => [
      `Agent of ${role}`,
      h("code", null, agent),
    ]),
    ...Object.entries(thread.limits ?? {}).map(([name, limit]) => [`Limit of ${name}`, limit]),
    ["Ref", h("code", null, thread.ref)],
    ["On a terminal", h("code", null, thread.command)],
  ];
  return h(
    "section",
    { class: "panel of-about", key: "about", "aria-labelledby": "about-title" },
    h("div", { class: "title" }, h("h2", { id: "about-title" }, "Task and state")),
    h(
      "div",
      { class: "body" },
      h("h3", null, "Task"),
      h("div", { class: "content", html: thread.prompt?.html ?? "" }),
      thread.state?.html && h("h3", null, "State"),
      thread.state?.html && h("div", { html: thread.state.html }),
      h("h3", null, "Settings"),
      h(
        "dl",
        null,
        facts.map(([name, value]) => [
          h("dt", { key: `dt ${name}` }, name),
          h("dd", { key: `dd ${name}` }, value),
        ]),
      ),
    ),
  );
}
