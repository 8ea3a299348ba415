'use strict';
// Loaded by each Node process of a test command, by NODE_OPTIONS: it asks jest, vitest and mocha for a report in the
// folder that CRA_TEST_REPORTS names, beside what they print, and watches what judges. Nothing here may disturb the process, which is foreign.

const folder = process.env.CRA_TEST_REPORTS;
const MARK = 'CRA_TEST_RUNNER';

const RUNNERS = [
  ['jest', /(?:^|\/)(?:jest|jest-cli)\/bin\/jest\.js$|\/\.bin\/jest$/],
  ['vitest', /(?:^|\/)vitest\/(?:vitest\.mjs|dist\/cli\.js)$|\/\.bin\/vitest$/],
  ['mocha', /(?:^|\/)mocha\/bin\/_?mocha(?:\.c?js)?$|\/\.bin\/_?mocha$/],
];

function asked(runner, given, report) {
  const has = (pattern) => given.some((word) => pattern.test(word));
  if (runner === 'jest') {
    return has(/^--(?:outputFile|json|watch|watchAll|listTests|showConfig|init|version|help)\b/)
      ? null
      : ['--json', `--outputFile=${report}`, ...(has(/^(?:-e|--(?:no-)?expand)\b/) ? [] : ['--expand'])];
  }
  if (runner === 'vitest') {
    if (has(/^--(?:outputFile|watch|version|help)\b|^(?:list|init|bench|dev|watch)$/)) return null;
    const usual = has(/^--reporter\b/) ? [] : ['--reporter=default'];
    const ours = require('path').join(__dirname, 'vitest-reporter.mjs');
    return [...usual, '--reporter=json', `--outputFile.json=${report}`, `--reporter=${ours}`];
  }
  if (has(/^(?:--watch|-w|--version|--help|--list-\w+|--dry-run)\b/)) return null;
  const ours = require('path').join(__dirname, 'mocha-reporter.cjs');
  if (!has(/^(?:--reporter|-R)(?:=|$)/)) return ['--reporter', ours];
  return takesPlaceOfSpec(given, ours) ? [] : null;
}

// Mocha's usual reporter by its name: ours does the same, and takes one reporter alone.
function takesPlaceOfSpec(given, ours) {
  const named = given.findIndex((word) => /^(?:--reporter|-R)(?:=spec)?$/.test(word));
  if (named < 0) return false;
  if (given[named].endsWith('=spec')) process.argv[named + 2] = `--reporter=${ours}`;
  else if (given[named + 1] === 'spec') process.argv[named + 3] = ours;
  else return false;
  return true;
}

function begin() {
  const fs = require('fs');
  if (!require('worker_threads').isMainThread || !process.argv[1]) return;
  let script = process.argv[1];
  try {
    script = fs.realpathSync(script);
  } catch {
    // as it is named
  }
  const found = RUNNERS.find(([, pattern]) => pattern.test(script.replace(/\\/g, '/')));
  if (!found) return;
  const place = `${folder}/${found[0]}-${process.pid}`;
  const words = asked(found[0], process.argv.slice(2), `${place}.json`);
  if (!words) return;
  fs.writeFileSync(`${place}.started`, '');
  process.env[MARK] = place;
  const end = process.argv.indexOf('--');
  process.argv.splice(end < 0 ? process.argv.length : end, 0, ...words);
}

try {
  if (folder && process.env.CRA_TEST_TREE) {
    const inside = process.env[MARK] || process.env.CRA_TEST_INSIDE || process.env.NODE_TEST_CONTEXT
      || process.execArgv.includes('--test');
    require('./trace.cjs')(folder, process.env.CRA_TEST_TREE, !inside);
  }
} catch {
  // the process goes on without a record
}
try {
  if (folder) require('./judges.cjs')(folder);
  if (folder && !process.env[MARK]) begin();
} catch {
  // the runner goes on without a report
}
