// The stream of changes: one for all tabs of a browser, which allow six connections to a host. The
// tab that holds the lock reads it and tells the others; a hidden tab never holds it.

import { request } from "./api.js";

const NAME = "uwf-stream";
const SHORTEST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;
// The server says something every 15 seconds; a line that is cut may stay open without a word.
const LONGEST_SILENCE_MS = 45_000;

const channel = new BroadcastChannel(NAME);
const listeners = new Set();
let at = "";
let giveUp = null;

/**
 * Call *listener* with each message of the stream, in every tab, and with `{type: "state", isLive}`.
 */
export function listen(listener) {
  listeners.add(listener);
}

/** Follow the stream while this tab is seen. */
export function follow() {
  channel.addEventListener("message", (event) => hear(event.data));
  document.addEventListener("visibilitychange", update);
  addEventListener("pagehide", stop);
  addEventListener("pageshow", update);
  update();
}

/** Connect again, as with a new token. */
export function reconnect() {
  stop();
  update();
}

function update() {
  if (document.visibilityState === "hidden") stop();
  else if (giveUp === null) lead();
}

function stop() {
  giveUp?.abort();
  giveUp = null;
}

async function lead() {
  const mine = new AbortController();
  giveUp = mine;
  try {
    await navigator.locks.request(NAME, { signal: mine.signal }, () => readForEver(mine.signal));
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

async function readForEver(signal) {
  let wait = SHORTEST_WAIT_MS;
  while (!signal.aborted) {
    try {
      const response = await request(`stream?since=${encodeURIComponent(at)}`, { signal });
      wait = SHORTEST_WAIT_MS;
      tell({ type: "state", isLive: true });
      await readLines(response.body, signal);
      tell({ type: "state", isLive: false });
    } catch (error) {
      if (signal.aborted) return;
      tell({ type: "state", isLive: false, status: error.status ?? 0 });
    }
    if (!signal.aborted) await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

async function readLines(body, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (!signal.aborted) {
    const timer = setTimeout(() => reader.cancel(), LONGEST_SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim()) tell(JSON.parse(line));
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function tell(message) {
  if (message.type === "beat") return;
  channel.postMessage(message);
  hear(message);
}

function hear(message) {
  if (message.at) at = message.at;
  for (const listener of listeners) listener(message);
}
