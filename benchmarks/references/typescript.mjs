// What the TypeScript compiler's language service says each name of some files stands for:
//
//     node typescript.mjs FOLDER_WITH_TYPESCRIPT REPOSITORY [TSCONFIG] < files, separated by NUL
//
// prints one line of JSON a file: `[path, [[line, name, is_attribute, [[path, line, name, kind], ...]], ...]]`. Of one
// expression only the first occurrence in a function or a class is asked for. The files are one program, with the options
// and the declaration files of the given configuration; the packages of the workspace are linked into `node_modules` first. Names that declare are
// not asked for, nor keys of object literals and names of JSX attributes.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

import { link } from '../typescript_packages.mjs'

const [, , modules, given, config = 'tsconfig.json'] = process.argv
const ts = createRequire(path.join(path.resolve(modules), 'x.js'))('typescript')
const top = fs.realpathSync(given)
const tracked = fs.readFileSync(0, 'utf8').split('\0')
const files = tracked.filter(file => /\.([cm]?[jt]s|[jt]sx)$/.test(file))
const inside = new Map(files.map(file => [path.join(top, file), file]))
link(top, tracked.filter(file => path.basename(file) === 'package.json'))
const { options, included } = configured()
const service = ts.createLanguageService(host(options))
const program = service.getProgram()

for (const [whole, file] of inside) {
  const source = program.getSourceFile(whole)
  process.stdout.write(JSON.stringify([file, source ? answers(source) : []]) + '\n')
}

function configured() {
  const file = path.join(top, config)
  const exists = fs.existsSync(file)
  const read = exists ? ts.readConfigFile(file, ts.sys.readFile).config : {}
  const parsed = ts.parseJsonConfigFileContent(read, ts.sys, top, undefined, file)
  const own = { allowJs: true, checkJs: false, types: [], noEmit: true, composite: false, rootDir: undefined }
  const options = { jsx: ts.JsxEmit.Preserve, ...parsed.options, ...own }
  if (!options.moduleResolution) {
    Object.assign(options, { moduleResolution: ts.ModuleResolutionKind.Bundler, module: ts.ModuleKind.ESNext })
  }
  return { options, included: new Set(exists ? parsed.fileNames : inside.keys()) }
}

function host(settings) {
  return {
    getScriptFileNames: () => [...inside.keys()].filter(isRoot),
    getScriptVersion: () => '1',
    getScriptSnapshot: name =>
      fs.existsSync(name) ? ts.ScriptSnapshot.fromString(fs.readFileSync(name, 'utf8')) : undefined,
    getCurrentDirectory: () => top,
    getCompilationSettings: () => settings,
    getDefaultLibFileName: one => ts.getDefaultLibFilePath(one),
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    realpath: ts.sys.realpath,
  }
}

// A declaration file that the configuration leaves out may declare anew what a package of the workspace is.
function isRoot(file) {
  return included.has(file) || !/\.d\.[cm]?ts$/.test(file)
}

function answers(source) {
  const said = []
  const seen = new Set()
  const visit = (node, scope) => {
    if ((ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) && isUse(node)) {
      const key = `${scope}:${expression(node, source)}`
      if (!seen.has(key)) {
        seen.add(key)
        said.push(answer(node, source))
      }
    }
    const inner = ts.isFunctionLike(node) || ts.isClassLike(node) ? node.pos : scope
    const next = node.parent === source ? node.pos : inner
    ts.forEachChild(node, child => visit(child, next))
  }
  visit(source, 0)
  return said
}

function answer(node, source) {
  const start = node.getStart(source)
  const line = source.getLineAndCharacterOfPosition(start).line + 1
  const meant = ts.isShorthandPropertyAssignment(node.parent) ? declarationsOf(valueOf(node.parent)) : undefined
  const found = meant ?? service.getDefinitionAtPosition(source.fileName, start)?.flatMap(targets) ?? []
  return [line, node.text, isAttribute(node), found]
}

// An import that leads nowhere is no answer; a key of an object that is another name for something is that.
function targets(found) {
  const file = inside.get(found.fileName)
  if (file === undefined) return [['', 0, found.name, 'module']]
  const source = program.getSourceFile(found.fileName)
  const name = ts.getTokenAtPosition(source, found.textSpan.start)
  const declaration = name.parent
  if (isImport(declaration)) return []
  if (ts.isFunctionLike(declaration) && !declaration.name) return [named(declaration.parent)]
  return [target(name, source), ...declarationsOf(valueOf(declaration))]
}

function declarationsOf(symbol) {
  return (symbol?.declarations ?? []).filter(one => !isImport(one)).map(named)
}

function named(declaration) {
  const name = ts.getNameOfDeclaration(declaration) ?? declaration
  return target(name, declaration.getSourceFile())
}

function target(name, source) {
  const line = source.getLineAndCharacterOfPosition(name.getStart(source)).line + 1
  const text = name.getText(source).replace(/^['"`]|['"`]$/g, '')
  return [inside.get(source.fileName) ?? '', line, text, kindOf(name.parent ?? name)]
}

function valueOf(declaration) {
  const checker = program.getTypeChecker()
  const other = ts.isPropertyAssignment(declaration) ? declaration.initializer : undefined
  const symbol = ts.isShorthandPropertyAssignment(declaration)
    ? checker.getShorthandAssignmentValueSymbol(declaration)
    : other && ts.isIdentifier(other) && checker.getSymbolAtLocation(other)
  return symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function isImport(declaration) {
  return (
    ts.isImportSpecifier(declaration) ||
    ts.isImportClause(declaration) ||
    ts.isNamespaceImport(declaration) ||
    ts.isImportEqualsDeclaration(declaration)
  )
}

// As the index has it: a variable of a module, a namespace or a class is a symbol ("statement"), one of a function is none
// ("param"), and what is set to a function is one.
function kindOf(declaration) {
  if (ts.isFunctionLike(declaration) || ts.isInterfaceDeclaration(declaration)) return 'function'
  if (ts.isClassLike(declaration) || ts.isEnumDeclaration(declaration)) return 'class'
  if (ts.isTypeAliasDeclaration(declaration)) return 'statement'
  if (ts.isPropertyDeclaration(declaration) || ts.isModuleDeclaration(declaration)) {
    return isCallable(declaration.initializer) ? 'function' : 'statement'
  }
  if (ts.isVariableDeclaration(declaration) || ts.isPropertyAssignment(declaration)) {
    if (isCallable(declaration.initializer)) return 'function'
    return ts.isVariableDeclaration(declaration) && isOfModule(declaration) ? 'statement' : 'param'
  }
  if (ts.isBindingElement(declaration)) return isOfModule(declaration) ? 'statement' : 'param'
  const assigned = ts.findAncestor(declaration, ts.isBinaryExpression)
  if (assigned && ts.isPropertyAccessExpression(declaration)) {
    return isCallable(assigned.right) ? 'function' : 'statement'
  }
  return 'param'
}

function isCallable(value) {
  while (value && (ts.isParenthesizedExpression(value) || ts.isAsExpression(value) || ts.isSatisfiesExpression(value))) {
    value = value.expression
  }
  return value !== undefined && (ts.isFunctionLike(value) || ts.isClassLike(value))
}

function isOfModule(node) {
  const around = ts.findAncestor(node, one => ts.isFunctionLike(one) || ts.isBlock(one))
  return around === undefined
}

function isAttribute(node) {
  return (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) || ts.isQualifiedName(node.parent)
}

function expression(node, source) {
  return isAttribute(node) ? node.parent.getText(source).slice(0, 300) : node.text
}

function isUse(node) {
  const { parent } = node
  if (ts.isShorthandPropertyAssignment(parent)) return parent.name === node
  if (ts.isBindingElement(parent)) return parent.initializer === node
  if (ts.isPropertyAccessExpression(parent) || ts.isTypePredicateNode(parent)) return true
  const isName = parent.name === node || parent.label === node || parent.propertyName === node
  return !isName && !ts.isImportClause(parent) && !ts.isExportSpecifier(parent) && !ts.isMetaProperty(parent)
}
