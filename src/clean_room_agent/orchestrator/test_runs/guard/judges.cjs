'use strict';
// Which of Node's own assertions and tests are others at a process's end than they were at its beginning. Loaded before the
// code under test; what it needs at the end is taken now.

const fs = require('fs');
const { isMainThread, threadId } = require('worker_threads');

const write = fs.writeFileSync;
const { getOwnPropertyDescriptors, entries } = Object;
const { stringify } = JSON;
const { is } = Object;

const partsOf = (holder) => entries(getOwnPropertyDescriptors(holder))
  .filter(([, part]) => typeof part.value === 'function');

function watched() {
  const assert = require('assert');
  const holders = [['assert', assert], ['assert.strict', assert.strict], ['AssertionError', assert.AssertionError.prototype]];
  if (process.env.NODE_TEST_CONTEXT) holders.push(['test', require('node:test')]);
  return holders.map(([name, holder]) => ({ name, holder, parts: partsOf(holder) }));
}

module.exports = function watch(folder) {
  const before = watched();
  process.on('exit', () => {
    const found = [];
    for (const { name, holder, parts } of before) {
      const now = getOwnPropertyDescriptors(holder);
      for (const [key, part] of parts) {
        if (!now[key] || !is(now[key].value, part.value)) found.push([`node:${name}.${key}`, 'another function']);
      }
    }
    const place = `${folder}/node-${process.pid}${isMainThread ? '' : `-${threadId}`}.replaced`;
    if (found.length) write(place, stringify(found));
  });
};
