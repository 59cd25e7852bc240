// Answers expressions as node does, in strict mode: {"texts", "names": JSON text} a line on
// stdin, a list of answers a line on stdout.
//
// An answer is null, true, false, {"n": number as text}, {"s": text}, {"a": [answer…]},
// {"o": [[key, answer]…]}, {"u": "undefined"}, {"u": "function"} or {"e": class of the error}.
'use strict';

const readline = require('node:readline');

function told(value) {
  switch (typeof value) {
    case 'undefined':
    case 'function':
      return {u: typeof value};
    case 'number':
      return {n: Object.is(value, -0) ? '-0' : String(value)};
    case 'string':
      return {s: value};
    case 'boolean':
      return value;
  }
  if (value === null) return null;
  if (Array.isArray(value)) return {a: Array.from(value, told)};
  if (value === Object.prototype || !Object.prototype.isPrototypeOf(value)) return {u: 'other'};
  return {o: Object.keys(value).map((key) => [key, told(value[key])])};
}

function answer(text, names, values) {
  try {
    return told(new Function(...names, `'use strict'; return (${text}\n);`)(...values));
  } catch (error) {
    return {e: error instanceof Error ? error.name : 'other'};
  }
}

// As a template is filled: JSON.stringify of arrays and objects, String of others.
function filled(text, names, values) {
  try {
    const value = new Function(...names, `'use strict'; return (${text}\n);`)(...values);
    return {s: value && typeof value === 'object' ? JSON.stringify(value) : String(value)};
  } catch (error) {
    return {e: error instanceof Error ? error.name : 'other'};
  }
}

// Broken texts may assign to these as well.
for (const name of ['Object', 'Array', 'String', 'Number', 'Boolean', 'Function', 'JSON']) {
  Object.defineProperty(globalThis, name, {writable: false, configurable: false});
  Object.freeze(globalThis[name]);
  if (globalThis[name].prototype) Object.freeze(globalThis[name].prototype);
}

readline.createInterface({input: process.stdin}).on('line', (line) => {
  const asked = JSON.parse(line);
  const way = asked.filled ? filled : answer;
  // Each has its own copy of the data.
  const answers = JSON.stringify(asked.texts.map((text) => {
    const names = JSON.parse(asked.names);
    return way(text, Object.keys(names), Object.values(names));
  }));
  process.stdout.write(answers.replace(/[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`) + '\n');
});
