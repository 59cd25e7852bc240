// The answer of a person: a form from the role's JSON Schema. What is typed is kept until it is
// recorded, through a reload and while the thread moves on.

import { get, path, post } from "./api.js";
import { carry } from "./controls.js";
import { h } from "./dom.js";
import { describeForm, idOf } from "./form.js";
import { short } from "./format.js";
import { forget, keep, recall } from "./kept.js";
import { Loader } from "./loader.js";
import { describeSend, describeText } from "./panels.js";
import { Problems } from "./problems.js";
import { go, link } from "./route.js";
import { collect, kindOf, parseJson, resolve, typeValue } from "./schema.js";
import { linkOf, newestSteps } from "./timeline.js";
import { command, problem, say } from "./told.js";
import { clear, complete, isTyped, readTyped, typeField } from "./typed.js";

const MOST_STEPS = 4;
// Nobody is asked, or the thread is gone.
const NOBODY = new Set([404, 422]);
const ABOUT_CONTENT = "Markdown for those who come after you; the fields above decide.";
const OPTIONAL = h("span", { class: "soft" }, " optional");
const ABOUT_NOTE = "Why you answered so, for those who read the log; agents are not given it.";

export class Answer {
  constructor({ draw, route, refuse }) {
    [, this.id] = route.parts;
    this.draw = draw;
    this.kept = `answer:${this.id}`;
    this.typed = complete(recall(this.kept));
    this.problems = new Problems();
    this.moved = "";
    this.isSending = false;
    this.question = new Loader(
      () => get(path("threads", this.id, "question")),
      (error) => {
        if (!error) this.asked(this.question.value);
        if (!error || !refuse(error)) draw();
      },
    );
    this.before = new Loader(() => this.readBefore(), draw);
    this.question.load();
    this.before.load();
  }

  /** Read what the answer is about: the task, the state, and what was done last, newest first. */
  async readBefore() {
    const thread = await get(path("threads", this.id));
    const read = (entry) => get(path("threads", this.id, "entries", entry.commit));
    const steps = await Promise.all(newestSteps(thread.entries, MOST_STEPS).map(read));
    return { thread, steps };
  }

  title() {
    return `Answer ${this.question.value?.role ?? short(this.id)}`;
  }

  move() {}

  hear({ threads = [], all, reset }) {
    // The address may have the beginning of the id.
    if (!this.isSending && (all || reset || threads.some((each) => each.startsWith(this.id)))) {
      this.question.load();
      this.before.load();
    }
  }

  /** Take up a question: the one that is typed at, or another. */
  asked(question) {
    const now = JSON.stringify(question.question);
    const { asked } = this.typed;
    if (asked === now) return;
    if (asked !== undefined && isTyped(this.typed)) this.moveOn(JSON.parse(asked), question);
    this.set({ asked: now, schema: question.schema });
  }

  moveOn(before, question) {
    this.problems.clear();
    if (before.role === question.question.role) {
      this.moved =
        "The thread moved on while you typed, and asks the same role again. What you typed is kept: read the question again before you send it.";
      return;
    }
    this.moved = `The thread moved on while you typed: it was ${before.role}'s turn, now it is ${question.question.role}'s. What you typed stands below the form.`;
    const typed = readTyped(this.typed);
    Object.assign(clear(this.typed), { before: typed });
  }

  keepTyped() {
    keep(this.kept, this.typed);
  }

  describe() {
    return [
      h(
        "nav",
        { class: "crumbs", "aria-label": "Where this is" },
        h("a", { href: link([]) }, "Threads"),
        " / ",
        h("a", { href: link(["t", this.id]) }, `Thread ${short(this.id)}`),
      ),
      ...this.describeState(),
    ];
  }

  describeState() {
    const { value, error } = this.question;
    if (error && (value === null || NOBODY.has(error.status))) return [this.describeNone(error)];
    // That the server did not answer says nothing of the question.
    return [
      error && problem(error),
      value ? this.describeQuestion(value) : h("p", { class: "soft" }, "Loading…"),
    ];
  }

  describeNone(error) {
    return h(
      "div",
      { class: "form", key: "none" },
      h("h1", { tabindex: "-1" }, "No answer is needed now"),
      problem(error),
      this.describeTyped(readTyped(this.typed), () => clear(this.typed)),
    );
  }

  describeTyped(text, forgetIt) {
    if (!text) return null;
    const drop = () => {
      forgetIt();
      this.keepTyped();
      this.draw();
    };
    return h(
      "section",
      { key: "before" },
      h("h2", null, "What you had typed"),
      command(text),
      h("button", { type: "button", class: "quiet", onclick: drop }, "Forget it"),
    );
  }

  describeQuestion(question) {
    const root = question.schema;
    const canFill = kindOf(root, resolve(root, root)) !== "json";
    const isJson = this.typed.isJson || !canFill;
    return h(
      "div",
      { class: "two", key: "question" },
      h(
        "section",
        { class: "panel asked", "aria-label": "The question", key: "asked" },
        h("div", { class: "title" }, h("h2", null, "The question")),
        h(
          "div",
          { class: "body" },
          h("div", { html: question.html, key: "asked" }),
          this.describeBefore(),
        ),
      ),
      h(
        "form",
        {
          class: "steps-of-form",
          novalidate: true,
          onsubmit: (event) => this.submit(event, isJson),
          onkeydown: (event) => submitByKey(event),
        },
        h("h1", { tabindex: "-1" }, `Answer as ${question.role}`),
        this.moved &&
          h("div", { class: "notice wait", role: "alert", key: "moved" }, h("p", null, this.moved)),
        this.problems.describe((place) => {
          this.focusNext = place;
          this.draw();
        }),
        isJson ? this.describeJson() : describeForm(this.formOf(root)),
        canFill &&
          h(
            "div",
            { key: "switch" },
            h(
              "button",
              { type: "button", class: "quiet", onclick: () => this.change(root, !isJson) },
              isJson ? "Fill in fields" : "Write JSON instead",
            ),
          ),
        describeText(this, "content", ["Text", OPTIONAL], ABOUT_CONTENT, "3"),
        describeText(this, "note", ["Note", OPTIONAL], ABOUT_NOTE, "1"),
        describeSend(this, "Record the answer", "and go on"),
        this.describeTyped(this.typed.before, () => (this.typed.before = "")),
      ),
    );
  }

  describeBefore() {
    if (!this.before.value) return null;
    const { thread, steps } = this.before.value;
    const { hint, error, prompt, state } = thread;
    return h(
      "div",
      { class: "before", key: "before" },
      hint && h("p", null, h("strong", null, "A hint: "), hint),
      error && h("p", null, h("strong", null, "The last attempt failed: "), error.message),
      h("details", { key: "task", open: true }, h("summary", null, "Task"), foreign(prompt)),
      state?.html && h("details", { key: "state" }, h("summary", null, "State"), foreign(state)),
      steps.map(({ entry, parts }, number) =>
        h(
          "details",
          { key: entry.commit, open: number === 0 },
          h(
            "summary",
            null,
            entry.title,
            h("span", { class: "soft" }, number === 0 ? ", just before" : ` ${entry.summary ?? ""}`),
          ),
          parts.filter((part) => part.name === "meta" || part.name === "content").map(foreign),
          h("a", { class: "small", href: linkOf(this.id, entry) }, "All of this step"),
        ),
      ),
    );
  }

  formOf(root) {
    const change = (place, text) => {
      typeField(this.typed, place, text);
      delete this.problems.byPlace[place.replace(/~[#?]$/, "")];
      this.keepTyped();
    };
    return {
      root,
      typed: this.typed.fields,
      problems: this.problems.byPlace,
      type: (place, text) => {
        const had = this.problems.byPlace[place];
        change(place, text);
        if (had) this.draw();
      },
      press: (place, text, next) => {
        change(place, text);
        this.focusNext = next;
        this.draw();
      },
    };
  }

  drawn() {
    if (this.focusNext === undefined) return;
    const place = document.getElementById(idOf(this.focusNext));
    const field = place?.matches("input, select, textarea")
      ? place
      : place?.querySelector("input, select, textarea");
    (field ?? place)?.focus();
    this.focusNext = undefined;
  }

  describeJson() {
    return h(
      "div",
      { class: "field", key: "json" },
      h("label", { class: "label", for: "json" }, "Answer as JSON"),
      h("p", { class: "about", id: "json-about" }, this.question.value.fields.join(" · ")),
      h("textarea", {
        id: "json",
        class: "mono",
        rows: "10",
        spellcheck: "false",
        value: this.typed.json,
        oninput: (event) => this.set({ json: event.target.value }),
        "aria-invalid": this.problems.whole.length > 0 ? "true" : null,
        "aria-describedby": "json-about",
      }),
    );
  }

  set(values) {
    Object.assign(this.typed, values);
    this.keepTyped();
  }

  /** Change between fields and JSON, with what is typed as far as it can be taken along. */
  change(root, toJson) {
    this.problems.clear();
    if (toJson) {
      const { value } = collect(root, this.typed.fields);
      this.set({ isJson: true, json: JSON.stringify(value ?? {}, null, 2) });
    } else {
      const [value, wrong] = this.typed.json.trim() ? parseJson(this.typed.json) : [undefined, ""];
      const fields = wrong ? null : value === undefined ? {} : typeValue(root, value);
      if (fields === null) {
        this.problems.whole = [
          wrong || "the fields cannot hold this JSON; it can be sent as it is",
        ];
      } else this.set({ isJson: false, fields });
    }
    this.draw();
  }

  async submit(event, isJson) {
    event.preventDefault();
    if (this.isSending) return undefined;
    const { schema } = this.question.value;
    this.problems.clear();
    this.moved = "";
    const { value, places } = isJson ? this.readJson() : this.readFields(schema);
    this.isSending = true;
    this.draw();
    if (!this.problems.isEmpty) {
      if (!isJson) await this.checkRest(value, places);
      this.isSending = false;
      return this.showProblems();
    }
    try {
      const { question } = this.question.value;
      const result = await post(path("threads", this.id, "answer"), {
        question,
        meta: value,
        content: this.typed.content,
        note: this.typed.note,
        ...(this.typed.go ? { go: true } : {}),
      });
      this.recorded(result);
    } catch (error) {
      // Until the question is read again, another answer would be one to the old question.
      if (error.status === 409)
        await Promise.all([this.question.renew({ keep: true }), this.before.renew({ keep: true })]);
      this.isSending = false;
      this.takeRefusal(error, places);
    }
    return undefined;
  }

  /** Have the server check the fields in which nothing was found here, so that all is told at once. */
  async checkRest(meta, places) {
    try {
      const { details } = await post(path("threads", this.id, "question"), { meta });
      this.problems.addAll(details, places);
    } catch {
      // What was found here is told; the rest is checked again with the answer.
    }
  }

  readFields(schema) {
    const { value, problems, names, places } = collect(schema, this.typed.fields);
    Object.assign(this.problems, { byPlace: problems, names });
    return { value: value ?? null, places };
  }

  readJson() {
    const [value, wrong] = parseJson(this.typed.json);
    if (wrong) this.problems.whole = [wrong];
    return { value, places: {} };
  }

  recorded(result) {
    forget(this.kept);
    say(result.driver ? "Recorded; it goes on in the background" : "Recorded");
    carry(this.id, result.refused);
    go(["t", this.id], {}, true);
  }

  takeRefusal(error, places) {
    if (error.status === 409) {
      this.moved = this.moved
        ? `Nothing was recorded. ${this.moved}`
        : `${error.message}. Nothing was recorded, and what you typed is kept.`;
    } else if (error.details.length > 0) {
      this.problems.addAll(error.details, places);
      this.showProblems();
      return;
    } else this.problems.refused = error;
    this.draw();
  }

  showProblems() {
    const { first } = this.problems;
    if (first !== undefined) this.focusNext = first;
    this.draw();
    if (first === undefined) requestAnimationFrame(() => document.getElementById("json")?.focus());
  }
}

/** Describe a text that the server made. */
function foreign({ name, html }) {
  return h("div", { key: name, class: "content" }, h("div", { html }));
}

function submitByKey(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.currentTarget.requestSubmit();
}
