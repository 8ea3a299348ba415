'use strict';
// Records which functions of the tree run, how often, and their lines, by V8's coverage: under each test where the runner tells
// when one begins and ends (Node's own, mocha), else in the whole process. As `cra_observe.py` does, one JSON object a test, a
// line each; code that a runner compiled is told by the lines of its source, if it holds its own source map. Loaded by
// `preload.cjs`, only for a run that asks for it.

const fs = require('fs');
const path = require('path');
const { fileURLToPath } = require('url');
const { isMainThread, threadId } = require('worker_threads');

const FOREIGN = /(?:^|\/)(?:node_modules|\.git)\//;
const INLINE = /^sourceMappingURL=data:application\/json[^,\n]*;base64,([A-Za-z0-9+/=]+)/;
const BARE = /^(?:[\s(){}[\];,]*|\/\/.*|\/?\*.*)$/;
const MAX_TESTS = 300;
const MAX_FUNCTIONS = 2000; // in one record
const MAX_SOURCE = 2_000_000;
const WRAPPING = 500; // characters around a module
const { appendFileSync, realpathSync } = fs;
const { stringify, parse } = JSON;

let state = null;

function begin(folder, asked) {
  const { Session } = require('inspector');
  const session = new Session();
  session.connect();
  const trees = [...new Set([asked.tree, realpathSync(asked.tree)])].map((name) => `${name}/`);
  const place = `${folder}/node-${process.pid}${isMainThread ? '' : `-${threadId}`}.observed`;
  state = { session, trees, place, tests: new RegExp(asked.tests.replace(/\\Z/g, '$').replace(/\\A/g, '^')), told: [], byTest: false, sources: new Map() };
  post('Profiler.enable');
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  process.on('exit', finish);
  // Runners end their workers in this way, and the default is to end without a word.
  if (!isMainThread || !process.send) return;
  const stop = () => {
    if (process.listenerCount('SIGTERM') === 1) process.exit(143);
  };
  process.on('SIGTERM', stop);
}

function post(method, parameters) {
  let found = null;
  state.session.post(method, parameters, (error, result) => {
    found = error ? null : result;
  });
  return found;
}

function below(url) {
  const file = url.startsWith('file://') ? fileURLToPath(url.replace(/[?#].*$/, '')) : url.replace(/\?.*$/, '');
  if (!path.isAbsolute(file)) return '';
  const found = state.trees.find((name) => file.startsWith(name));
  const inner = found ? file.slice(found.length) : '';
  return FOREIGN.test(inner) ? '' : inner;
}

// What ran since the last time, in files of the tree.
function take() {
  const taken = post('Profiler.takePreciseCoverage');
  return ((taken && taken.result) || [])
    .map((script) => ({ ...script, inner: below(script.url) }))
    .filter(({ inner }) => inner && !state.tests.test(inner.toLowerCase()))
    .map(({ scriptId, inner, functions }) => ({
      id: scriptId,
      inner,
      functions: functions.filter((one) => one.ranges[0].count > 0),
    }))
    .filter(({ functions }) => functions.length);
}

// A test begins: what ran before it is no part of it.
function beginTest() {
  if (!state) return;
  state.byTest = true;
  take();
}

function endTest(name, failed) {
  if (state && state.told.length < MAX_TESTS) state.told.push({ test: name, failed, scripts: take() });
}

function finish() {
  try {
    const scripts = take();
    if (!state.byTest) state.told.push({ test: '', failed: true, scripts });
    state.session.on('Debugger.scriptParsed', ({ params }) => state.sources.set(params.scriptId, null));
    post('Debugger.enable');
    for (const one of state.told) appendFileSync(state.place, `${stringify(record(one))}\n`);
    state.session.disconnect();
  } catch {
    // the process ends without a record
  }
}

function record({ test, failed, scripts }) {
  const functions = scripts.flatMap((script) => told(script)).slice(0, MAX_FUNCTIONS);
  return { test, failed, functions };
}

function told({ id, inner, functions }) {
  const source = sourceOf(id, inner);
  if (!source) return [];
  const sorted = [...functions].sort((a, b) => a.ranges[0].startOffset - b.ranges[0].startOffset);
  return sorted.flatMap((one) => {
    const { startOffset, endOffset, count } = one.ranges[0];
    // A module, or what a runner or a transpiler puts around it.
    const whole = /^(?:Object\.<anonymous>)?$/.test(one.functionName) && endOffset - startOffset > source.length - WRAPPING;
    const first = source.line(startOffset);
    if (whole || !first) return [];
    const lines = linesOf(one, sorted, source);
    const last = source.line(Math.max(startOffset, endOffset - 1)) || first;
    return [[inner, first, one.functionName, count, lines, 10000, 0, 0, [], last]];
  });
}

// The lines of a function, without those of functions inside, whose innermost block ran.
function linesOf(one, all, source) {
  const { startOffset, endOffset } = one.ranges[0];
  const inside = all
    .map(({ ranges }) => ranges[0])
    .filter((range) => range.startOffset > startOffset && range.endOffset <= endOffset);
  const found = new Set();
  for (const [offset, text] of source.rows(startOffset, endOffset)) {
    const at = offset + (text.length - text.trimStart().length);
    if (BARE.test(text.trim()) || at < startOffset || at >= endOffset) continue;
    if (inside.some((range) => range.startOffset < at && at < range.endOffset)) continue;
    const block = one.ranges
      .filter((range) => range.startOffset <= at && at < range.endOffset)
      .sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset))[0];
    const line = block && block.count > 0 ? source.line(at) : 0;
    if (line) found.add(line);
  }
  return [...found].sort((a, b) => a - b);
}

function sourceOf(id, inner) {
  if (state.sources.get(id)) return state.sources.get(id);
  const got = post('Debugger.getScriptSource', { scriptId: id });
  const text = got && got.scriptSource;
  if (!text || text.length > MAX_SOURCE) return null;
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  const row = (offset) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const map = mapOf(text);
  const code = text.lastIndexOf('\n//# sourceMapping');
  const source = {
    length: code < 0 ? text.trimEnd().length : code,
    // 1-based, in the file as it is in the tree; 0 if it has no line there.
    line(offset) {
      const at = row(offset);
      if (!map) return at + 1;
      const entry = map.findEntry(at, offset - starts[at]);
      const isOwn = entry.originalSource && path.basename(entry.originalSource) === path.basename(inner);
      return isOwn ? entry.originalLine + 1 : 0;
    },
    rows(from, to) {
      const found = [];
      for (let at = row(from); at < starts.length && starts[at] < to; at += 1) {
        const next = at + 1 < starts.length ? starts[at + 1] - 1 : text.length;
        found.push([starts[at], text.slice(starts[at], next)]);
      }
      return found;
    },
  };
  state.sources.set(id, source);
  return source;
}

function mapOf(text) {
  const found = INLINE.exec(text.slice(Math.max(0, text.lastIndexOf('sourceMappingURL=data:'))));
  if (!found) return null;
  const { SourceMap } = require('module');
  return new SourceMap(parse(Buffer.from(found[1], 'base64').toString()));
}

module.exports = { begin, beginTest, endTest };
