// Tabs: one panel at a time, the arrow keys go from tab to tab.

import { h } from "./dom.js";

/** Describe *tabs*, pairs of a name and a title; `choose(name)` is called for a press. */
export function describeTabs(label, tabs, chosen, choose) {
  const names = tabs.map(([name]) => name);
  const walk = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = by && names[(names.indexOf(chosen) + by + names.length) % names.length];
    if (next === undefined || next === 0) return;
    event.preventDefault();
    choose(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": label, onkeydown: walk, key: "tabs" },
    tabs.map(([name, title]) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          key: name,
          id: `tab-${name}`,
          "aria-selected": name === chosen ? "true" : "false",
          "aria-controls": "tab-panel",
          tabindex: name === chosen ? "0" : "-1",
          onclick: () => choose(name),
        },
        title,
      ),
    ),
  );
}

/** Describe what the tab *name* shows. */
export function describeTabPanel(name, inside) {
  return h(
    "div",
    {
      class: "body",
      role: "tabpanel",
      id: "tab-panel",
      "aria-labelledby": `tab-${name}`,
      tabindex: "0",
      key: "panel",
    },
    inside,
  );
}
