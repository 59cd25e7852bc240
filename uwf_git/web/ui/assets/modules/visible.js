// Controls and marks of direction in foreign text, spelled out as uwf_git/model/text.py does.

const CONTROL =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Return *text* with its lines and tabs, and every other control spelled out. */
export function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(CONTROL, spell);
}

function spell(sign) {
  const code = sign.charCodeAt(0);
  if (sign === "\r") return "\\r";
  const digits = code.toString(16);
  return code < 256 ? `\\x${digits.padStart(2, "0")}` : `\\u${digits.padStart(4, "0")}`;
}
