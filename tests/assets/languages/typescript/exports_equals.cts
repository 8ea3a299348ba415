export = {
  list() { },
}
