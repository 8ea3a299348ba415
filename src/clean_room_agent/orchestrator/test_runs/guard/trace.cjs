'use strict';
// Records, at the baseline, the files below the tree that Node's processes read, which code reads them, and the script of a
// process that stands between the test command and the runner. One JSON list a line, as `cra_trace.py` writes them.

const fs = require('fs');
const path = require('path');
const { fileURLToPath } = require('url');

const MAX_READS = 1000;
const MAX_CHAIN = 6;
const SOURCE = /\.(?:[cm]?[jt]sx?|node|map)$/;
const FOREIGN = /(?:^|\/)(?:node_modules|\.git)\//;
const PLACE = /(?:\(|at )(?:async )?((?:file:\/\/)?\/[^():]+):\d+:\d+/;
const { appendFileSync, realpathSync } = fs;
const { stringify } = JSON;

module.exports = function trace(folder, tree, script) {
  const trees = [...new Set([tree, realpathSync(tree)])].map((name) => `${name}/`);
  const place = `${folder}/node-${process.pid}.trace`;
  const seen = new Set();

  function below(file) {
    const full = path.resolve(file.startsWith('file://') ? fileURLToPath(file) : file);
    const found = trees.find((name) => full.startsWith(name));
    const inner = found ? full.slice(found.length) : '';
    return FOREIGN.test(inner) ? '' : inner;
  }

  function chain() {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 50;
    const lines = String(new Error().stack).split('\n');
    Error.stackTraceLimit = limit;
    const files = lines.map((line) => PLACE.exec(line)).filter(Boolean).map((found) => below(found[1]));
    return [...new Set(files.filter(Boolean))].slice(0, MAX_CHAIN);
  }

  function note(file) {
    try {
      const name = file instanceof URL ? fileURLToPath(file) : file;
      if (typeof name !== 'string' || SOURCE.test(name) || seen.size >= MAX_READS) return;
      const inner = below(name);
      if (!inner) return;
      const callers = chain();
      if (!callers.length) return;
      const line = `${stringify(['read', inner, ...callers])}\n`;
      if (seen.has(line)) return;
      seen.add(line);
      appendFileSync(place, line);
    } catch {
      // the process reads on without a record
    }
  }

  for (const [holder, names] of [[fs, ['readFileSync', 'readFile', 'createReadStream', 'openSync', 'open']], [fs.promises, ['readFile', 'open']]]) {
    for (const name of names) {
      const read = holder[name];
      holder[name] = function (file, ...rest) {
        note(file);
        return Reflect.apply(read, this, [file, ...rest]);
      };
      Object.defineProperties(holder[name], Object.getOwnPropertyDescriptors(read));
    }
  }
  require('module').syncBuiltinESMExports();
  const main = script && process.argv[1] ? below(process.argv[1]) : '';
  if (main) appendFileSync(place, `${stringify(['script', main])}\n`);
};
