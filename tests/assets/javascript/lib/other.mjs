export default { mounted () {}, data: () => ({}) }
