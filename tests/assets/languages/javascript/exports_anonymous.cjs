module.exports = () => {}
