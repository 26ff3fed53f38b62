// values_node.mjs - what schemas and values of clients/node/values.mjs accept, refuse and make (run_node.py).
import assert from "node:assert";
import { check, checkSchema, encode } from "../../clients/node/values.mjs";

const object = (properties, more = {}) => ({ type: "object", properties, ...more });
const fits = [
    [{ type: "integer" }, 7, 7], [{ type: ["string", "null"] }, null, null], [{ enum: [1, { a: 1, b: 2 }] }, { b: 2, a: 1 }, { a: 1, b: 2 }],
    [object({ n: { type: "integer", default: 3 } }), {}, { n: 3 }], [object({ a: object({ n: { default: 1 } }) }), { a: {} }, { a: { n: 1 } }],
    [{ type: "array", items: object({ n: { default: 0 } }), minItems: 1 }, [{}], [{ n: 0 }]], [{ anyOf: [{ type: "string" }, { minimum: 3 }] }, 3, 3],
    [{ $defs: { n: { type: "integer" } }, properties: { a: { $ref: "#/$defs/n" } } }, { a: 1 }, { a: 1 }], [true, "x", "x"], [undefined, 1, 1],
    [{ not: { const: 1 } }, 2, 2], [{ type: "string", minLength: 2, maxLength: 2, pattern: "^\\p{L}+$" }, "\u00e4\u{10400}", "\u00e4\u{10400}"],
];
const misfits = [
    [{ type: "integer" }, 1.5, "expected integer, found 1.5"], [{ type: "object" }, [], "expected object"], [false, 1, "nothing is allowed"],
    [object({}, { required: ["toString"] }), {}, "'toString' is missing"], [object({ a: true }, { additionalProperties: false }), { b: 1 }, "unknown member 'b'; expected a"],
    [object({ a: object({ n: { type: "string" } }) }), { a: { n: 1 } }, "'a.n': expected string"], [{ items: { maximum: 2 } }, [1, 3], "'[1]': expected at most 2"],
    [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 3, "exactly one"], [{ allOf: [{ minimum: 1 }, { exclusiveMaximum: 3 }] }, 3, "less than 3"],
    [{ const: null }, 0, "expected null, found 0"], [{ maxItems: 1 }, [1, 2], "at most 1 items"], [{ additionalProperties: { type: "null" } }, { x: 1 }, "'x': expected null"],
];
for (const [schema, value, made] of fits) {
    checkSchema(schema, "it");
    const before = JSON.stringify(value), found = check(schema, value);
    assert.deepStrictEqual(found, { value: made });
    assert.strictEqual(JSON.stringify(value), before, "what was given is not changed");
}
for (const [schema, value, words] of misfits) assert.ok(check(schema, value).problem?.includes(words), `${JSON.stringify(schema)}: ${check(schema, value).problem}`);
const standard = (validate) => ({ "~standard": { version: 1, vendor: "test", validate } });
assert.deepStrictEqual(check(standard((value) => ({ value: value + 1 })), 1), { value: 2 });
assert.deepStrictEqual(check(standard(() => ({ issues: [{ message: "no", path: ["a", { key: "b" }] }] })), 1), { problem: "'a.b': no" });
assert.throws(() => check(standard(async () => ({})), 1), /answers at once/);

const circle = {};
circle.self = circle;
assert.deepStrictEqual(encode({ at: new Date(0), set: new Set([1]), map: new Map([["k", 2n]]), no: undefined, list: [undefined] }),
    { at: "1970-01-01T00:00:00.000Z", set: [1], map: { k: 2 }, list: [null] });
for (const [value, words] of [[NaN, "found NaN"], [{ a: [Infinity] }, "at 'a[0]'"], [() => 1, "found function"], ["a\ud800", "half of a character"], [2n ** 60n, "1152921504606846976"], [circle, "circle"]]) {
    assert.throws(() => encode(value), new RegExp(words.replace(/[[\]]/g, "\\$&")));
}
assert.strictEqual(JSON.stringify(encode(JSON.parse('{"__proto__":{"a":1}}'))), '{"__proto__":{"a":1}}');
