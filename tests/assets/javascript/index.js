#!/usr/bin/env node
/**
 * @file What the package offers.
 */

'use strict'

const helper = require('./lib/helper')
import def, { other } from './lib/other.mjs'
export * from './lib'

/**
 * Adds.
 *
 * @param {number} a - the first
 * @param {number} [b] the second
 * @returns {number} their sum
 * @throws {TypeError} when not numbers
 */
export function add (a, b) {
  // FIXME: overflows
  const inner = () => a + b
  return inner()
}

export const LIMIT = 3
const double = async x =>
  x * 2
let plain, later = function named () {}

/** Counts. */
class Counter extends Base {
  static #total = 0
  step = 1
  onTick = (event) => {
    this.#total += this.step
  }

  constructor (step) { super(); this.step = step }
  get total () { return 1 }
  static async * all () {}
}

const routes = {
  list () {},
  show: function (id) { return id },
  edit: () => {},
  name: 'x'
}

Counter.prototype.reset = function reset () {}
later.use = function use (fn) {
  lazy(() => { const local = 1; function nested () {} })
  return import('./lib/helper.js')
}
exports.VERSION = '1.0'
exports.run = () => {}
module.exports = { add, double }
export default class extends Counter {}
