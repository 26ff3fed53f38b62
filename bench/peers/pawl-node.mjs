// pawl-node.mjs - the side of durable code in Node (ten.mjs).
import "./pawl_code.mjs";
