module.exports = function createHelper (a,
  b) {
  return a // rather than b
}
