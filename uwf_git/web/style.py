"""The colours and fonts of reports and of the pictures in them, light and dark."""

from uwf_git.engine.picture.svg import STYLE_SHEET

_PAGE = """\
:root {
  color-scheme: light dark;
  --ground: #ffffff; --text: #1c2128; --soft: #57606a; --fill: #f6f8fa; --edge: #d0d7de;
  --link: #0969da; --good: #1a7f37; --bad: #cf222e; --wait: #9a6700;
  --added: #dafbe1; --removed: #ffebe9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0d1117; --text: #e6edf3; --soft: #9da7b3; --fill: #161b22; --edge: #3d444d;
    --link: #4493f8; --good: #3fb950; --bad: #f85149; --wait: #d29922;
    --added: #12361f; --removed: #4a1a1c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem;
  background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--edge); }
h3 { font-size: 1.1rem; margin: 0 0 .25rem; }
h4, h5, h6 { font-size: 1rem; margin: 1rem 0 .5rem; }
p, ul, ol, blockquote, dl, pre { margin: .5rem 0; }
ul, ol { padding-left: 1.5rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .wide:focus-visible {
  outline: 2px solid var(--link); outline-offset: 2px;
}
hr { border: 0; border-top: 1px solid var(--edge); }
blockquote { margin-left: 0; padding-left: .8rem; border-left: 3px solid var(--edge);
  color: var(--soft); }
code, pre { font: .85em/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { white-space: pre-wrap; padding: .7rem .8rem; border-radius: 6px; background: var(--fill);
  border: 1px solid var(--edge); }
pre code { font-size: 1em; }
dl { display: grid; gap: .25rem 1rem;
  grid-template-columns: minmax(5rem, max-content) minmax(0, 1fr); }
dt { color: var(--soft); max-width: 14rem; }
dd { margin: 0; min-width: 0; }
dd > details { margin: 0; }
dd > ul, dd > pre, dd > dl, dd > p:first-child { margin-top: 0; }
.text { white-space: pre-wrap; }
.facts, .aside { color: var(--soft); font-size: .9rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0 1rem; list-style: none;
  margin: 0 0 .5rem; padding: 0; }
.badge { display: inline-block; padding: 0 .5rem;
  border: 1px solid currentColor; border-radius: 1rem;
  font-size: .85rem; font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .wait { color: var(--wait); }
.soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; min-width: 100%; }
th, td { padding: .35rem .7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--edge); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
.wide > table { overflow-wrap: normal; }
.wide td { max-width: 24rem; }
.wide td.number, .wide th.number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.wide tr:last-child td { border-bottom: 0; }
#steps td { white-space: nowrap; }
#steps tr:last-child td { border-top: 2px solid var(--edge); }
.step, .attempt, .event { margin: 1rem 0; }
.step { padding: .8rem 1rem; border: 1px solid var(--edge); border-radius: 8px; }
.attempt { padding: .3rem 1rem; border-left: 3px solid var(--bad); }
.event { padding: .1rem 1rem; border-left: 3px solid var(--edge); }
.event p { margin: .2rem 0; }
.problem { padding: .5rem .8rem; border: 1px solid var(--bad); border-radius: 6px; }
.branch { margin: 1rem 0 1rem .25rem; padding-left: 1rem; border-left: 3px solid var(--link); }
.content { margin: .75rem 0; padding: .1rem .8rem; border: 1px solid var(--edge);
  border-radius: 6px; }
.content > pre:only-child { border: 0; padding-left: 0; padding-right: 0; background: none; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
.diff .added { background: var(--added); }
.diff .removed { background: var(--removed); }
.diff .hunk { color: var(--soft); }
@media (max-width: 40rem) {
  body { padding: 1rem .75rem 3rem; font-size: 15px; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .5rem; }
  .step, .attempt, .event { padding-left: .7rem; padding-right: .7rem; }
}
@media print {
  .step, .problem { break-inside: avoid-page; }
}
"""

REPORT_SHEET = _PAGE + STYLE_SHEET
