// The fields of a form, made from a JSON Schema; schema.js says what each part is.

import { h } from "./dom.js";
import {
  add,
  choiceName,
  choicesOf,
  itemsOf,
  kindOf,
  literal,
  mayBeNull,
  nameOf,
  resolve,
  wantsOf,
} from "./schema.js";
import { visible } from "./visible.js";

const MOST_RADIOS = 5;

/** Return the id of the field at *place*, for labels and links. */
export const idOf = (place) => `field-${encodeURIComponent(visible(place))}`;

/**
 * Describe the fields of *root*. *typed* and *problems* are by place; `type(place, text)` is called
 * for what a person types, `press(change)` for what adds or removes fields.
 */
export function describeForm(form) {
  return describePart(form, {
    schema: resolve(form.root, form.root),
    place: "",
    name: "",
    isRequired: true,
    depth: 0,
  });
}

function describePart(form, part) {
  const kind = kindOf(form.root, part.schema, part.depth);
  const describe = {
    object: describeObject,
    list: describeList,
    choice: describeChoice,
    const: describeConst,
  }[kind];
  return describe ? describe(form, part) : describeField(form, part, kind);
}

function describeObject(form, part) {
  const fields = describeProperties(form, part);
  return part.place === ""
    ? h("div", { class: "fields", key: "/" }, fields)
    : group(form, part, fields);
}

function describeProperties(form, part) {
  const required = part.schema.required ?? [];
  return Object.entries(part.schema.properties).map(([name, below]) =>
    describePart(form, {
      schema: resolve(form.root, below),
      place: add(part.place, name),
      name: nameOf(name, below),
      isRequired: required.includes(name),
      depth: part.depth + 1,
    }),
  );
}

function group(form, part, inside) {
  const told = wantsOf(part);
  return h(
    "fieldset",
    {
      class: "group",
      key: part.place,
      id: idOf(part.place),
      tabindex: "-1",
      "aria-describedby": describedBy(form, part),
    },
    h("legend", null, labelOf(part)),
    about(part, told),
    problem(form, part.place),
    inside,
  );
}

function describeList(form, part) {
  const items = resolve(form.root, part.schema.items);
  const numbers = itemsOf(form.typed, part.place);
  const change = (list) => form.press(`${part.place}~#`, list.join(","));
  const rows = numbers.map((number, index) => {
    const place = add(part.place, number);
    const inner = {
      schema: items,
      place,
      name: `${part.name || "item"} ${index + 1}`,
      isRequired: true,
      isItem: true,
      depth: part.depth + 1,
    };
    return h(
      "div",
      { class: "item", key: place },
      describePart(form, inner),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Remove ${inner.name}`,
          onclick: () => change(numbers.filter((each) => each !== number)),
        },
        "✕",
      ),
    );
  });
  const next = Math.max(-1, ...numbers) + 1;
  const isFull = part.schema.maxItems !== undefined && numbers.length >= part.schema.maxItems;
  const more = h(
    "button",
    {
      type: "button",
      class: "add",
      key: "add",
      "aria-disabled": isFull ? "true" : null,
      onclick: () =>
        !isFull &&
        form.press(`${part.place}~#`, [...numbers, next].join(","), add(part.place, next)),
    },
    `Add ${part.name || "item"}`,
  );
  return group(form, part, [rows, more]);
}

function describeChoice(form, part) {
  const shapes = choicesOf(form.root, part.schema);
  const place = `${part.place}~?`;
  const chosen = form.typed[place] ?? (shapes.length === 1 ? "0" : "");
  const shape = shapes[Number(chosen)];
  const names = shapes.map((each, number) => [String(number), choiceName(form.root, each, number)]);
  const isOpen = chosen !== "" && shape;
  const inner = {
    ...part,
    schema: shape,
    place: `${part.place}/~?${chosen}`,
    name: "",
    isRequired: true,
    isInner: true,
  };
  return h(
    "div",
    { class: "choice", key: place, id: idOf(part.place), tabindex: "-1" },
    pick(form, { ...part, place, name: part.name || "Which" }, withNothing(part, names), chosen),
    problem(form, part.place),
    isOpen && describeInner(form, inner),
  );
}

function describeInner(form, part) {
  const kind = kindOf(form.root, part.schema, part.depth);
  if (kind !== "object") return describePart(form, { ...part, name: "value" });
  return h(
    "div",
    { class: "fields chosen", key: part.place, id: idOf(part.place), tabindex: "-1" },
    problem(form, part.place),
    describeProperties(form, part),
  );
}

function describeConst(form, part) {
  const value = h("code", null, literal(part.schema.const));
  if (part.isRequired) {
    return h(
      "div",
      { class: "field", key: part.place },
      h("span", { class: "label" }, labelOf(part)),
      h("div", { class: "fixed" }, value),
      problem(form, part.place),
    );
  }
  const names = [
    ["", "leave it out"],
    ["yes", literal(part.schema.const)],
  ];
  return pick(form, part, names, form.typed[part.place] ?? "");
}

function describeField(form, part, kind) {
  if (kind === "enum") {
    const names = part.schema.enum.map((each, number) => [String(number), literal(each)]);
    return pick(form, part, withNothing(part, names), form.typed[part.place] ?? "");
  }
  if (kind === "boolean") {
    return pick(
      form,
      part,
      withNothing(part, [
        ["yes", "Yes"],
        ["no", "No"],
        ...(mayBeNull(part.schema) ? [["null", "null"]] : []),
      ]),
      form.typed[part.place] ?? "",
    );
  }
  const isShort =
    kind === "integer" || kind === "number" || part.schema.format || part.schema.maxLength <= 120;
  const common = {
    ...named(form, part),
    "aria-required": part.isRequired ? "true" : null,
    value: form.typed[part.place] ?? "",
    oninput: (event) => form.type(part.place, event.target.value),
    autocomplete: "off",
    spellcheck: kind === "string" ? null : "false",
  };
  const field =
    kind === "json"
      ? h("textarea", { ...common, class: "mono", rows: "3" })
      : isShort
        ? h("input", {
            ...common,
            type: "text",
            inputmode: kind === "string" ? null : kind === "integer" ? "numeric" : "decimal",
          })
        : h("textarea", { ...common, rows: "1" });
  const told = [
    { integer: "a whole number", number: "a number", json: "JSON" }[kind],
    wantsOf(part),
  ]
    .filter(Boolean)
    .join(", ");
  return frame(form, part, told, field);
}

function withNothing(part, names) {
  return part.isRequired ? names : [["", "leave it out"], ...names];
}

function frame(form, part, told, field) {
  return h(
    "div",
    { class: "field", key: part.place },
    h(
      "label",
      { for: idOf(part.place), class: part.isItem ? "label unseen" : "label" },
      labelOf(part),
    ),
    about(part, told),
    field,
    problem(form, part.place),
  );
}

/** Describe a choice among *names*, pairs of a text to type and a name. */
function pick(form, part, names, chosen) {
  const told = wantsOf(part);
  const set = (text) => form.press(part.place, text);
  if (names.length > MOST_RADIOS) {
    const empty = names[0][0] === "" ? names : [["", "choose…"], ...names];
    const select = h(
      "select",
      {
        ...named(form, part),
        "aria-required": part.isRequired ? "true" : null,
        value: chosen,
        onchange: (event) => set(event.target.value),
      },
      empty.map(([text, name]) => h("option", { value: text, key: text }, name)),
    );
    return frame(form, part, told, select);
  }
  const id = idOf(part.place);
  return h(
    "fieldset",
    {
      class: "field radios",
      key: part.place,
      id,
      tabindex: "-1",
      role: "radiogroup",
      "aria-invalid": form.problems[part.place] ? "true" : null,
      "aria-required": part.isRequired ? "true" : null,
      "aria-describedby": describedBy(form, part),
    },
    h("legend", { class: part.isItem ? "label unseen" : "label" }, labelOf(part)),
    about(part, told),
    h(
      "div",
      { class: "options" },
      names.map(([text, name], number) =>
        h(
          "label",
          { key: text },
          h("input", {
            type: "radio",
            name: id,
            id: `${id}-${number}`,
            checked: chosen === text,
            onchange: () => set(text),
          }),
          h("span", null, name),
        ),
      ),
    ),
    problem(form, part.place),
  );
}

function named(form, part) {
  return {
    id: idOf(part.place),
    name: part.place || "value",
    "aria-invalid": form.problems[part.place] ? "true" : null,
    "aria-describedby": describedBy(form, part),
  };
}

function describedBy(form, part) {
  const ids = [];
  if (part.schema.description || wantsOf(part)) ids.push(`${idOf(part.place)}-about`);
  if (form.problems[part.place]) ids.push(`${idOf(part.place)}-problem`);
  return ids.join(" ") || null;
}

function labelOf(part) {
  const name = part.schema.title && part.isInner ? part.schema.title : part.name || "Answer";
  return [name, !part.isRequired && h("span", { class: "soft" }, " optional")];
}

function about(part, told) {
  const said = [part.schema.description, told].filter(Boolean);
  return (
    said.length > 0 &&
    h("p", { class: "about", key: "about", id: `${idOf(part.place)}-about` }, said.join(" · "))
  );
}

function problem(form, place) {
  const said = form.problems[place];
  return said && h("p", { class: "problem", key: "problem", id: `${idOf(place)}-problem` }, said);
}
