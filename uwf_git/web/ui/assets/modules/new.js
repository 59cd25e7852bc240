// A new thread: its workflow with the picture, its task, its agents; or a draft of a new workflow.

import { get, getText, path, post } from "./api.js";
import { carry } from "./controls.js";
import { h } from "./dom.js";
import { plural } from "./format.js";
import { keep, recall } from "./kept.js";
import { Loader } from "./loader.js";
import { describePicture, describeSend, describeText } from "./panels.js";
import { go, link } from "./route.js";
import { problem, say } from "./told.js";

const KEPT = "new";

export class New {
  constructor({ draw, route, refuse }) {
    this.draw = draw;
    this.typed = { prompt: "", agents: {}, wish: "", writer: "", go: true, ...recall(KEPT) };
    const done = (error) => (error && refuse(error)) || draw();
    this.workflows = new Loader(() => get("workflows"), done);
    this.agents = new Loader(() => get("agents"), done);
    this.chosen = new Loader(() => get(path("workflows", this.name)), draw);
    this.picture = new Loader(() => getText(path("workflows", this.name, "picture")), draw);
    this.refused = null;
    this.wrong = {};
    this.search = "";
    this.isSending = false;
    this.workflows.load();
    this.agents.load();
    this.move(route);
  }

  title() {
    return "New thread";
  }

  move({ parts }) {
    const [, name = ""] = parts;
    if (name === this.name) return;
    this.name = name;
    this.refused = null;
    this.wrong = {};
    if (!name) return;
    this.chosen.renew();
    this.picture.renew();
  }

  hear({ reset }) {
    if (!reset) return;
    this.workflows.load();
    this.agents.load();
    if (!this.name) return;
    this.chosen.load();
    this.picture.load();
  }

  describe() {
    return [
      h("div", { class: "head", key: "head" }, h("h1", { tabindex: "-1" }, "New thread")),
      this.name ? this.describeStart() : this.describeChoice(),
    ];
  }

  describeChoice() {
    const { value, error } = this.workflows;
    return h(
      "div",
      { class: "two", key: "choice" },
      h(
        "section",
        { "aria-labelledby": "choose" },
        h("h2", { id: "choose" }, "Choose a workflow"),
        error && problem(error),
        value &&
          value.workflows.length === 0 &&
          h(
            "div",
            { class: "empty" },
            "None is registered. ",
            h("code", null, "uwf workflow put FILE"),
            " registers one.",
          ),
        value && this.describeWorkflows(value.workflows),
        !value && !error && h("p", { class: "soft" }, "Loading…"),
      ),
      this.describeWish(),
    );
  }

  describeWorkflows(workflows) {
    const words = this.search.toLowerCase().split(/\s+/);
    const found = workflows.filter((each) => {
      const text = `${each.name} ${each.description ?? ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return [
      h(
        "div",
        { class: "filter", role: "search", key: "filter" },
        h("input", {
          type: "search",
          class: "search",
          "aria-label": "Search workflows",
          placeholder: "Search: name, description",
          value: this.search,
          autocomplete: "off",
          spellcheck: "false",
          oninput: (event) => {
            this.search = event.target.value;
            this.draw();
          },
        }),
        h("span", { class: "soft small", role: "status" }, plural(found.length, "workflow")),
      ),
      found.length > 0 &&
        h("ul", { class: "threads workflows", key: "found" }, found.map(describeWorkflow)),
    ];
  }

  describeWish() {
    const send = (event) => {
      event.preventDefault();
      const { wish, writer } = this.typed;
      if (!wish.trim()) this.need("wish", "say what the workflow should do");
      else if (!writer && this.agents.value?.default === null)
        this.need("writer", "choose who writes it");
      else
        this.send("drafts", { wish, ...(writer ? { agent: writer } : {}) }, (made) =>
          this.drafted(made),
        );
    };
    return h(
      "section",
      { class: "panel", "aria-labelledby": "draft-title", key: "wish" },
      h("div", { class: "title" }, h("h2", { id: "draft-title" }, "Or have one drafted")),
      h(
        "form",
        { class: "body steps-of-form", onsubmit: send, novalidate: true },
        this.refused && problem(this.refused),
        describeText(
          this,
          "wish",
          "What should it do?",
          "An agent writes a workflow; you see its picture, and put it or not.",
          "3",
        ),
        this.describePick("writer", "Written by", this.typed.writer, (id) =>
          this.set({ writer: id }),
        ),
        h(
          "div",
          { class: "buttons" },
          h(
            "button",
            { type: "submit", "aria-disabled": this.isSending ? "true" : null },
            "Draft it",
          ),
        ),
      ),
    );
  }

  drafted(made) {
    this.set({ wish: "" });
    say("It is being drafted");
    go(["draft", made.thread]);
  }

  describeStart() {
    const { value, error } = this.chosen;
    if (error)
      return h(
        "div",
        { key: "missing" },
        problem(error),
        h("p", null, h("a", { href: link(["new"]) }, "All workflows")),
      );
    if (!value) return h("p", { class: "soft", key: "loading" }, "Loading…");
    return h(
      "div",
      { class: "two", key: `start ${this.name}` },
      this.describeForm(value),
      describePicture(this.picture),
    );
  }

  describeForm(workflow) {
    const submit = (event) => {
      event.preventDefault();
      this.start(workflow);
    };
    return h(
      "form",
      { class: "steps-of-form", onsubmit: submit, novalidate: true },
      h(
        "div",
        { key: "name" },
        h(
          "h2",
          null,
          workflow.name,
          " ",
          h("a", { class: "small", href: link(["new"]) }, "choose another"),
        ),
        h("p", { class: "about" }, workflow.description),
      ),
      this.refused && problem(this.refused),
      describeText(
        this,
        "prompt",
        "Task",
        workflow.needsPrompt
          ? ""
          : "This workflow has a task of its own; what you write here replaces it.",
        "5",
      ),
      h(
        "fieldset",
        { class: "steps-of-form", key: "agents" },
        h("legend", null, "Who plays which role"),
        h(
          "p",
          { class: "about" },
          "Only agents that are trusted here can be chosen. ",
          h("code", null, "uwf agent trust"),
          " adds one.",
        ),
        workflow.roles.map((role) => this.describeRole(role)),
      ),
      describeSend(this, "Start", "and drive it in the background"),
    );
  }

  describeRole(role) {
    const set = (id) => this.set({ agents: { ...this.typed.agents, [role.id]: id } });
    return this.describePick(`agent ${role.id}`, role.name, this.typed.agents[role.id] ?? "", set, {
      own: role.problem ?? role.agent,
      ownId: role.agentId,
      about: role.description,
    });
  }

  describePick(name, label, chosen, set, { own, ownId, about } = {}) {
    const all = this.agents.value?.agents ?? [];
    const fallback = all.find((each) => each.id === this.agents.value?.default);
    // What plays without a choice is no choice.
    const agents = all.filter((each) => each.id !== (own ? ownId : fallback?.id));
    const none = own || (fallback ? `${fallback.command} (the default)` : "choose…");
    const id = `pick-${encodeURIComponent(name)}`;
    const wrong = this.wrong[name];
    return h(
      "div",
      { class: "field", key: name },
      h("label", { class: "label", for: id }, label),
      about && h("p", { class: "about" }, about),
      h(
        "select",
        {
          id,
          value: agents.some((each) => each.id === chosen) ? chosen : "",
          onchange: (event) => set(event.target.value),
          "aria-invalid": wrong ? "true" : null,
          "aria-describedby": wrong ? `${id}-problem` : null,
        },
        h("option", { value: "", key: "" }, none),
        agents.map((each) =>
          h(
            "option",
            { value: each.id, key: each.id },
            `${each.command}${each.settings ? ` (${each.settings})` : ""}`,
          ),
        ),
      ),
      wrong && h("p", { class: "problem", id: `${id}-problem` }, wrong),
    );
  }

  set(values) {
    Object.assign(this.typed, values);
    keep(KEPT, this.typed);
    this.draw();
  }

  need(name, told) {
    this.wrong = { [name]: told };
    this.draw();
    (document.getElementById(name) ?? document.getElementById(`pick-${name}`))?.focus();
  }

  start(workflow) {
    this.wrong = {};
    const { prompt } = this.typed;
    if (workflow.needsPrompt && !prompt.trim()) return this.need("prompt", "write the task");
    const known = new Set(this.agents.value?.agents.map((each) => each.id));
    const agents = Object.fromEntries(
      workflow.roles
        .map((role) => [role.id, this.typed.agents[role.id]])
        .filter(([, id]) => known.has(id)),
    );
    const body = { workflow: this.name, prompt, agents, ...(this.typed.go ? { go: true } : {}) };
    return this.send("threads", body, (made) => this.started(made));
  }

  started(made) {
    this.set({ prompt: "", agents: {} });
    say(made.driver ? "Started; it goes on in the background" : "Started");
    carry(made.thread, made.refused);
    go(["t", made.thread]);
  }

  async send(where, body, done) {
    if (this.isSending) return;
    this.isSending = true;
    this.refused = null;
    this.draw();
    try {
      done(await post(where, body));
    } catch (error) {
      this.refused = error;
      for (const { pointer, message } of error.details)
        this.wrong[pointer.slice(1).replace(/^agents\//, "agent ")] = message;
    }
    this.isSending = false;
    this.draw();
  }
}

function describeWorkflow(each) {
  const name = h(
    "span",
    { class: "task" },
    each.name,
    each.isShipped && h("span", { class: "soft small" }, " comes with uwf"),
  );
  return h(
    "li",
    { key: each.workflow ?? each.name },
    each.problem
      ? h("div", { class: "row plain" }, name, h("span", { class: "last bad" }, each.problem))
      : h(
          "a",
          { class: "row plain", href: link(["new", each.name]) },
          name,
          h("span", { class: "last" }, each.description),
        ),
  );
}
