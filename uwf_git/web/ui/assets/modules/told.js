// What a person is told: notices in their place, short news below, and a question before what cannot
// be taken back.

import { h, patch } from "./dom.js";

const SHOWN_MS = 6000;
const news = [];

/** Describe *text*, in which commands stand in backquotes. */
export function withCode(text) {
  return String(text)
    .split(/`([^`]+)`/)
    .map((part, index) => (index % 2 ? h("code", null, part) : part));
}

/** Describe an error: what happened, and what to type. */
export function problem(error, ...more) {
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h("p", null, h("strong", { class: "bad" }, "✗ "), withCode(error.message)),
    error.hint && h("p", { class: "hint" }, withCode(error.hint)),
    more,
  );
}

/** Describe a command with a button that copies it. */
export function command(text) {
  return h(
    "div",
    { class: "command" },
    h("pre", { class: "mono" }, text),
    h(
      "button",
      { type: "button", class: "quiet", "aria-label": `Copy ${text}`, onclick: () => copy(text) },
      "Copy",
    ),
  );
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  say("Copied");
}

/** Show *text* for some seconds; a screen reader says it. */
export function say(text) {
  const item = { text, key: `${Date.now()}-${news.length}` };
  news.push(item);
  drawNews();
  setTimeout(() => {
    news.splice(news.indexOf(item), 1);
    drawNews();
  }, SHOWN_MS);
}

function drawNews() {
  patch(
    document.getElementById("told"),
    news.map((each) => h("p", { key: each.key }, withCode(each.text))),
  );
}

/** Ask before something that cannot be taken back; tell whether the answer was *yes*. */
export function ask(title, text, yes) {
  const dialog = document.getElementById("ask");
  patch(dialog, [
    h("h2", { id: "ask-title" }, title),
    h("p", null, withCode(text)),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"),
      h("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") }, yes),
    ),
  ]);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
