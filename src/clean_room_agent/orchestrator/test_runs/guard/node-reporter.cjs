'use strict';
// What Node's own test runner tells of each test, as a report in the folder of the test command.

const fs = require('fs');
const { compared, words } = require('./values.cjs');

module.exports = async function* report(events) {
  const place = `${process.env.CRA_TEST_REPORTS}/node-${process.pid}`;
  fs.writeFileSync(`${place}.started`, '');
  const tests = [];
  const open = new Map(); // by file: the titles of the tests that are under way, outermost first
  for await (const { type, data } of events) {
    const file = (data && data.file) || '';
    if (type === 'test:start') {
      const above = (open.get(file) || []).slice(0, data.nesting);
      open.set(file, [...above, data.name]);
    } else if (type === 'test:pass' || type === 'test:fail') {
      const error = data.details && data.details.error;
      const cause = error && (error.cause || error);
      const above = (open.get(file) || []).slice(0, data.nesting);
      tests.push({
        file,
        name: [...above, data.name],
        suite: Boolean(data.details && data.details.type === 'suite'),
        outcome: data.skip !== undefined && data.skip !== false ? 'skipped'
          : data.todo !== undefined && data.todo !== false ? (type === 'test:pass' ? 'passed' : 'xfailed')
            : type === 'test:pass' ? 'passed' : 'failed',
        message: cause ? words(cause) : '',
        detail: cause ? String(cause.stack || cause) : '',
        ...compared(cause),
      });
    }
  }
  fs.writeFileSync(`${place}.json`, JSON.stringify({ runner: 'node', tests }));
};
