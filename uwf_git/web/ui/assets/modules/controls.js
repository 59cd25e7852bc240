// The controls of a thread. They record only; "and go on" starts a drive in the background.

import { path, post } from "./api.js";
import { Change } from "./change.js";
import { h } from "./dom.js";
import { short } from "./format.js";
import { go, link } from "./route.js";
import { ask, problem, say } from "./told.js";

/** Of each control: its name, what it does, what its text is sent as, whether it may go on. */
const CONTROLS = {
  run: ["Go on", "Drives the thread in the background", null, false],
  pause: ["Pause", "The agent at work finishes; then nothing begins", "reason", false],
  interrupt: ["Interrupt", "Stops the agent at work and pauses; needs a reason", "reason", false],
  resume: ["Resume", "Lets the thread go on", "reason", true],
  retry: ["Retry", "Lets what has failed try again, with your hint", "hint", true],
  poke: [
    "Poke",
    "Takes the newest step back and has it played again, with your hint",
    "hint",
    true,
  ],
  fork: ["Fork here", "Begins a new thread after the chosen event", "reason", true],
  kill: ["Kill…", "Ends the thread for good", "reason", false],
};
const DONE = {
  run: "Ended",
  pause: "Paused",
  interrupt: "Interrupted",
  resume: "Resumed",
  retry: "It may try again",
  poke: "Poked",
  fork: "Forked",
  kill: "Killed",
  patch: "Patched",
  amend: "Amended",
};
const GO = "uwf-go-on";
const carried = new Map();

/** Tell at the controls of *thread*, once they are shown, that it does not go on. */
export function carry(thread, refused) {
  if (refused) carried.set(thread, refused);
}

export class Controls {
  constructor(thread, draw, done) {
    this.thread = thread;
    this.draw = draw;
    this.done = done;
    this.text = "";
    this.refused = carried.get(thread) ?? null;
    carried.delete(thread);
    this.isSending = "";
    this.goesOn = localStorage.getItem(GO) !== "no";
    this.change = new Change(thread, draw, (name, body) => this.post(name, body, this.mayRun));
  }

  describe(thread, chosen) {
    const can = thread.can ?? [];
    this.mayRun = can.includes("run");
    // One that holds the focus stays until the focus leaves it.
    const held = document.activeElement?.dataset?.control;
    const shown = Object.keys(CONTROLS).filter((name) => can.includes(name) || name === held);
    const mayGoOn = shown.some((name) => CONTROLS[name][3]);
    return h(
      "div",
      { key: "controls" },
      (shown.length > 0 || can.includes("answer")) &&
        h(
          "div",
          { class: "controls", role: "group", "aria-label": "Controls" },
          can.includes("answer") &&
            h(
              "a",
              { class: "button", key: "answer", href: link(["t", this.thread, "answer"]) },
              "Answer",
            ),
          shown.map((name) => this.describeButton(name, can.includes(name), thread, chosen)),
          h(
            "label",
            { class: "why", key: "why" },
            h("span", { class: "small" }, "Why, or a hint"),
            h("input", {
              type: "text",
              value: this.text,
              autocomplete: "off",
              id: "why",
              "aria-invalid": this.needsWhy ? "true" : null,
              oninput: (event) => {
                this.text = event.target.value;
                this.needsWhy = false;
              },
            }),
          ),
          mayGoOn &&
            h(
              "label",
              { class: "check small", key: "go" },
              h("input", {
                type: "checkbox",
                checked: this.goesOn,
                onchange: (event) => this.setGoesOn(event.target.checked),
              }),
              "and go on",
            ),
        ),
      this.refused &&
        h(
          "div",
          { key: "refused" },
          problem(
            this.refused,
            h(
              "button",
              { type: "button", class: "quiet", onclick: () => this.dismiss() },
              "Dismiss",
            ),
          ),
        ),
      can.includes("amend") && this.change.describe(thread),
    );
  }

  describeButton(name, can, thread, chosen) {
    const isEnd = name === "run" && thread.next === "$END";
    const [title, about] = isEnd ? ["End", "No role is left: ends the thread"] : CONTROLS[name];
    const isOff = !can || this.isSending !== "";
    return h(
      "button",
      {
        type: "button",
        key: name,
        "data-control": name,
        title: about,
        class: { kill: "danger", run: "act" }[name],
        "aria-disabled": isOff ? "true" : null,
        // The second click of two would meet what the first has brought.
        onclick: ({ detail }) => !isOff && detail < 2 && this.send(name, thread, chosen),
        onblur: () => !can && this.draw(),
      },
      title,
    );
  }

  setGoesOn(isOn) {
    this.goesOn = isOn;
    localStorage.setItem(GO, isOn ? "yes" : "no");
    this.draw();
  }

  dismiss() {
    this.refused = null;
    this.draw();
  }

  async send(name, thread, chosen) {
    const [, , field, mayGoOn] = CONTROLS[name];
    const text = this.text.trim();
    if (name === "interrupt" && !text) return this.askWhy();
    if (
      name === "kill" &&
      !(await ask(
        "Kill this thread?",
        `It ends for good: \`${short(this.thread)}\` ${thread.title ?? ""}. What is recorded stays, and can be forked.`,
        "Kill it",
      ))
    )
      return undefined;
    // Without a commit the fork begins where the thread is now.
    const isAt = name === "fork" && chosen && chosen !== "now";
    await this.post(name, isAt ? { commit: chosen } : {}, mayGoOn, field);
    return undefined;
  }

  /** Send what a control records, with the text that stands beside them; tell whether it went well. */
  async post(name, more, mayGoOn, field = "reason") {
    const text = this.text.trim();
    const body = {
      ...more,
      ...(field && text ? { [field]: text } : {}),
      ...(mayGoOn && this.goesOn ? { go: true } : {}),
    };
    this.isSending = name;
    this.refused = null;
    this.draw();
    let isRecorded = false;
    try {
      this.sent(name, await post(path("threads", this.thread, name), body));
      isRecorded = true;
    } catch (error) {
      this.refused = error;
    }
    this.isSending = "";
    this.done();
    this.draw();
    return isRecorded;
  }

  sent(name, result) {
    this.text = "";
    this.refused = result.refused ?? null;
    const goesOn = result.driver ? "it goes on in the background" : "";
    say(goesOn && name !== "run" ? `${DONE[name]}; ${goesOn}` : goesOn || DONE[name]);
    if (name !== "fork") return;
    carry(result.thread, result.refused);
    go(["t", result.thread]);
  }

  askWhy() {
    this.needsWhy = true;
    this.refused = new Error("an interrupt needs a reason: the agent and others read it");
    this.draw();
    document.getElementById("why").focus();
  }
}
