// Requests to the server: a token with each, JSON both ways, errors with code, message and hint.

const KEY = "uwf-token";

/** What the server refused, or that it does not answer (status 0). */
export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code ?? "";
    this.hint = error.hint ?? "";
    this.details = error.details ?? [];
  }
}

/**
 * Take the token out of the address, where the command put it; later pages find it stored.
 *
 * Any page may lead here: only what the server knows takes the place of the token that is stored.
 * Return whether it did.
 */
export async function takeToken() {
  const given = location.hash.slice(1);
  if (!/^[A-Za-z0-9_-]{20,}$/.test(given)) return false;
  history.replaceState(null, "", "#/");
  const headers = { Authorization: `Bearer ${given}` };
  const seen = await fetch("/api/about", { headers, cache: "no-store" }).catch(() => null);
  if (!seen?.ok) return false;
  localStorage.setItem(KEY, given);
  return true;
}

/** Call *listener* when another tab was given a token. */
export function onNewToken(listener) {
  addEventListener("storage", (event) => event.key === KEY && event.newValue && listener());
}

/** Send a request; return the response, or raise `Refused`. */
export async function request(path, options = {}) {
  const headers = {
    Authorization: `Bearer ${localStorage.getItem(KEY) ?? ""}`,
    ...options.headers,
  };
  let response;
  try {
    response = await fetch(`/api/${path}`, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, {
      code: "no-answer",
      message: "the server does not answer",
      hint: "start `uwf ui` again if it has ended",
    });
  }
  if (!response.ok) throw new Refused(response.status, await readError(response));
  return response;
}

async function readError(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { code: "", message: `the server answers with status ${response.status}` };
  }
}

/** Read the JSON at *path*. */
export const get = async (path, signal) => (await request(path, { signal })).json();

/** Read the SVG at *path*. */
export const getText = async (path) => (await request(path)).text();

/** Send *body*; return the JSON that comes back. */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** Return *parts* as a path. */
export const path = (...parts) => parts.map(encodeURIComponent).join("/");

/** Return *values* as a query; those that are empty are left out. */
export function query(values) {
  const told = new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString();
  return told ? `?${told}` : "";
}
