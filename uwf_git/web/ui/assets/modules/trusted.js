// The one Trusted Types policy: HTML and SVG that the server made of foreign text. The server
// escapes it (uwf_git/web); nothing that an agent or a person wrote comes here as it is.

const policy = globalThis.trustedTypes?.createPolicy("uwf", { createHTML: (html) => html });

/** Show server-made *html* in *element*. */
export function setServerHtml(element, html) {
  element.innerHTML = policy ? policy.createHTML(html) : html;
}
