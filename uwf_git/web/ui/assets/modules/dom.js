// Elements from descriptions. `patch` changes only what differs, so that an update takes neither the
// focus, nor what was typed, nor what is open or scrolled.

import { setServerHtml } from "./trusted.js";
import { visible } from "./visible.js";

const SVG = "http://www.w3.org/2000/svg";
const descriptions = new WeakMap();
// A person changes these; but for the value, a description sets them only when it changes itself.
const LIVE = new Set(["value", "checked", "open", "selected"]);

/**
 * Describe an element. Properties: attributes; `on…` listeners; `key`, by which `patch` finds it
 * again; `html`, server-made, in place of children; `onmake(element)`, called once.
 * Children: text, descriptions, lists of them; null and false are nothing.
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter(isShown) };
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

/** Make the children of *parent* those that are described. */
export function patch(parent, children) {
  const held = document.activeElement;
  const mine = held !== null && parent.contains(held) && held !== parent;
  const ways = mine ? ancestorsWithin(parent, held) : [];
  patchChildren(parent, [children].flat(Infinity).filter(isShown));
  if (!mine || document.activeElement === held) return;
  // It was moved: take it up again. It is gone: the nearest that is left takes its place.
  const next = held.isConnected ? held : findNext(ways, parent);
  next?.focus({ preventScroll: true });
}

function ancestorsWithin(parent, element) {
  const found = [];
  for (let each = element.parentElement; each !== null; each = each.parentElement) {
    found.push(each);
    if (each === parent) break;
  }
  return found;
}

function findNext(ways, parent) {
  for (const each of ways) {
    if (!each.isConnected) continue;
    const first = each.querySelector("a[href], button, input, select, textarea, [tabindex]");
    if (first) return first;
  }
  return parent.closest("[tabindex]") ?? document.querySelector("h1");
}

function patchChildren(parent, children) {
  const byKey = new Map();
  const rest = [];
  for (const node of parent.childNodes) {
    const key = descriptions.get(node)?.props.key;
    if (key === undefined) rest.push(node);
    else byKey.set(key, node);
  }
  const nodes = children.map((child) => {
    const found = findNode(child, byKey, rest);
    return found ? update(found, child) : make(child, parent);
  });
  const kept = new Set(nodes);
  for (const node of [...parent.childNodes]) if (!kept.has(node)) node.remove();
  let place = parent.firstChild;
  for (const node of nodes) {
    if (node === place) place = place.nextSibling;
    else move(parent, node, place);
  }
}

function move(parent, node, before) {
  // moveBefore keeps the focus; it needs a node that is in the document already.
  if (parent.moveBefore && node.isConnected && parent.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function findNode(child, byKey, rest) {
  if (typeof child === "object" && child.props.key !== undefined) {
    const found = byKey.get(child.props.key);
    byKey.delete(child.props.key);
    return found?.localName === child.tag.toLowerCase() ? found : undefined;
  }
  const index = rest.findIndex((node) =>
    typeof child === "object" ? node.localName === child.tag.toLowerCase() : node.nodeType === 3,
  );
  return index < 0 ? undefined : rest.splice(index, 1)[0];
}

function make(child, parent) {
  if (typeof child !== "object") return document.createTextNode(visible(String(child)));
  const isSvg =
    child.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  update(node, child);
  child.props.onmake?.(node);
  return node;
}

function update(node, child) {
  if (typeof child !== "object") {
    const text = visible(String(child));
    if (node.data !== text) node.data = text;
    return node;
  }
  const before = descriptions.get(node)?.props ?? {};
  descriptions.set(node, child);
  for (const name of Object.keys(before))
    if (!(name in child.props)) setProp(node, name, null, before[name]);
  const isField = child.tag === "select";
  if (!isField) setProps(node, child.props, before);
  if (child.props.html === undefined) patchChildren(node, child.children);
  if (isField) setProps(node, child.props, before);
  return node;
}

function setProps(node, props, before) {
  for (const [name, value] of Object.entries(props)) setProp(node, name, value, before[name]);
}

function setProp(node, name, value, before) {
  if (name === "key" || name === "onmake") return;
  // What is described may be what it was before a person typed.
  const isTyped = name === "value" && name in node && node.value !== (value ?? "");
  if (value === before && !isTyped) return;
  if (name === "html") {
    if (value !== null && value !== undefined) setServerHtml(node, value);
  } else if (name.startsWith("on")) {
    if (before === undefined) node.addEventListener(name.slice(2), listen);
  } else if (LIVE.has(name) && name in node) {
    node[name] = value ?? (typeof node[name] === "boolean" ? false : "");
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : visible(String(value)));
  }
}

function listen(event) {
  descriptions.get(event.currentTarget)?.props[`on${event.type}`]?.call(event.currentTarget, event);
}
