/// <reference path="globals.d.ts" />
/**
 * Models.
 *
 * @module
 */
import type { Store } from './store'
import type Whole from './whole'
import type from './named-type'
import { type A, type B } from './only-types'
import { type C, d } from './mixed'
import legacy = require('./legacy')
export type { E } from './exported-types'
export * as ns from './namespace'
type Imported = import('./type-import').Foo
let typed: typeof import('./typeof-import')
const loaded = import('./dynamic')

/** A user. */
export interface User<T> extends Named {
  name: string
  greet(other: User<T>): void
  greet(): void
  (call: string): void
  new (made: string): User<T>
  [index: string]: unknown
  callback: (x: number) => void
  readonly get: () => string
}

type Id = string | number
export type Wide = {
  a: string
  method(): void
}
declare const enum Color { Red, Green }
export const enum Size { S }
enum Plain { A }
export const BUILD: string = 'x', OTHER = 1
declare function external(id: Id): void
export declare function exported(id: Id): void
declare let ambient: string
declare class Declared {
  method(): void
  static field: string
}

export function parse(text: string): Id
export function parse(text: number): Id
export function parse(text: unknown): Id {
  return text as Id
}
export default function (this: void): asserts this is Id {}

@sealed
@named('x')
export abstract class Repo<T> implements Store {
  // Kept, because tests replace it.
  @observed() private readonly cache = new Map<string, T>()
  declare later: string
  accessor size = 1

  constructor(private url: string) { }
  find(id: Id): T | undefined
  find(id: Id, strict: true): T
  find(id: Id): T | undefined { return undefined }
  protected abstract save(item: T): Promise<void>
  /** Handles. */
  @bound
  // eslint-disable-next-line no-console -- needed for the demo
  handler = async (event: Event): Promise<void> => { }
  get value(): string { return '' }
  set value(v: string) { }
  static override async *all<T>(): AsyncGenerator<T> { }
  @a @b() both() { }
  #hidden = <T,>(x: T) => x
  static { init() }
}

export const cast = ((a: number) => a) as unknown as Caster
const satisfied = ((a) => a) satisfies Caster
export const component = defineComponent({
  setup() { return () => null },
}) as any
export const record = {
  method<T>(x: T): T { return x },
  arrow: (x: number) => x,
} as const

namespace Outer {
  export const inside = 1
  export function helper() { const local = 1 }
  export interface Shape { area(): number }
  export namespace Inner.Deep {
    export type T = 1
  }
}
export declare namespace Exported { let x: string; function f(): void }
declare module 'pkg/sub' {
  export function imported(): void
  const value: number
  export default value
}
declare global {
  interface Window { extra: string; open(): void }
  var __DEV__: boolean
}
function outer() {
  type Local = string
  interface LocalShape { a(): void }
  const arrow = <T,>(x: T) => x, second = () => 1
  class LocalClass { method() { } }
  return { returned() { } }
}
