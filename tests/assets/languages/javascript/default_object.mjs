/** A component. */
export default {
  name: 'x',
  mounted () {},
  data: () => ({}),
  methods: { open () {} },
}
