// A form's fields from a JSON Schema: which kind each part is, and the value of what was typed.
//
// What is typed is a flat map from places to texts: "/name" a field, "/list~#" the items of a list,
// "/choice~?" which alternative; a name does not end so, since its own "~" is "~0". A place is made of
// names and item numbers that stay while items are removed; `collect` tells which place has which
// JSON pointer.

import { decode } from "./route.js";

const SCALARS = new Set(["string", "integer", "number", "boolean"]);
const DEEPEST = 4;
// A part that says more than this is typed as JSON: the form could not promise a fitting value.
const KNOWN = new Set([
  "type",
  "const",
  "enum",
  "properties",
  "required",
  "items",
  "oneOf",
  "anyOf",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "additionalProperties",
  "format",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
]);

/** Return the part that *schema* refers to within *root*; {} for anything that is no object. */
export function resolve(root, schema) {
  for (let count = 0; count < 10; count += 1) {
    if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return {};
    if (schema.type === "null") return { const: null, ...schema };
    if (typeof schema.$ref !== "string") return schema;
    const { $ref, ...beside } = schema;
    const target = follow(root, $ref);
    if (target === undefined) return { $ref, "x-unknown": true };
    schema = Object.keys(beside).length > 0 ? { ...target, ...beside } : target;
  }
  return { "x-unknown": true };
}

function follow(root, target) {
  if (!target.startsWith("#")) return undefined;
  let place = root;
  for (const part of target.slice(1).split("/").slice(1)) {
    const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (place === null || typeof place !== "object" || !Object.hasOwn(place, name))
      return undefined;
    place = place[name];
  }
  return place;
}

/** Return the kind of a resolved part: const, enum, choice, object, list, json, or a scalar type. */
export function kindOf(root, schema, depth = 0) {
  if (Object.keys(schema).some((name) => !KNOWN.has(name))) return "json";
  if (Object.hasOwn(schema, "const")) return "const";
  if (Array.isArray(schema.enum)) return "enum";
  if (schema.oneOf ?? schema.anyOf)
    return choicesOf(root, schema) && depth < DEEPEST ? "choice" : "json";
  const type = typeOf(schema) || (schema.properties ? "object" : "");
  if (SCALARS.has(type)) return type;
  if (depth >= DEEPEST) return "json";
  const isList = type === "array" && schema.items && typeof schema.items === "object";
  if (isList) return mayBeNull(schema) ? "choice" : "list";
  const isPlain = [undefined, true, false].includes(schema.additionalProperties);
  const required = schema.required ?? [];
  const names = Object.keys(schema.properties ?? {});
  const isWhole = names.length > 0 && required.every((name) => names.includes(name));
  if (type !== "object" || !isPlain || !isWhole) return "json";
  return mayBeNull(schema) ? "choice" : "object";
}

function typeOf(schema) {
  const names = [schema.type ?? []].flat().filter((name) => name !== "null");
  return names.length === 1 ? names[0] : "";
}

/** Tell whether null is a value of *schema*. */
export function mayBeNull(schema) {
  return [schema.type ?? []].flat().includes("null");
}

/** Return the alternatives of *schema*; null if they are none that a form can show. */
export function choicesOf(root, schema) {
  const choices = schema.oneOf ?? schema.anyOf;
  if (!choices) {
    // An object or a list, or null.
    const { title, description, ...shape } = schema;
    return [{ ...shape, type: typeOf(schema) }, { const: null }];
  }
  if (!Array.isArray(choices) || choices.length === 0 || schema.properties) return null;
  return choices.map((choice) => resolve(root, choice));
}

/** Return what people call the field *name*: its own title, not that of a schema it refers to. */
export const nameOf = (name, below) => (typeof below?.title === "string" && below.title) || name;

/** Return the name of an alternative, for people. */
export function choiceName(root, shape, number) {
  if (shape.title || shape.description) return shape.title ?? shape.description;
  const fixed = Object.entries(shape.properties ?? {})
    .map(([name, part]) => [name, resolve(root, part)])
    .filter(([, part]) => Object.hasOwn(part, "const"))
    .map(([name, part]) => `${name}: ${literal(part.const)}`);
  if (fixed.length > 0) return fixed.join(", ");
  const names = Object.keys(shape.properties ?? {});
  if (names.length > 0) return names.join(", ");
  return Object.hasOwn(shape, "const")
    ? literal(shape.const)
    : (shape.type ?? `choice ${number + 1}`);
}

/** Return *value* as people type it: text bare, all else as JSON. */
export function literal(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Return what a part wants, beside its kind, in a few words. */
export function wantsOf({ schema, isRequired }) {
  const told = [];
  const say = (name, words) => schema[name] !== undefined && told.push(words(schema[name]));
  say("minLength", (n) => `at least ${n} characters`);
  say("maxLength", (n) => `at most ${n} characters`);
  say("minimum", (n) => `at least ${n}`);
  say("maximum", (n) => `at most ${n}`);
  say("exclusiveMinimum", (n) => `more than ${n}`);
  say("exclusiveMaximum", (n) => `less than ${n}`);
  say("multipleOf", (n) => `a multiple of ${n}`);
  say("minItems", (n) => `at least ${n} items`);
  say("maxItems", (n) => `at most ${n} items`);
  // A description says it in words.
  if (!schema.description) say("pattern", (text) => `matches ${text}`);
  say("format", (text) => `format ${text}`);
  if (!isRequired) say("default", (value) => `default ${literal(value)}`);
  if (schema.uniqueItems === true) told.push("no item twice");
  if (mayBeNull(schema)) told.push("or null");
  return told.join(", ");
}

export const add = (place, name) =>
  `${place}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Return the numbers of the items that a list at *place* has. */
export function itemsOf(typed, place) {
  return (typed[`${place}~#`] ?? "").split(",").filter(Boolean).map(Number);
}

/** Return the JSON value of a text, as [value, problem]. */
export function parseJson(text) {
  try {
    return [JSON.parse(text, checkExact), ""];
  } catch (error) {
    return [undefined, `this is no JSON that can be sent: ${error.message}`];
  }
}

function checkExact(_name, value, context) {
  const problem = inexact(context?.source ?? "", value);
  if (problem) throw new Error(problem);
  return value;
}

function inexact(text, value) {
  const isWhole = /^-?\d+$/.test(text);
  const isExact = isWhole ? Number.isSafeInteger(value) : ![Infinity, -Infinity].includes(value);
  return isExact ? "" : `a browser cannot hold ${text} exactly`;
}

/**
 * Return the value of what was typed: `value` (undefined: nothing was), `problems` and `names` by
 * place, and `places` by JSON pointer.
 */
export function collect(root, typed) {
  const found = { root, typed, problems: {}, names: {}, places: {} };
  const value = read(found, {
    schema: resolve(root, root),
    place: "",
    pointer: "",
    isRequired: true,
    depth: 0,
  });
  return { value, problems: found.problems, names: found.names, places: found.places };
}

function read(found, part) {
  const { place, pointer, schema, depth } = part;
  found.places[pointer] = place;
  const kind = kindOf(found.root, schema, depth);
  if (kind === "const")
    return part.isRequired || found.typed[place] === "yes" ? schema.const : undefined;
  if (kind === "object") return readObject(found, part);
  if (kind === "list") return readList(found, part);
  if (kind === "choice") return readChoice(found, part);
  const text = found.typed[place] ?? "";
  if (text === "" || (kind !== "string" && text.trim() === ""))
    return readNothing(found, part, kind);
  if (mayBeNull(schema) && text.trim() === "null") return null;
  const [value, problem] = readScalar(text, kind, schema);
  if (problem) found.problems[place] = problem;
  return value;
}

function readNothing(found, part, kind) {
  if (part.isRequired) {
    const needed = {
      enum: "choose one",
      boolean: "choose yes or no",
      string: 'this is needed; "" is an empty text',
    };
    found.problems[part.place] = needed[kind] ?? "this is needed";
  }
  return undefined;
}

function readScalar(text, kind, schema) {
  if (kind === "enum") {
    const value = schema.enum[Number(text)];
    return value === undefined ? [undefined, "choose one"] : [value, ""];
  }
  if (kind === "boolean") return [text === "yes", ""];
  if (kind === "string") return [text.trim() === '""' ? "" : text, ""];
  if (kind === "json") return parseJson(text);
  const number = Number(text);
  const isWhole = kind === "integer";
  const isWrong = isWhole ? !Number.isSafeInteger(number) : !Number.isFinite(number);
  const wanted = isWhole ? "type a whole number" : "type a number";
  const problem = inexact(text.trim(), number) || (isWrong ? wanted : "");
  return [problem ? undefined : number, problem];
}

function readObject(found, part) {
  const required = part.schema.required ?? [];
  // Problems in an optional object count only once something of it was typed.
  const inner = part.isRequired ? found : { ...found, problems: {} };
  const values = [];
  let isGiven = part.isRequired;
  for (const [name, below] of Object.entries(part.schema.properties)) {
    const schema = resolve(found.root, below);
    const place = add(part.place, name);
    found.names[place] = nameOf(name, below);
    const one = read(inner, {
      schema,
      place,
      pointer: add(part.pointer, name),
      isRequired: required.includes(name),
      depth: part.depth + 1,
    });
    if (one === undefined) continue;
    values.push([name, one]);
    if (!Object.hasOwn(schema, "const")) isGiven = true;
  }
  if (!part.isRequired && hasTyped(found.typed, part.place)) isGiven = true;
  if (isGiven && inner !== found) Object.assign(found.problems, inner.problems);
  // Not by assignment: a field may be named __proto__.
  return isGiven ? Object.fromEntries(values) : undefined;
}

function hasTyped(typed, place) {
  return Object.entries(typed).some(([each, text]) => each.startsWith(`${place}/`) && text !== "");
}

function readList(found, part) {
  const items = resolve(found.root, part.schema.items);
  const numbers = itemsOf(found.typed, part.place);
  const value = numbers.map((number, index) =>
    read(found, {
      schema: items,
      place: add(part.place, number),
      pointer: add(part.pointer, index),
      isRequired: true,
      depth: part.depth + 1,
    }),
  );
  return value.length > 0 || part.isRequired ? value : undefined;
}

function readChoice(found, part) {
  const shapes = choicesOf(found.root, part.schema);
  const chosen = found.typed[`${part.place}~?`] ?? "";
  if (chosen === "" && shapes.length > 1) {
    if (part.isRequired) found.problems[part.place] = "choose one";
    return undefined;
  }
  const number = Number(chosen || 0);
  return read(found, {
    ...part,
    schema: shapes[number] ?? {},
    place: `${part.place}/~?${number}`,
    isRequired: true,
    depth: part.depth,
  });
}

/** Return what has to be typed for *value*; null if the form of *root*, or a part, cannot hold it. */
export function typeValue(root, value, schema = resolve(root, root), place = "", depth = 0) {
  const found = { root, typed: {}, problems: {}, names: {}, places: {} };
  write(found, schema, place, value, depth);
  const back = read(found, { schema, place, pointer: "", isRequired: true, depth });
  return Object.keys(found.problems).length === 0 && isEqual(back, value) ? found.typed : null;
}

function write(into, schema, place, value, depth) {
  const { root, typed } = into;
  const kind = kindOf(root, schema, depth);
  if (value === undefined) return;
  if (kind === "choice") writeChoice(into, schema, place, value, depth);
  else if (value === null && mayBeNull(schema) && kind !== "json") typed[place] = "null";
  else if (kind === "const") typed[place] = "yes";
  else if (kind === "enum")
    typed[place] = String(schema.enum.findIndex((each) => isEqual(each, value)));
  else if (kind === "boolean") typed[place] = value ? "yes" : "no";
  else if (kind === "string") typed[place] = value === "" ? '""' : String(value);
  else if (kind === "integer" || kind === "number") typed[place] = String(value);
  else if (kind === "object") {
    for (const [name, part] of Object.entries(schema.properties)) {
      write(into, resolve(root, part), add(place, name), ownOf(value, name), depth + 1);
    }
  } else if (kind === "list" && Array.isArray(value)) {
    typed[`${place}~#`] = value.map((_, number) => number).join(",");
    const items = resolve(root, schema.items);
    value.forEach((each, number) => write(into, items, add(place, number), each, depth + 1));
  } else typed[place] = JSON.stringify(value, null, 2);
}

function ownOf(value, name) {
  return value !== null && typeof value === "object" && Object.hasOwn(value, name)
    ? value[name]
    : undefined;
}

function writeChoice(into, schema, place, value, depth) {
  for (const [number, shape] of choicesOf(into.root, schema).entries()) {
    const typed = typeValue(into.root, value, shape, `${place}/~?${number}`, depth);
    if (typed) {
      Object.assign(into.typed, typed, { [`${place}~?`]: String(number) });
      return;
    }
  }
}

function isEqual(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const names = Object.keys(a);
  if (Array.isArray(a) !== Array.isArray(b) || names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}
