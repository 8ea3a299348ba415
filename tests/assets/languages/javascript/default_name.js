function named () {}
export default named
