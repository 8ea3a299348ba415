// What the TypeScript compiler's parser names in the files whose paths stand on standard input, one JSON array each.
//     node typescript.mjs FOLDER_WITH_NODE_MODULES < paths
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'

const require = createRequire(join(resolve(process.argv[2]), 'package.json'))
const ts = require('typescript')
const K = ts.SyntaxKind

const DECLARED = new Map([
  [K.FunctionDeclaration, 'function'],
  [K.ClassDeclaration, 'class'],
  [K.InterfaceDeclaration, 'interface'],
  [K.TypeAliasDeclaration, 'type_alias'],
  [K.EnumDeclaration, 'enum'],
  [K.MethodDeclaration, 'method'],
  [K.MethodSignature, 'method'],
  [K.GetAccessor, 'method'],
  [K.SetAccessor, 'method'],
  [K.Constructor, 'method'],
])
const VALUED = new Map([
  [K.VariableDeclaration, 'function'],
  [K.PropertyDeclaration, 'method'],
])

function valueKind(node, kind) {
  const value = node.initializer && ts.skipOuterExpressions(node.initializer)
  if (!value) return undefined
  if (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) return kind
  return ts.isClassExpression(value) && kind === 'function' ? 'class' : undefined
}

// The statement, where a variable has one for itself.
function whole(node) {
  const list = node.parent
  if (!ts.isVariableDeclaration(node) || !ts.isVariableDeclarationList(list) || list.declarations.length > 1) return node
  return ts.isVariableStatement(list.parent) ? list.parent : list
}

function nameOf(node, file) {
  if (node.kind === K.Constructor) return 'constructor'
  if (!node.name) return 'default'
  return ts.isStringLiteralLike(node.name) ? node.name.text : node.name.getText(file)
}

function isInFunction(node) {
  for (let around = node.parent; around; around = around.parent) {
    if (ts.isFunctionLike(around)) return true
  }
  return false
}

function place(node) {
  if (ts.isTypeLiteralNode(node.parent)) return 'type literal'
  return isInFunction(node) ? 'function' : ''
}

function read(path) {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
  const rows = []
  const line = position => file.getLineAndCharacterOfPosition(position).line + 1
  const visit = node => {
    let kind = DECLARED.get(node.kind)
    if (VALUED.has(node.kind)) kind = valueKind(node, VALUED.get(node.kind))
    const known = kind && !(node.name && ts.isBindingPattern(node.name))
    if (known) {
      const outer = whole(node)
      rows.push([nameOf(node, file), kind, line(outer.getStart(file)), line(outer.getEnd()), place(node)])
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return { path, broken: file.parseDiagnostics.length > 0, rows }
}

for (const path of readFileSync(0, 'utf8').split('\0').filter(Boolean)) {
  process.stdout.write(JSON.stringify(read(path)) + '\n')
}
