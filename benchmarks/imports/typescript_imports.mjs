// What the TypeScript compiler finds for every import of the files that are named on standard input:
//
//     node typescript_imports.mjs FOLDER_WITH_TYPESCRIPT REPOSITORY
//
// prints `[file, specifier, what was found]` as one line of JSON each. The imports are those of `ts.preProcessFile`.
// A file's options are those of the nearest tsconfig.json, or project that one refers to, that the file belongs to;
// else of the nearest; else a bundler's. The packages of the workspace are linked into `node_modules` first, as a
// package manager does.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

import { link } from '../typescript_packages.mjs'

const [, , modules, given] = process.argv
const ts = createRequire(path.join(path.resolve(modules), 'x.js'))('typescript')
const top = fs.realpathSync(given)
const files = fs.readFileSync(0, 'utf8').split('\0')
const usual = {
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  module: ts.ModuleKind.ESNext,
  allowJs: true,
  resolveJsonModule: true,
}
link(top, files.filter(file => path.basename(file) === 'package.json'))
const configs = new Map()
const caches = new Map()

for (const file of files.filter(file => /\.([cm]?[jt]s|[jt]sx)$/.test(file))) {
  const whole = path.join(top, file)
  const info = ts.preProcessFile(fs.readFileSync(whole, 'utf8'), true, true)
  const names = [...new Set(info.importedFiles.map(one => one.fileName))]
  const { options, cache } = optionsOf(whole)
  for (const name of names) {
    const found = ts.resolveModuleName(name, whole, options, ts.sys, cache).resolvedModule
    const inside = found ? path.relative(top, found.resolvedFileName) : ''
    const ours = inside && !inside.startsWith('..') && !inside.split('/').includes('node_modules')
    process.stdout.write(JSON.stringify([file, name, ours ? inside : '']) + '\n')
  }
}

function optionsOf(file) {
  const near = []
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const config = path.join(folder, 'tsconfig.json')
    if (fs.existsSync(config)) near.push(...withReferences(config))
    if (folder === top) break
  }
  const config = near.find(one => one.files.has(file)) ?? near[0]
  const key = config?.path ?? ''
  if (!caches.has(key)) {
    const options = config?.options.moduleResolution ? config.options : { ...config?.options, ...usual }
    caches.set(key, { options, cache: ts.createModuleResolutionCache(top, name => name, options) })
  }
  return caches.get(key)
}

function withReferences(first) {
  const waiting = [first]
  const found = []
  while (waiting.length) {
    const file = waiting.shift()
    if (found.some(one => one.path === file) || !fs.existsSync(file)) continue
    const config = parse(file)
    found.push(config)
    waiting.push(...config.references)
  }
  return found
}

function parse(file) {
  if (!configs.has(file)) {
    const { config } = ts.readConfigFile(file, ts.sys.readFile)
    const parsed = ts.parseJsonConfigFileContent(config ?? {}, ts.sys, path.dirname(file), undefined, file)
    const references = (parsed.projectReferences ?? []).map(one => ts.resolveProjectReferencePath(one))
    configs.set(file, { path: file, options: parsed.options, files: new Set(parsed.fileNames), references })
  }
  return configs.get(file)
}
