export default async (props) => <div>{props.items.map(item => <b key={item} />)}</div>
