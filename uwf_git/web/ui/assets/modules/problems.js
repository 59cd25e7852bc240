// What is wrong with an answer: at which field, or with the whole of it.

import { h } from "./dom.js";
import { idOf } from "./form.js";
import { problem } from "./told.js";

export class Problems {
  constructor() {
    this.clear();
  }

  clear() {
    this.byPlace = {};
    this.names = {};
    this.whole = [];
    this.refused = null;
  }

  /** Return the place of the first field with a problem. */
  get first() {
    return Object.keys(this.byPlace)[0];
  }

  get isEmpty() {
    return this.first === undefined && this.whole.length === 0;
  }

  /** Add what the server said of values; *places* tells the fields by pointer, in their order. */
  addAll(details, places) {
    // What was found here says more: the server does not see what was typed.
    const known = new Set(Object.keys(this.byPlace));
    for (const { pointer, message } of details) this.#add(pointer, message, places, known);
    const inOrder = Object.values(places).filter((place) => this.byPlace[place]);
    this.byPlace = {
      ...Object.fromEntries(inOrder.map((place) => [place, this.byPlace[place]])),
      ...this.byPlace,
    };
  }

  #add(pointer, message, places, known) {
    let at = pointer;
    while (at !== "" && places[at] === undefined) at = at.slice(0, at.lastIndexOf("/"));
    const place = places[at];
    if (known.has(place)) return;
    if (!place) {
      this.whole.push(pointer ? `${nameOf(pointer)}: ${message}` : message);
      return;
    }
    const told = at === pointer ? message : `${pointer.slice(at.length + 1)}: ${message}`;
    this.byPlace[place] = this.byPlace[place] ? `${this.byPlace[place]}; ${told}` : told;
  }

  /** Describe them, each with a link to its field; `jump(place)` goes there. */
  describe(jump) {
    if (this.refused) return problem(this.refused);
    if (this.isEmpty) return null;
    const follow = (place) => (event) => {
      event.preventDefault();
      jump(place);
    };
    return h(
      "div",
      { class: "notice bad", role: "alert", key: "problems", id: "problems", tabindex: "-1" },
      h(
        "p",
        null,
        h("strong", { class: "bad" }, "✗ "),
        "Nothing was recorded. This does not fit yet:",
      ),
      h(
        "ul",
        null,
        this.whole.map((told) => h("li", null, told)),
        Object.entries(this.byPlace).map(([place, told]) =>
          h(
            "li",
            { key: place },
            h("a", { href: `#${idOf(place)}`, onclick: follow(place) }, nameOf(place, this.names)),
            `: ${told}`,
          ),
        ),
      ),
    );
  }
}

/** Return a place, or a pointer, as people read it: "findings 1 › file". */
function nameOf(place, names = {}) {
  let at = "";
  let told = "";
  for (const part of place.split("/").slice(1)) {
    at += `/${part}`;
    const name = names[at] ?? part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (names[at] === undefined && /^\d+$/.test(part)) told += ` ${Number(part) + 1}`;
    else if (!part.startsWith("~?")) told += told ? ` › ${name}` : name;
  }
  return told || "answer";
}
