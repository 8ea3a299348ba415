import { Repo } from './model'

/** Shows. */
export const View = ({ id }: { id: number }): JSX.Element => {
  return <p>{id as number}</p>
}
export const wrapped = memo(function Wrapped() { return <View id={1} /> })
