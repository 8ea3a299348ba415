import type { Store } from './store'
import { load } from "./store.js";
import legacy = require('./legacy')
export type { Store } from './store'

/** A user. */
export interface User<T> extends Named {
  id: number
  greet(other: User<T>): string
}

export type Id = string | number
type Wide = {
  a: string
}
export enum Color { Red, Green }
declare const BUILD: string
declare function external(a: string): void

export function parse(text: string): number
export function parse(text: number): number
export function parse(text: any): number {
  return Number(text)
}

@sealed
export abstract class Repo<T> implements Store {
  // Kept, because tests replace it.
  private readonly cache = new Map<string, T>()

  constructor(private db: string) { super() }

  @memo()
  find(id: Id): T | undefined { return undefined }
  abstract save(item: T): Promise<void>
  handler = async (e: Event): Promise<void> => {}
}

namespace Inner {
  export const hidden = () => 1
}

export default interface Props { a: string }
