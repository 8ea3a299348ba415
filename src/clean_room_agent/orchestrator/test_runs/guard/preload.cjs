'use strict';
// Loaded by each Node process of a test command, by NODE_OPTIONS: it asks jest, vitest and mocha for a report in the
// folder that CRA_TEST_REPORTS names, beside what they print, and watches what judges. Nothing here may disturb the process, which is foreign.

const folder = process.env.CRA_TEST_REPORTS;
const MARK = 'CRA_TEST_RUNNER';
const observed = folder && process.env.CRA_TEST_OBSERVED ? JSON.parse(process.env.CRA_TEST_OBSERVED) : null;

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

function beforeRest() {
  const end = process.argv.indexOf('--');
  return end < 0 ? process.argv.length : end;
}

// The words that limit a runner that is observed to some tests, where its own command line does not.
function limited(runner, given) {
  const { titles, files } = observed;
  const has = (pattern) => given.some((word) => pattern.test(word));
  if (!titles.length) return;
  const pattern = `(?:${titles.map((title) => title.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|')})$`;
  if (runner === 'mocha') {
    const hooks = require('path').join(__dirname, 'mocha-hooks.cjs');
    process.argv.splice(2, 0, '--require', hooks, ...(has(/^(?:-[gf]|--(?:grep|fgrep))(?:=|$)/) ? [] : ['--grep', pattern]));
    return;
  }
  if (!has(/^(?:-t|--testNamePattern)(?:=|$)/)) process.argv.splice(beforeRest(), 0, '-t', pattern);
  process.argv.splice(given[0] === 'run' || given[0] === 'watch' ? 3 : 2, 0, ...files);
}

// Node's own runner tells of its tests in the process of their file.
function observeTests({ beginTest, endTest }) {
  const { beforeEach, afterEach } = require('node:test');
  beforeEach(() => beginTest());
  afterEach((test) => endTest(test.fullName || test.name, test.passed === false));
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
  if (observed) limited(found[0], process.argv.slice(2));
  process.argv.splice(beforeRest(), 0, ...words);
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
  if (observed) {
    const coverage = require('./coverage.cjs');
    coverage.begin(folder, observed);
    if (process.env.NODE_TEST_CONTEXT) observeTests(coverage);
  }
} catch {
  // likewise
}
try {
  if (folder) require('./judges.cjs')(folder);
  if (folder && !process.env[MARK]) begin();
} catch {
  // the runner goes on without a report
}
