// The log of an agent while it runs, and the prompt that it was given.

import { get, path, query } from "./api.js";
import { h } from "./dom.js";
import { duration } from "./format.js";
import { Loader } from "./loader.js";
import { describeTabPanel, describeTabs } from "./tabs.js";
import { problem } from "./told.js";

const AGAIN_MS = 8000;
const MOST_LINES = 2000;
const SILENT_MS = 60_000;
const NEAR_END = 40;

export class LogView {
  constructor(thread, draw) {
    this.thread = thread;
    this.draw = draw;
    this.tab = "log";
    this.lines = [];
    this.next = 0;
    this.isCut = false;
    this.since = null;
    this.askedAt = 0;
    this.follows = true;
    this.log = new Loader(() => this.readLines(), draw);
  }

  /** Show the log of a turn. */
  start({ role, since }) {
    // Between two turns there is no role.
    if (this.since !== null && (!role || since === this.since)) return;
    this.since = since;
    this.lines = [];
    this.next = 0;
    this.prompt = new Loader(() => get(path("threads", this.thread, "prompt")), this.draw);
    if (this.tab === "prompt") this.prompt.load();
    this.load();
  }

  load() {
    this.log.load();
  }

  async readLines() {
    this.askedAt = Date.now();
    const { since, next: after } = this;
    const read = await get(path("threads", this.thread, "log") + query({ after }));
    if (since !== this.since || read.next < after) {
      this.next = 0;
      return this.readLines();
    }
    if (after === 0) [this.lines, this.isCut] = [[], false];
    this.lines.push(...read.lines.filter((line) => line.n >= after));
    this.isCut ||= read.isCut || this.lines.length > MOST_LINES;
    this.lines = this.lines.slice(-MOST_LINES);
    this.next = read.next;
    return read;
  }

  describeRunning(thread) {
    const { role, agent, since, lastOutput } = thread.running;
    const silentMs = Date.now() - lastOutput;
    const choose = (name) => {
      this.tab = name;
      if (name === "prompt" && !this.prompt.value) this.prompt.load();
      this.draw();
    };
    return [
      h(
        "div",
        { class: "title", key: "title" },
        h("h2", null, `${thread.depth + 1}. ${role ?? ""} at work`),
        h("span", { class: "now pulse", "aria-hidden": "true" }, "▶"),
      ),
      h(
        "div",
        { class: "body", key: "about now" },
        h(
          "ul",
          { class: "facts" },
          agent && h("li", null, h("code", null, agent)),
          h("li", null, `for ${duration(Date.now() - since)}`),
          lastOutput && silentMs >= SILENT_MS && h("li", null, `silent for ${duration(silentMs)}`),
        ),
      ),
      describeTabs(
        "Parts of the step",
        [
          ["log", "Log"],
          ["prompt", "Prompt"],
        ],
        this.tab,
        choose,
      ),
      describeTabPanel(
        this.tab,
        h(
          "div",
          { key: this.tab },
          this.tab === "log" ? this.describeLog() : this.describePrompt(),
        ),
      ),
    ];
  }

  describeLog() {
    if (this.log.error) return problem(this.log.error);
    if (this.lines.length === 0)
      return h("p", { class: "soft" }, this.log.value ? "It has printed nothing yet." : "Loading…");
    return [
      this.isCut && h("p", { class: "aside" }, "Earlier lines are left out."),
      h(
        "pre",
        {
          class: "log",
          tabindex: "0",
          role: "log",
          "aria-live": "off",
          "aria-label": "Log",
          onscroll: (event) => this.scrolled(event.currentTarget),
        },
        this.lines.map((line, index) => [
          line.source !== this.lines[index - 1]?.source &&
            h("span", { key: `source ${line.n}`, class: "source" }, `${line.source}\n`),
          h("span", { key: line.n }, `${line.text}\n`),
        ]),
      ),
    ];
  }

  scrolled(pre) {
    this.follows = pre.scrollHeight - pre.scrollTop - pre.clientHeight < NEAR_END;
  }

  /** Keep the newest line in sight, unless the reader has scrolled back; ask now and then. */
  drawn() {
    const pre = document.querySelector("pre.log");
    if (pre && this.follows) pre.scrollTop = pre.scrollHeight;
    if (Date.now() - this.askedAt > AGAIN_MS) this.load();
  }

  describePrompt() {
    if (this.prompt.error) return problem(this.prompt.error);
    return this.prompt.value
      ? h("div", { html: this.prompt.value.html })
      : h("p", { class: "soft" }, "Loading…");
  }
}
