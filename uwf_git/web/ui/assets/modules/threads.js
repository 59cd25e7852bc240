// The list of threads: what needs a person, what runs, the rest; a hundred rows at a time.

import { get, path, post, query } from "./api.js";
import { h } from "./dom.js";
import { badge, cost, count, duration, plural, short, since } from "./format.js";
import { Loader } from "./loader.js";
import { go, link } from "./route.js";
import { ask, problem, say, withCode } from "./told.js";

const GROUPS = { needs: "Needs you", running: "Running", others: "Others", ended: "Ended" };
const SHOWN = { active: "Active", ended: "Ended", all: "All" };
const TYPED_MS = 250;
const STATUSES = [
  "ready",
  "running",
  "waiting",
  "paused",
  "failed",
  "split",
  "damaged",
  "completed",
  "killed",
];
const ENDED = new Set(["completed", "killed"]);
const DAY_MS = 86_400_000;
const AGES = [
  ["", "Any age"],
  [String(DAY_MS / 24), "Last hour"],
  [String(DAY_MS), "Last day"],
  [String(7 * DAY_MS), "Last 7 days"],
  [String(30 * DAY_MS), "Last 30 days"],
];
const COSTS = ["0.1", "1", "10", "100"];
/** Of each order: its name, and what the rows that are shown are sorted by, the largest first. */
const ORDERS = {
  changed: ["Changed last", (row) => row.updated ?? 0],
  unchanged: ["Unchanged longest", (row) => -(row.updated ?? 0)],
  cost: ["Cost", (row) => row.costUsd ?? 0],
  work: ["Time of work", (row) => row.workMs ?? 0],
  steps: ["Steps", (row) => row.steps ?? 0],
};

export class Threads {
  constructor({ draw, route, refuse }) {
    this.draw = draw;
    this.values = route.values;
    this.typed = route.values.search ?? "";
    this.timer = null;
    this.refused = [];
    this.isSending = false;
    this.rows = new Loader(
      () => get(`threads${query({ show: "active", ...this.values, sort: "" })}`),
      (error) => (error && refuse(error)) || draw(),
    );
    this.rows.load();
  }

  title() {
    const needs = this.rows.value?.counts.needs;
    return needs ? `(${needs}) Threads` : "Threads";
  }

  move({ values }) {
    if (JSON.stringify(values) === JSON.stringify(this.values)) return;
    this.values = values;
    // A link may have changed what is searched, unless more is typed at the moment.
    const { search = "" } = values;
    if (this.timer === null && search !== this.typed.trim()) this.typed = search;
    this.rows.renew({ keep: true });
  }

  hear({ type }) {
    if (type === "threads" || type === "hello") this.rows.load();
  }

  stop() {
    clearTimeout(this.timer);
  }

  describe() {
    return [
      h("h1", { class: "unseen", key: "title", tabindex: "-1" }, "Threads"),
      this.describeFilter(),
      this.rows.error ? problem(this.rows.error) : null,
      this.describeFailed(this.rows.value?.rows ?? []),
      this.rows.value
        ? this.describeRows(this.rows.value)
        : !this.rows.error && h("p", { class: "soft" }, "Loading…"),
    ];
  }

  describeFilter() {
    const { show = "active", workflow = "" } = this.values;
    const names = this.rows.value?.workflows ?? [];
    const shown = workflow && !names.includes(workflow) ? [workflow, ...names] : names;
    return h(
      "div",
      { class: "filter", key: "filter", role: "search" },
      h("input", {
        type: "search",
        class: "search",
        "aria-label": "Search threads",
        placeholder: "Search: id, task, workflow, role, error",
        value: this.typed,
        oninput: (event) => this.type(event.target.value),
        autocomplete: "off",
        spellcheck: "false",
      }),
      h(
        "div",
        { class: "segments", role: "group", "aria-label": "Which threads" },
        Object.entries(SHOWN).map(([name, told]) =>
          h(
            "a",
            {
              key: name,
              href: link([], { ...this.values, show: name === "active" ? "" : name, after: "" }),
              "aria-current": name === show ? "true" : null,
            },
            told,
          ),
        ),
      ),
      this.describeSelect("workflow", "Workflow", [
        ["", "All workflows"],
        ...shown.map((name) => [name, name]),
      ]),
      this.describeSelect("status", "Status", [
        ["", "Any status"],
        ...STATUSES.map((name) => [name, name]),
      ]),
      this.describeSelect("within", "Changed within", AGES),
      this.describeSelect("cost", "Cost", [
        ["", "Any cost"],
        ...COSTS.map((least) => [least, `${cost(Number(least))} or more`]),
      ]),
      this.describeSelect("sort", "Order", [
        ["", "Newest first"],
        ...Object.entries(ORDERS).map(([name, [told]]) => [name, told]),
      ]),
      h("span", { class: "soft small", role: "status" }, this.tellMatching()),
    );
  }

  /** Describe a choice that stands in the address as *name*. */
  describeSelect(name, label, options) {
    const choose = ({ target: { value } }) => {
      const show = name === "status" && ENDED.has(value) ? { show: "all" } : {};
      go([], { ...this.values, ...show, [name]: value, after: "" });
    };
    return h(
      "select",
      { key: name, "aria-label": label, value: this.values[name] ?? "", onchange: choose },
      options.map(([value, told]) => h("option", { value, key: value }, told)),
    );
  }

  tellMatching() {
    const { rows, matching, next } = this.rows.value ?? { rows: [] };
    const number = matching ?? rows.length;
    // In another order than that of the pages, a page is sorted by itself.
    const sorted = this.values.sort && (next || this.values.after) ? ", sorted by the page" : "";
    return number ? `${plural(number, "thread")}${sorted}` : "";
  }

  type(text) {
    this.typed = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      go([], { ...this.values, search: text.trim(), after: "" }, true);
    }, TYPED_MS);
  }

  /** Describe what retries all failed threads that are shown, and those that could not be. */
  describeFailed(rows) {
    const failed = rows.filter(mayRetry);
    const told = this.refused.map(([row, error]) =>
      h(
        "p",
        { key: row.thread },
        h("a", { href: link(["t", row.thread]) }, row.title || short(row.thread)),
        ": ",
        withCode(error.message),
      ),
    );
    return [
      failed.length > 0 &&
        h(
          "div",
          { class: "buttons", key: "failed" },
          h(
            "button",
            {
              type: "button",
              "aria-disabled": this.isSending ? "true" : null,
              onclick: () => !this.isSending && this.retryAll(failed),
            },
            `Retry ${count(failed.length)} failed…`,
          ),
        ),
      told.length > 0 && h("div", { class: "notice bad", role: "alert", key: "refused" }, told),
    ];
  }

  async retryAll(failed) {
    const number = plural(failed.length, "failed thread");
    const about = "Each that is shown here may try again, and goes on in the background, all at once.";
    if (!(await ask(`Retry ${number}?`, about, "Retry"))) return;
    [this.isSending, this.refused] = [true, []];
    this.draw();
    let recorded = 0;
    for (const row of failed) {
      try {
        const { refused } = await post(path("threads", row.thread, "retry"), { go: true });
        recorded += 1;
        if (refused) this.refused.push([row, refused]);
      } catch (error) {
        this.refused.push([row, error]);
      }
    }
    this.isSending = false;
    say(`${plural(recorded, "thread")} may try again`);
    this.rows.load();
  }

  describeRows({ rows, next, counts }) {
    if (rows.length === 0) return this.describeNone(counts);
    const order = ORDERS[this.values.sort]?.[1];
    const sorted = order ? rows.toSorted((a, b) => order(b) - order(a)) : rows;
    const groups = Object.keys(GROUPS).map((group) => [
      group,
      sorted.filter((row) => row.group === group),
    ]);
    const { search, workflow, status, within, cost: least } = this.values;
    const isFiltered = Boolean(search || workflow || status || within || least);
    return h(
      "div",
      { key: "rows", onkeydown: walkRows },
      groups
        .filter(([, found]) => found.length > 0)
        .map(([group, found]) =>
          h(
            "section",
            { key: group, "aria-labelledby": `group-${group}` },
            h(
              "h2",
              { class: "group-name", id: `group-${group}` },
              GROUPS[group],
              h("span", null, isFiltered ? count(found.length) : count(counts[group])),
            ),
            h("ul", { class: "threads" }, found.map(describeRow)),
          ),
        ),
      (next || this.values.after) &&
        h(
          "nav",
          { class: "more", key: "more", "aria-label": "Pages" },
          this.values.after &&
            h(
              "a",
              { class: "button", key: "first", href: link([], { ...this.values, after: "" }) },
              "First 100",
            ),
          next &&
            h(
              "a",
              { class: "button", key: "next", href: link([], { ...this.values, after: next }) },
              "Next 100",
            ),
        ),
    );
  }

  describeNone(counts) {
    const { show } = this.values;
    const isAll = show === "all";
    const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
    const told =
      all === 0
        ? [
            "No threads yet. ",
            h("a", { href: link(["new"]) }, "Start one"),
            " here, or with ",
            h("code", null, "uwf run"),
            ".",
          ]
        : [
            "No thread fits. ",
            h("a", { href: link([]) }, "Show the active ones"),
            " or ",
            h("a", { href: link([], isAll ? { show } : { ...this.values, show: "all" }) }, "all"),
            ".",
          ];
    return h("div", { class: "empty", key: "none" }, told);
  }
}

// Of a split thread, the branches that failed.
const mayRetry = ({ status, branches }) =>
  status === "failed" || (status === "split" && branches?.failed > 0);

function describeRow(row) {
  const branches = Object.entries(row.branches ?? {})
    .map(([status, number]) => `${number} ${status}`)
    .join(", ");
  const last = tellLast(row);
  return h(
    "li",
    { key: row.thread },
    h(
      "a",
      { class: "row", href: link(["t", row.thread]) },
      h("span", { class: "state" }, badge(row.branchStatus ?? row.status)),
      h("span", { class: "task", title: row.title || row.thread }, row.title || short(row.thread)),
      h("span", { class: "kind" }, row.workflow),
      h(
        "span",
        { class: `last${row.error ? " bad" : ""}`, title: last },
        branches ? `${branches} · ${last}` : last,
      ),
      h("span", { class: "steps number" }, plural(row.steps ?? 0, "step")),
      h(
        "span",
        { class: "spent number" },
        [row.workMs > 0 && duration(row.workMs), cost(row.costUsd)].filter(Boolean).join(" · "),
      ),
      since(row.since ?? row.updated, { class: "since number" }),
    ),
  );
}

/** Return what was last, or is to be done: an error, a question, an event, with its role. */
function tellLast({ role, status, group, error, question, said }) {
  // That it was started says no more than its title.
  const told = error || question || (said ?? "").replace(/^start: .*/, "");
  if (!role || group === "ended" || told.startsWith(role)) return told;
  if (told === "") return status === "running" ? `${role} at work` : "";
  return `${role}: ${told}`;
}

/** Walk through the rows with the arrow keys. */
function walkRows(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
  const rows = [...event.currentTarget.querySelectorAll("a.row")];
  const next = rows[rows.indexOf(document.activeElement) + by];
  if (!next || !document.activeElement.classList.contains("row")) return;
  event.preventDefault();
  next.focus();
}
