// What the errors of vitest's failing tests hold beside their message, which is abbreviated, as a report in the folder
// of the test command. Each version of vitest calls one of the two methods; neither may disturb it.

import fs from 'node:fs';
import util from 'node:util';

const MAX_VALUE = 20000; // characters; of a longer value, head and tail are kept
const MAX_FAILURES = 500;

function cut(value) {
  const text = typeof value === 'string' ? value : util.inspect(value, { depth: 20, maxArrayLength: 1000 });
  const half = MAX_VALUE / 2;
  return text.length <= MAX_VALUE
    ? text
    : `${text.slice(0, half)}[... ${text.length - 2 * half} characters left out ...]${text.slice(-half)}`;
}

// Of a matcher that compares for something else than equality, what it expects stands in its message alone.
const MATCHER = /\b(?:not )?to (?:not )?(?:include|contain|match|have|be|equal|satisfy)\b/;
// Those of which the error has both values, as if it compared them for equality.
const OPERATED = /\b(not )?to (not )?(?:(match)|include|(?:deep equally )?contain)\b(?! object)(?![^]*\bto (?:be|equal|deeply equal|strictly equal)\b)/;

function words(matcher) {
  return matcher.replace(/^to not /, 'not to ').replace(/, received difference is [^]*$/, '');
}

function operator(error) {
  const found = OPERATED.exec(String(error.message || ''));
  if (!found) return String(error.operator || '');
  return `${found[1] || found[2] ? 'not ' : ''}${found[3] || 'contain'}`;
}

function values(error) {
  const message = String(error.message || '');
  if (!('actual' in error) || /\bthrow|\breject|\bresolve/.test(message)) return { expected: '', actual: '' };
  if (error.showDiff === false) {
    const matcher = MATCHER.exec(message);
    return matcher ? { expected: cut(words(message.slice(matcher.index))), actual: cut(error.actual) } : { expected: '', actual: '' };
  }
  return typeof error.diff === 'string' ? { expected: cut(error.expected), actual: cut(error.actual) } : { expected: '', actual: '' };
}

function failure(file, name, errors) {
  const [error] = errors;
  const found = values(error);
  const compares = found.expected && error.showDiff !== false;
  return {
    file,
    name,
    ...found,
    diff: compares ? cut(error.diff) : '',
    operator: compares ? operator(error) : '',
    stack: cut(error.stackStr || error.stack || ''),
  };
}

function* below(task, titles) {
  if (task.tasks) for (const inner of task.tasks) yield* below(inner, [...titles, inner.name]);
  else if (task.result?.errors?.length) yield [titles.join(' > '), task.result.errors];
}

export default class Reporter {
  onFinished(files = []) {
    this.tell(() => files.flatMap((file) => [...below(file, [])].map(([name, errors]) => failure(file.filepath, name, errors))));
  }

  onTestRunEnd(modules = []) {
    this.tell(() =>
      modules.flatMap((module) =>
        [...module.children.allTests('failed')].map((test) => failure(module.moduleId, test.fullName, test.result().errors)),
      ),
    );
  }

  tell(found) {
    try {
      const place = process.env.CRA_TEST_RUNNER;
      if (place) fs.writeFileSync(`${place}.values`, JSON.stringify({ failures: found().slice(0, MAX_FAILURES) }));
    } catch {
      // the runner's own report has the messages
    }
  }
}
