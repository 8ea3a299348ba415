import React from 'react'

/** Shows. */
export const View: React.FC<Props> = ({ name }) => {
  const onClick = () => {}
  return <Button onClick={onClick}>{name as string}</Button>
}
const wrapped = React.memo(function Named() { return <View name="x" /> })
export default View
