// What was typed, kept in the browser until it is sent: it survives a reload.

const PREFIX = "uwf-typed:";
const LONGEST_MS = 30 * 24 * 3600 * 1000;

/** Return what was kept as *name*; {} if nothing was. */
export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? "{}").value ?? {};
  } catch {
    return {};
  }
}

/** Keep *value* as *name*. */
export function keep(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify({ value, time: Date.now() }));
  } catch {
    // The browser keeps no more; what was typed stays on the page.
  }
}

/** Forget what was kept as *name*. */
export function forget(name) {
  localStorage.removeItem(PREFIX + name);
}

/** Forget what was kept long ago. */
export function forgetOld() {
  for (const key of Object.keys(localStorage)) {
    if (!key.startsWith(PREFIX)) continue;
    const { time = 0 } = JSON.parse(localStorage.getItem(key) ?? "{}");
    if (Date.now() - time > LONGEST_MS) localStorage.removeItem(key);
  }
}
