// Node's test runner loads this as a reporter: one JSON object a line for each test that has ended.

export default async function* report(events) {
  const names = []
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      names.splice(data.nesting, names.length, data.name)
    }
    if (type !== 'test:pass' && type !== 'test:fail') {
      continue
    }
    const error = data.details?.error?.cause ?? data.details?.error
    const told = {
      file: data.file ?? '',
      names: [...names.slice(0, data.nesting), data.name],
      kind: data.details?.type ?? 'test',
      outcome: data.skip !== undefined || data.todo !== undefined ? 'skipped' : type.slice('test:'.length) + 'ed',
      message: type === 'test:fail' ? String(error?.message ?? error) : '',
      stack: type === 'test:fail' ? String(error?.stack ?? '') : '',
    }
    yield JSON.stringify(told) + '\n'
  }
}
