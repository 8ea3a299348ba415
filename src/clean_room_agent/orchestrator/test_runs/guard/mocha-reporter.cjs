'use strict';
// Mocha's usual reporter, and a report in the folder of the test command beside it.

const fs = require('fs');
const path = require('path');
const { compared, words } = require('./values.cjs');

function mocha() {
  let folder = path.dirname(fs.realpathSync(process.argv[1]));
  while (!fs.existsSync(path.join(folder, 'package.json'))) folder = path.dirname(folder);
  return require(folder);
}

const Spec = mocha().reporters.spec;

function titles(test) {
  return typeof test.titlePath === 'function' ? test.titlePath() : [test.fullTitle()];
}

function entry(test, outcome, error) {
  return {
    file: test.file || '',
    name: titles(test),
    outcome,
    message: error ? words(error) : '',
    detail: error ? String(error.stack || error) : '',
    ...compared(error),
  };
}

class Reporter extends Spec {
  constructor(runner, options) {
    super(runner, options);
    const tests = [];
    runner.on('pass', (test) => tests.push(entry(test, 'passed')));
    runner.on('pending', (test) => tests.push(entry(test, 'skipped')));
    // Before the usual reporter turns both values into text.
    runner.prependListener('fail', (test, error) => tests.push(entry(test, 'failed', error)));
    runner.on('end', () => {
      const place = process.env.CRA_TEST_RUNNER;
      if (place) fs.writeFileSync(`${place}.json`, JSON.stringify({ runner: 'mocha', tests }));
    });
  }
}

module.exports = Reporter;
