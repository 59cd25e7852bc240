// What a person typed as an answer: fields by their place, or JSON, and a text and a note.

import { collect, itemsOf } from "./schema.js";

// What was typed for an earlier question stands in `before`.
const NOTHING = { fields: {}, json: "", isJson: false, content: "", note: "", before: "" };

/** Return what was *kept*, completed. */
export const complete = (kept) => ({ ...structuredClone(NOTHING), go: true, ...kept });

/** Forget what was typed, but not how it is sent. */
export const clear = (typed) => Object.assign(typed, structuredClone(NOTHING));

/** Tell whether anything was typed. */
export function isTyped({ fields, json, content, note }) {
  return Boolean(json || content || note || Object.values(fields).some((text) => text !== ""));
}

/** Return all that was typed, for a person to copy. */
export function readTyped({ before, schema, fields, json, isJson, content, note }) {
  const { value, problems } = collect(schema, fields);
  const wrong = Object.keys(problems).filter((place) => fields[place]);
  const told = [
    isTyped({ fields }) && JSON.stringify(value, null, 2),
    ...wrong.map((place) => `${place}: ${fields[place]}`),
  ];
  return [before, ...(isJson ? [json] : told), content, note].filter(Boolean).join("\n\n");
}

/** Take what was typed at a place; items that are removed by it are forgotten with their fields. */
export function typeField({ fields }, place, text) {
  fields[place] = text;
  if (!place.endsWith("~#")) return;
  // The numbers of removed items may come again.
  const list = place.slice(0, -2);
  const kept = new Set(itemsOf(fields, list).map(String));
  for (const each of Object.keys(fields)) {
    if (!each.startsWith(`${list}/`)) continue;
    const [number] = each.slice(list.length + 1).split(/[/~]/);
    if (!kept.has(number)) delete fields[each];
  }
}
