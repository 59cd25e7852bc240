// The page: which view an address shows, what is around it, and the changes that it is told.

import { get, onNewToken, takeToken } from "./modules/api.js";
import { Answer } from "./modules/answer.js";
import { h, patch } from "./modules/dom.js";
import { Draft } from "./modules/draft.js";
import { forgetOld } from "./modules/kept.js";
import { New } from "./modules/new.js";
import { link, readRoute } from "./modules/route.js";
import { follow, listen, reconnect } from "./modules/stream.js";
import { Thread } from "./modules/thread.js";
import { Threads } from "./modules/threads.js";
import { problem } from "./modules/told.js";

const TICK_MS = 5000;
const LONGEST_PRESS_MS = 1000;

const page = {
  about: null,
  stream: { isLive: true },
  storeProblem: null,
  refused: null,
  view: null,
  viewKey: "",
};

/** Show the view of the address. A view that goes on showing the same is told only the rest of it. */
function show() {
  const route = readRoute();
  const [View, key] = choose(route.parts);
  if (page.viewKey !== key) {
    page.view?.stop?.();
    page.viewKey = key;
    page.view = new View({ draw, route, refuse });
    scrollTo(0, 0);
    if (document.activeElement !== document.body)
      document.getElementById("main").focus({ preventScroll: true });
  } else page.view.move(route);
  draw();
}

function choose([name, id, below]) {
  if (name === "t" && id && below === "answer") return [Answer, `answer ${id}`];
  if (name === "t" && id) return [Thread, `thread ${id}`];
  if (name === "new") return [New, "new"];
  if (name === "draft" && id) return [Draft, `draft ${id}`];
  return [Threads, "threads"];
}

/** Take an error that concerns the whole page; tell whether it does. */
function refuse(error) {
  if (error.status !== 401) return false;
  page.refused = error;
  draw();
  return true;
}

let isDrawing = false;
let pressedAt = -Infinity;

/** Draw at the next frame: several changes are one update. */
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  // A hidden tab gets no frames.
  if (document.visibilityState === "hidden") setTimeout(drawNow);
  else requestAnimationFrame(drawNow);
}

function drawNow() {
  // What moves below a press would lose the click.
  if (performance.now() - pressedAt < LONGEST_PRESS_MS) {
    setTimeout(drawNow, 50);
    return;
  }
  isDrawing = false;
  const view = page.view;
  document.title = `${view.title()} · uwf`;
  patch(document.getElementById("bar"), describeBar());
  patch(
    document.getElementById("main"),
    page.refused ? describeRefused() : [page.stream.status === 0 && describeSilence(), view.describe()],
  );
  view.drawn?.();
}

function describeBar() {
  const [name] = readRoute().parts;
  const here = (is) => (is ? "page" : null);
  const isConnected = page.stream.isLive;
  const isLive = isConnected && !page.storeProblem;
  return [
    h("a", { class: "name", href: link([]), "aria-label": "uwf: all threads" }, "uwf"),
    h(
      "nav",
      { "aria-label": "Views" },
      h(
        "a",
        { href: link([]), "aria-current": name === "t" ? "true" : here(name === undefined) },
        "Threads",
      ),
      h(
        "a",
        { href: link(["new"]), "aria-current": here(name === "new" || name === "draft") },
        "New",
      ),
    ),
    h("span", { class: "store soft small", title: page.about?.store }, page.about?.store),
    h(
      "span",
      { class: `live small soft${isLive ? "" : " off"}`, title: page.storeProblem },
      isLive ? "Live" : isConnected ? "Store not readable" : "Not connected",
    ),
  ];
}

function describeSilence() {
  const again = `if it has ended, start \`uwf ui --port ${location.port}\` again, and open the address that it prints; what you typed is kept`;
  return h(
    "div",
    { key: "silence" },
    problem({ message: "the server of this page does not answer", hint: again }),
  );
}

function describeRefused() {
  return h(
    "div",
    { class: "form", key: "refused" },
    h("h1", { tabindex: "-1" }, "This page has no valid key"),
    problem(page.refused),
    h(
      "p",
      null,
      "Each start of ",
      h("code", null, "uwf ui"),
      " makes a new key. Open the address that it printed, in any tab of this browser; this tab then goes on by itself. What you typed is kept.",
    ),
  );
}

function hear(message) {
  if (message.type === "state") {
    page.stream = message;
    if (message.status === 401) get("about").catch(refuse);
    draw();
    return;
  }
  // What follows a hello tells it again.
  if (message.type === "hello") page.storeProblem = null;
  if (message.type === "store") {
    page.storeProblem = message.problem;
    draw();
    page.view.hear?.({ type: "hello", reset: true });
  } else if (!page.refused) page.view.hear?.(message);
}

function readAbout() {
  get("about").then(
    (about) => {
      page.about = about;
      page.refused = null;
      draw();
    },
    (error) => refuse(error),
  );
}

/** Go on with another token; what was typed stays. */
function renew() {
  page.refused = null;
  readAbout();
  reconnect();
  page.view.hear({ type: "hello", reset: true });
}

async function begin() {
  await takeToken();
  forgetOld();
  listen(hear);
  addEventListener("hashchange", () => {
    takeToken().then((isNew) => isNew && renew());
    show();
  });
  onNewToken(renew);
  // What is shown may be old on return.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && !page.refused)
      page.view.hear?.({ type: "hello", reset: true });
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  addEventListener("pointerdown", () => (pressedAt = performance.now()), true);
  // Once the click was heard.
  for (const end of ["pointerup", "pointercancel"])
    addEventListener(end, () => setTimeout(() => (pressedAt = -Infinity)), true);
  setInterval(() => document.visibilityState === "visible" && draw(), TICK_MS);
  readAbout();
  show();
  follow();
}

begin();
