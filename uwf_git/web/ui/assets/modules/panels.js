// Pieces that several views have.

import { h } from "./dom.js";

/**
 * Describe the panel of a picture, whose Loader is *picture*; *none* says why there is none yet.
 * *toggle()*, if given, changes whether it *isWhole*: at full size, and no branches folded.
 */
export function describePicture(
  picture,
  { title = "Workflow", of = "workflow", none, place, isWhole = false, toggle, choose } = {},
) {
  const { value, error } = picture;
  return h(
    "section",
    {
      class: ["panel", place, isWhole && "whole"].filter(Boolean).join(" "),
      key: "picture",
      "aria-labelledby": "picture-title",
    },
    h(
      "div",
      { class: "title" },
      h("h2", { id: "picture-title" }, title),
      toggle &&
        h(
          "button",
          { type: "button", class: "quiet", "aria-pressed": String(isWhole), onclick: toggle },
          "Full size",
        ),
    ),
    value
      ? h("div", {
          class: "picture",
          tabindex: "0",
          role: "group",
          "aria-label": `Picture of the ${of}`,
          onclick: choose && ((event) => choose(roleAt(event))),
          html: value,
        })
      : h("div", { class: "body soft" }, error ? error.message : (none ?? "Loading…")),
  );
}

/** Return the role whose box in a picture is under the pointer; undefined beside all boxes. */
function roleAt({ currentTarget, clientX: x, clientY: y }) {
  const holds = (outer, [across, down]) =>
    outer.left <= across && across <= outer.right && outer.top <= down && down <= outer.bottom;
  const boxes = [...currentTarget.querySelectorAll("rect:is(.role, .agent, .workflow)")];
  const box = boxes.map((each) => each.getBoundingClientRect()).find((each) => holds(each, [x, y]));
  const name = [...currentTarget.querySelectorAll("text.name")].find((each) => {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    return box && holds(box, [(left + right) / 2, (top + bottom) / 2]);
  });
  // A name that is cut has the whole one as its title.
  return (name?.querySelector("title") ?? name)?.textContent;
}

/** Describe the field of a text, which is *name* among what is typed in *view*. */
export function describeText(view, name, label, about, rows) {
  const wrong = view.wrong?.[name];
  return h(
    "div",
    { class: "field", key: name },
    h("label", { class: "label", for: name }, label),
    about && h("p", { class: "about", id: `${name}-about` }, about),
    h("textarea", {
      id: name,
      rows,
      value: view.typed[name],
      "aria-invalid": wrong ? "true" : null,
      "aria-describedby": wrong ? `${name}-problem` : about ? `${name}-about` : null,
      oninput: (event) => view.set({ [name]: event.target.value }),
    }),
    wrong && h("p", { class: "problem", id: `${name}-problem` }, wrong),
  );
}

/** Describe the line that sends the form of *view*: its button, and whether the thread goes on. */
export function describeSend(view, send, goOn) {
  return h(
    "div",
    { class: "buttons", key: "send" },
    h(
      "button",
      { type: "submit", class: "act", "aria-disabled": view.isSending ? "true" : null },
      send,
    ),
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: view.typed.go,
        onchange: (event) => view.set({ go: event.target.checked }),
      }),
      goOn,
    ),
  );
}
