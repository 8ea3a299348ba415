import "./helper";
export default function () {}
