module.exports = function createHelper (
  options
) {
}
