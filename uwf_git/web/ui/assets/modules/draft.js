// A draft of a workflow: what was wished, its file and picture; it is put after a yes.

import { get, getText, path, post } from "./api.js";
import { h } from "./dom.js";
import { badge, short } from "./format.js";
import { Loader } from "./loader.js";
import { describePicture } from "./panels.js";
import { link } from "./route.js";
import { ask, problem, say } from "./told.js";

export class Draft {
  constructor({ draw, route, refuse }) {
    [, this.id] = route.parts;
    this.draw = draw;
    this.refused = null;
    this.draft = new Loader(
      () => get(path("drafts", this.id)),
      (error) => {
        if (error && refuse(error)) return;
        this.readPicture();
        draw();
      },
    );
    this.picture = new Loader(() => getText(path("drafts", this.id, "picture")), draw);
    this.draft.load();
  }

  /** Read the picture of a draft that was not drawn yet; one that is no workflow has none. */
  readPicture() {
    const { digest, name } = this.draft.value ?? {};
    if (!digest || !name || digest === this.drawnDigest) return;
    this.drawnDigest = digest;
    this.picture.load();
  }

  title() {
    return `Draft ${this.draft.value?.name ?? short(this.id)}`;
  }

  move() {}

  hear({ threads = [], all, reset }) {
    if (all || reset || threads.includes(this.id)) this.draft.load();
  }

  describe() {
    const { value, error } = this.draft;
    return [
      h(
        "nav",
        { class: "crumbs", "aria-label": "Where this is", key: "crumbs" },
        h("a", { href: link(["new"]) }, "New"),
        " / ",
        h("a", { href: link(["t", this.id]) }, `Thread ${short(this.id)}`),
      ),
      h(
        "div",
        { class: "head", key: "head" },
        h("h1", { tabindex: "-1" }, value?.name ? `Draft: ${value.name}` : "Draft"),
        value && badge(value.isRunning ? "running" : value.status),
      ),
      error
        ? problem(error)
        : value
          ? this.describeDraft(value)
          : h("p", { class: "soft" }, "Loading…"),
    ];
  }

  describeDraft(draft) {
    return h(
      "div",
      { class: "two", key: "draft" },
      h(
        "div",
        { class: "steps-of-form" },
        draft.wish &&
          h("div", { key: "wish" }, h("h2", null, "Wish"), h("p", { class: "text" }, draft.wish)),
        this.refused && problem(this.refused),
        draft.isPut &&
          h(
            "div",
            { class: "notice", key: "put" },
            h(
              "p",
              null,
              "It is registered. ",
              h("a", { href: link(["new", draft.name]) }, "Start a thread of it"),
            ),
          ),
        draft.why &&
          h("div", { key: "why" }, h("h2", null, "Why so"), h("p", { class: "text" }, draft.why)),
        list("questions", "It asks", draft.questions),
        list("problems", "It is not valid yet", draft.problems),
        draft.file === null || draft.file === undefined
          ? h(
              "p",
              { class: "soft", key: "none" },
              draft.isRunning ? "It is being written…" : "There is no draft yet.",
            )
          : h(
              "div",
              { key: "file" },
              h("h2", null, "File"),
              h(
                "pre",
                { class: "log", tabindex: "0", role: "group", "aria-label": "The workflow file" },
                draft.file,
              ),
            ),
        h(
          "div",
          { class: "buttons", key: "buttons" },
          h(
            "button",
            {
              type: "button",
              class: "act",
              "aria-disabled": draft.canPut && !draft.isPut ? null : "true",
              onclick: () => draft.canPut && !draft.isPut && this.put(draft),
            },
            "Register it…",
          ),
          h("a", { class: "button", href: link(["t", this.id]) }, "How it was written"),
        ),
      ),
      describePicture(this.picture, {
        title: "Picture",
        of: "draft",
        none: draft.isRunning ? "It is being written…" : "There is none.",
      }),
    );
  }

  async put(draft) {
    if (
      !(await ask(
        `Register ${draft.name}?`,
        `Its roles: ${draft.roles.join(", ")}. Nothing of it runs before you start a thread.`,
        "Register it",
      ))
    )
      return;
    try {
      const made = await post(path("drafts", this.id, "put"), { digest: draft.digest });
      say(`Registered \`${made.name}\``);
      this.refused = null;
    } catch (error) {
      this.refused = error;
    }
    this.draft.load();
    this.draw();
  }
}

function list(key, title, items = []) {
  return (
    items.length > 0 &&
    h(
      "div",
      { key },
      h("h2", null, title),
      h(
        "ul",
        null,
        items.map((each) => h("li", null, each)),
      ),
    )
  );
}
