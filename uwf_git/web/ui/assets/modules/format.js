// Times, durations and statuses, for people.

import { h } from "./dom.js";

const LATEST_MS = 8.64e15;
const SIGNS = {
  completed: ["good", "✓"],
  failed: ["bad", "✗"],
  killed: ["bad", "✗"],
  damaged: ["bad", "✗"],
  unreadable: ["bad", "✗"],
  waiting: ["wait", "?"],
  paused: ["wait", "‖"],
  split: ["now", "⇉"],
  running: ["now", "▶"],
};

/** Describe a status; colour alone says nothing. */
export function badge(status) {
  const [kind, sign] = SIGNS[status] ?? ["soft", "·"];
  const mark = h(
    "span",
    { "aria-hidden": "true", class: status === "running" ? "running" : null },
    sign,
  );
  return h("span", { class: `badge ${kind}` }, mark, status);
}

/** Return a duration: 12 ms, 3 s, 5 min, 2 h, 3 d. */
export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Return how long ago a time in milliseconds is. */
export function ago(ms, now = Date.now()) {
  if (!Number.isFinite(ms)) return "";
  const passed = now - ms;
  if (passed < 5000) return "now";
  return `${duration(passed < 10_000 ? Math.floor(passed / 1000) * 1000 : passed)} ago`.replace(
    ".0 s",
    " s",
  );
}

/** Return a point in time, in the reader's zone. */
export function moment(ms) {
  return Number.isFinite(ms)
    ? new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })
    : "";
}

/** Describe a time: how long ago, and when as a hint. Dates end earlier than times may be. */
export function since(ms, props) {
  return Math.abs(ms ?? NaN) <= LATEST_MS
    ? h("time", { ...props, datetime: new Date(ms).toISOString(), title: moment(ms) }, ago(ms))
    : h("span", props);
}

/** Return a number of tokens. */
export const count = (number) => new Intl.NumberFormat("en").format(number);

/** Return a cost in US dollars. */
export function cost(dollars) {
  if (!Number.isFinite(dollars)) return "";
  const digits = dollars >= 0.1 || dollars === 0 ? 2 : 4;
  const shown =
    dollars > 0 && dollars < 0.01
      ? { minimumSignificantDigits: 2, maximumSignificantDigits: 2 }
      : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${dollars.toLocaleString("en", shown)} USD`;
}

/** Return "1 step", "2 steps". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** Return the beginning of a long *text*. */
export const clip = (text, most = 400) => (text.length > most ? `${text.slice(0, most)}…` : text);

/** Return the beginning of an id, as long as lists show it. */
export const short = (id) => id.slice(0, 12);
