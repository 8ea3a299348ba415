#!/usr/bin/env node
/**
 * @file What the package offers.
 */

'use strict'

const helper = require('./lib/helper')
const { join, dirname: folder, sep = '/', ...rest } = require("path"), [first, , third] = helper
import def, { other } from './lib/other.mjs'
import * as all from './all'
import './effects'
export * from './lib'
export { a as b } from './again'
// require('./commented')
const text = "require('./quoted')"
lazy(() => import(/* webpackChunkName: "x" */ `./lazy.js`))
require.resolve('./resolved')
myrequire('./not')

/**
 * Adds.
 *
 * @param {number} a - the first
 */
export function add (a, b) {
  // FIXME: overflows
  const inner = () => a + b
  let local = 1
  return inner()
}

/** @typedef {{ name: string, size: { w: number } }} Box
 *  A box. */
/**
 * @callback Listener
 * @param {string} event
 */

export async function * generate () {}
export const LIMIT = 3
const double = async x =>
  x * 2
let plain, later = function named () {}
/** Of both. */
const left = 1,
  /** Of the right. */
  right = 2
var wrapped = (function () {
  return function hidden () {}
})()
const inParens = (x => x)
const anonymous = class {}
const renamed = class Inner extends Base {
  method () {}
}

/** Counts. */
// eslint-disable-next-line
@register
@other({ by: 'name' })
class Counter extends Base {
  static #total = 0
  step = 1
  'quoted-name' = 2
  onTick = (event) => {
    this.#total += this.step
  }
  static { this.ready = () => {} }

  /** Makes. */
  constructor (step) { super(); this.step = step; this.go = () => {} }
  get total () { return 1 }
  set total (value) {}
  static async * all () {}
  #secret () {}
  [Symbol.iterator] () {}
  'quoted method' () {}
  @bound
  @twice decorated () {}
}

const routes = {
  list () {},
  show: function (id) { return id },
  edit: () => {},
  'with-quotes': () => {},
  get size () { return 1 },
  nested: { deep () {} },
  name: 'x'
}
const made = factory({ setup () {} })
call({ inAnArgument () {} })

Counter.prototype.reset = function reset () {}
later.use = function use (fn) {
  lazy(() => { const local = 1; function nested () {} })
}
handlers['x'].on = () => {}
if (plain) {
  function conditional () {}
  var inBlock = 1
} else {
  var conditional2 = function () {}
}
for (const item of all) { const perItem = () => item }
label: function labelled () {}
exports.VERSION = '1.0'
exports.run = () => {}
exports.one = exports.two = function both () {}
exports.three = exports.four = 4
module.exports.five = class Five { method () {} }
module.exports = { add, double, inline () {} }
export default class extends Counter {
  method () {} // because it must
}
