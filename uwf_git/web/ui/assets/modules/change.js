// What may be changed for the rest of a thread: its state, its limits, its agents. The controls send
// it, with their reason.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { Loader } from "./loader.js";
import { parseJson } from "./schema.js";
import { say } from "./told.js";

/** Of each limit: its name for people, and how much of the recorded unit one of it is. */
const LIMITS = {
  maxSteps: ["Steps", 1],
  maxExecutionTime: ["Minutes of work", 60_000],
  maxTokens: ["Tokens", 1],
  maxCost: ["US dollars", 1],
};
const ABOUT_PATCH = 'A JSON merge patch: {"done": true, "draft": null} sets done and removes draft.';

export class Change {
  /** `send(name, body)` records a change; it tells whether that went well. */
  constructor(thread, draw, send) {
    this.draw = draw;
    this.send = send;
    this.offered = new Loader(() => get(`agents${query({ thread })}`), draw);
    this.patch = "";
    this.wrong = "";
    this.limits = {};
    this.agents = {};
  }

  describe(thread) {
    return h(
      "details",
      { key: "change", class: "change", ontoggle: (event) => event.target.open && this.offer() },
      h("summary", null, "Change state, limits or agents"),
      h("div", { class: "changes" }, this.describePatch(), this.describeRules(thread)),
    );
  }

  offer() {
    if (!this.offered.value) this.offered.load();
  }

  describePatch() {
    const submit = async (event) => {
      event.preventDefault();
      const [patch, wrong] = parseJson(this.patch);
      this.wrong = wrong || (this.patch.trim().startsWith("{") ? "" : "a patch is an object: {…}");
      if (!this.wrong && (await this.send("patch", { patch }))) this.patch = "";
      this.draw();
    };
    return h(
      "form",
      { class: "steps-of-form", onsubmit: submit, novalidate: true },
      h(
        "div",
        { class: "field" },
        h("label", { class: "label", for: "patch" }, "Patch of the state"),
        h("p", { class: "about", id: "patch-about" }, ABOUT_PATCH),
        h("textarea", {
          id: "patch",
          class: "mono",
          rows: "3",
          spellcheck: "false",
          value: this.patch,
          "aria-describedby": this.wrong ? "patch-problem" : "patch-about",
          "aria-invalid": this.wrong ? "true" : null,
          oninput: (event) => {
            this.patch = event.target.value;
          },
        }),
        this.wrong && h("p", { class: "problem", id: "patch-problem" }, this.wrong),
      ),
      h("div", { class: "buttons" }, h("button", { type: "submit" }, "Patch")),
    );
  }

  describeRules(thread) {
    const submit = async (event) => {
      event.preventDefault();
      const [limits, agents] = [this.readLimits(), this.agents];
      if (Object.keys({ ...limits, ...agents }).length === 0) return say("Nothing is changed yet");
      if (await this.send("amend", { limits, agents })) [this.limits, this.agents] = [{}, {}];
      return this.draw();
    };
    return h(
      "form",
      { class: "steps-of-form", onsubmit: submit, novalidate: true },
      // A branch has the limits of its parent.
      !thread.parent?.isBranch &&
        h(
          "fieldset",
          { class: "limits", key: "limits" },
          h("legend", null, "Limits"),
          h("p", { class: "about" }, "Of the whole thread; an empty field is no limit."),
          Object.keys(LIMITS).map((name) => this.describeLimit(name, thread.limitValues[name])),
        ),
      h(
        "fieldset",
        { class: "limits", key: "agents" },
        h("legend", null, "Agents"),
        h(
          "p",
          { class: "about" },
          "Only agents that are trusted where the thread runs can be chosen.",
        ),
        thread.roles.map((role) => this.describeAgent(role, thread.agents[role])),
      ),
      h("div", { class: "buttons" }, h("button", { type: "submit" }, "Amend")),
    );
  }

  describeLimit(name, limit) {
    const [label, unit] = LIMITS[name];
    return h(
      "label",
      { class: "check", key: name },
      label,
      h("input", {
        type: "text",
        inputmode: "decimal",
        autocomplete: "off",
        value: this.limits[name] ?? (limit === undefined ? "" : String(limit / unit)),
        oninput: (event) => {
          this.limits[name] = event.target.value;
        },
      }),
    );
  }

  /** Return the limits that were typed; the server says what is wrong with one. */
  readLimits() {
    return Object.fromEntries(
      Object.entries(this.limits).map(([name, typed]) => {
        const text = typed.trim();
        // Without the error of a product: 4.1 * 60000 is 245999.99999999997.
        const limit = Number((Number(text) * LIMITS[name][1]).toPrecision(15));
        return [name, text === "" ? null : Number.isFinite(limit) ? limit : text];
      }),
    );
  }

  describeAgent(role, command) {
    return h(
      "label",
      { class: "check", key: role },
      role,
      h(
        "select",
        {
          "aria-label": `Agent of ${role}`,
          value: this.agents[role] ?? "",
          onchange: (event) => {
            if (event.target.value) this.agents[role] = event.target.value;
            else delete this.agents[role];
          },
        },
        h("option", { value: "", key: "" }, command ?? "no agent"),
        (this.offered.value?.agents ?? []).map(({ id, command: each, settings }) =>
          h("option", { value: id, key: id }, settings ? `${each} (${settings})` : each),
        ),
      ),
    );
  }
}
