// Addresses within the page: #/t/ID/s/3?q=x is {parts: ["t", ID, "s", "3"], values: {q: "x"}}.

/** Return the address that the browser shows, in parts. */
export function readRoute() {
  const [where, values] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = where.split("/").filter(Boolean).map(decode);
  return { parts, values: Object.fromEntries(new URLSearchParams(values ?? "")) };
}

/** Return *part* of an address with its percent signs decoded; as it is if they encode nothing. */
export function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return the address of *parts*, with *values* that are not empty. */
export function link(parts, values = {}) {
  const told = new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${told ? `?${told}` : ""}`;
}

/** Go to the address of *parts*; with *isSame* in place of the one that is shown. */
export function go(parts, values = {}, isSame = false) {
  const address = link(parts, values);
  if (!isSame) location.hash = address;
  else {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
