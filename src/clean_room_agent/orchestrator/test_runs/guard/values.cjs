'use strict';
// What a failing test expected and got, in words: for the reporters of mocha, vitest and Node's own runner.

const util = require('util');

const MAX_VALUE = 20000; // characters; of a longer value, head and tail are kept
const MAX_FAILURES = 500; // further ones have the runner's own words alone
let told = 0;

function cut(text) {
  const half = MAX_VALUE / 2;
  return text.length <= MAX_VALUE
    ? text
    : `${text.slice(0, half)}[... ${text.length - 2 * half} characters left out ...]${text.slice(-half)}`;
}

function shown(value) {
  if (typeof value === 'string' && value.length > MAX_VALUE) return cut(JSON.stringify(value));
  const options = { depth: 20, maxArrayLength: 1000, maxStringLength: MAX_VALUE, breakLength: 100 };
  return cut(util.inspect(value, options));
}

// supertest leaves on the error what it parsed of a body, which is {} for anything but JSON; the text stands in its message.
const BODY = [/^expected [\s\S]* response body, got ([\s\S]+)$/, /^expected body ([\s\S]+) to match \/[\s\S]*$/];

function answered(error) {
  const said = BODY.map((pattern) => pattern.exec(String(error.message))).find(Boolean);
  return said ? cut(said[1]) : shown(error.actual);
}

// Assertion libraries leave both values on the error; what says that a call throws, or is no comparison, has none.
function compared(error) {
  const nothing = { expected: '', actual: '', operator: '' };
  try {
    if (told >= MAX_FAILURES || !error || typeof error !== 'object' || error.showDiff === false) return nothing;
    if (!('expected' in error && 'actual' in error) || /throw|reject|fail/i.test(String(error.operator || ''))) return nothing;
    told += 1;
    const operator = String(error.operator || '');
    return { expected: shown(error.expected), actual: answered(error), operator };
  } catch {
    return nothing;
  }
}

// An error's message after its kind, which assertion libraries and engines name.
function words(error) {
  if (!error || typeof error !== 'object') return String(error);
  const message = String(error.message || error);
  return !error.name || error.name === 'Error' || message.startsWith(error.name) ? message : `${error.name}: ${message}`;
}

module.exports = { compared, words };
