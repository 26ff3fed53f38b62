// values.mjs - JavaScript values as JSON, and what schemas say of JSON: zod (and what speaks Standard Schema), or JSON Schema.

/** Nested deeper than this is taken for a circle. */
const DEPTH_MAX = 200;

const nameOf = (value) => (value === null ? "null" : typeof value !== "object" ? typeof value : (value.constructor?.name ?? "object"));

function wrong(value, path) {
    const found = typeof value === "string" ? "half of a character" : typeof value === "number" || typeof value === "bigint" ? String(value) : nameOf(value);
    throw new TypeError(`expected what JSON can hold, found ${found}${path ? ` at '${path}'` : ""}`);
}

function encodeObject(value, path, depth) {
    const rows = value instanceof Map ? value.entries() : Object.entries(value);
    const out = {};
    for (const [key, one] of rows) {
        const made = encode(one, path ? `${path}.${String(key)}` : String(key), depth + 1);
        // a member called __proto__ is a member
        if (made !== undefined) Object.defineProperty(out, String(key), { value: made, enumerable: true, writable: true, configurable: true });
    }
    return out;
}

/** JSON of a value: a Date is its ISO text, a Set a list, a Map an object; undefined members are left out.
 *  What JSON cannot hold (NaN, functions, a circle) is a TypeError, which names the place. */
export function encode(value, path = "", depth = 0) {
    if (typeof value === "string") return /\p{Cs}/u.test(value) ? wrong(value, path) : value;
    if (value === null || typeof value === "boolean" || value === undefined) return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : wrong(value, path);
    if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : wrong(value, path);
    if (typeof value !== "object") return wrong(value, path);
    if (depth > DEPTH_MAX) throw new TypeError(`expected what JSON can hold, found a circle, or more than ${DEPTH_MAX} levels`);
    if (typeof value.toJSON === "function") return encode(value.toJSON(), path, depth + 1);
    if (Array.isArray(value) || value instanceof Set) {
        return [...value].map((one, i) => encode(one, `${path}[${i}]`, depth + 1) ?? null);
    }
    return encodeObject(value, path, depth);
}

// ---- Schemas ----

const TYPES = {
    __proto__: null,
    null: (value) => value === null,
    boolean: (value) => typeof value === "boolean",
    integer: (value) => Number.isInteger(value),
    number: (value) => typeof value === "number",
    string: (value) => typeof value === "string",
    array: (value) => Array.isArray(value),
    object: (value) => value !== null && typeof value === "object" && !Array.isArray(value),
};

const isObject = TYPES.object;
const shown = (value) => JSON.stringify(value)?.slice(0, 80);
const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

function sorted(value) {
    if (Array.isArray(value)) return value.map(sorted);
    return isObject(value) ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value;
}

class Misfit extends Error {}

function misfit(path, words) {
    throw new Misfit(path ? `'${path}': ${words}` : words);
}

const at = (path, key) => (path ? `${path}.${key}` : key);
const fitsOne = (schema, value, root) => {
    try {
        fit(schema, value, "", root);
        return true;
    } catch (error) {
        if (error instanceof Misfit) return false;
        throw error;
    }
};

// What is checked of JSON Schema: each is called with (what the keyword says, the value, its path, the schema, the root).
const KEYWORDS = {
    __proto__: null,
    type(says, value, path) {
        const names = [says].flat();
        if (!names.some((name) => TYPES[name]?.(value))) misfit(path, `expected ${names.join(" or ")}, found ${shown(value)}`);
    },
    enum(says, value, path) {
        if (!says.some((one) => same(one, value))) misfit(path, `expected one of ${shown(says)}, found ${shown(value)}`);
    },
    const(says, value, path) {
        if (!same(says, value)) misfit(path, `expected ${shown(says)}, found ${shown(value)}`);
    },
    required(says, value, path) {
        const missing = isObject(value) && says.find((name) => !Object.hasOwn(value, name));
        if (missing) misfit("", `'${at(path, missing)}' is missing`);
    },
    additionalProperties(says, value, path, schema, root) {
        const known = schema.properties ?? {};
        for (const name of isObject(value) ? Object.keys(value) : []) {
            if (Object.hasOwn(known, name) || says === true) continue;
            if (says === false) misfit(path, `unknown member '${name}'; expected ${Object.keys(known).join(", ") || "none"}`);
            fit(says, value[name], at(path, name), root);
        }
    },
    properties(says, value, path, schema, root) {
        for (const [name, one] of isObject(value) ? Object.entries(says) : []) {
            if (Object.hasOwn(value, name)) value[name] = fit(one, value[name], at(path, name), root);
            else if (isObject(one) && "default" in one) value[name] = structuredClone(one.default);
        }
    },
    items(says, value, path, schema, root) {
        if (Array.isArray(value)) value.forEach((one, i) => (value[i] = fit(says, one, `${path}[${i}]`, root)));
    },
    minItems: (says, value, path) => Array.isArray(value) && value.length < says && misfit(path, `expected ${says} items or more, found ${value.length}`),
    maxItems: (says, value, path) => Array.isArray(value) && value.length > says && misfit(path, `expected at most ${says} items, found ${value.length}`),
    minLength: (says, value, path) => TYPES.string(value) && [...value].length < says && misfit(path, `expected ${says} characters or more`),
    maxLength: (says, value, path) => TYPES.string(value) && [...value].length > says && misfit(path, `expected at most ${says} characters`),
    pattern: (says, value, path) => TYPES.string(value) && !new RegExp(says, "u").test(value) && misfit(path, `expected what matches ${says}`),
    minimum: (says, value, path) => TYPES.number(value) && value < says && misfit(path, `expected ${says} or more, found ${value}`),
    maximum: (says, value, path) => TYPES.number(value) && value > says && misfit(path, `expected at most ${says}, found ${value}`),
    exclusiveMinimum: (says, value, path) => TYPES.number(value) && value <= says && misfit(path, `expected more than ${says}, found ${value}`),
    exclusiveMaximum: (says, value, path) => TYPES.number(value) && value >= says && misfit(path, `expected less than ${says}, found ${value}`),
    allOf: (says, value, path, schema, root) => says.forEach((one) => fit(one, value, path, root)),
    anyOf: (says, value, path, schema, root) => says.some((one) => fitsOne(one, value, root)) || misfit(path, `${shown(value)} fits none of anyOf`),
    oneOf: (says, value, path, schema, root) =>
        says.filter((one) => fitsOne(one, value, root)).length === 1 || misfit(path, `${shown(value)} does not fit exactly one of oneOf`),
    not: (says, value, path, schema, root) => fitsOne(says, value, root) && misfit(path, `${shown(value)} is what it must not be`),
    $ref: (says, value, path, schema, root) => fit(pointed(says, root), value, path, root),
};

const WORDS = ["$schema", "$id", "$defs", "$comment", "definitions", "title", "description", "default", "examples", "format"]; // say nothing that is checked

function pointed(reference, root) {
    const steps = reference.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const found = reference.startsWith("#") ? steps.reduce((schema, step) => schema?.[step], root) : undefined;
    if (found === undefined) throw new TypeError(`JSON Schema: expected a $ref to a place in this schema, found '${reference}'`);
    return found;
}

function fit(schema, value, path, root) {
    if (schema === true) return value;
    if (schema === false) misfit(path, "nothing is allowed here");
    for (const [keyword, says] of Object.entries(schema)) KEYWORDS[keyword]?.(says, value, path, schema, root);
    return value;
}

/** A keyword that would be ignored is a mistake of the author, found when the file is loaded. */
function checkJsonSchema(schema, what) {
    if (typeof schema === "boolean") return;
    if (!isObject(schema)) throw new TypeError(`${what}: expected a zod schema or a JSON Schema, found ${nameOf(schema)}`);
    for (const [keyword, says] of Object.entries(schema)) {
        if (!KEYWORDS[keyword] && !WORDS.includes(keyword)) {
            throw new TypeError(`${what}: JSON Schema's '${keyword}' is not checked here; expected ${Object.keys(KEYWORDS).join(", ")}`);
        }
        const unknown = keyword === "type" ? [says].flat().find((name) => !TYPES[name]) : undefined;
        if (unknown !== undefined) throw new TypeError(`${what}: expected a type of JSON Schema (${Object.keys(TYPES).join(", ")}), found '${unknown}'`);
        if (["properties", "$defs", "definitions"].includes(keyword)) Object.values(says).forEach((one) => checkJsonSchema(one, what));
        if (["items", "not", "additionalProperties"].includes(keyword)) checkJsonSchema(says, what);
        if (["allOf", "anyOf", "oneOf"].includes(keyword)) says.forEach((one) => checkJsonSchema(one, what));
    }
}

const isParser = (schema) => typeof schema?.safeParse === "function" || typeof schema?.["~standard"]?.validate === "function";

/** A schema that cannot be used is refused when the file is loaded. */
export function checkSchema(schema, what) {
    if (schema !== undefined && !isParser(schema)) checkJsonSchema(schema, what);
}

function ofIssues(issues) {
    return issues.map((issue) => {
        const path = (issue.path ?? []).map((step) => step?.key ?? step).join(".");
        return path ? `'${path}': ${issue.message}` : issue.message;
    }).join("; ");
}

/** { value } as the schema makes it (with its defaults), or { problem } in words. */
export function check(schema, value) {
    if (schema === undefined) return { value };
    if (typeof schema.safeParse === "function") { // zod
        const found = schema.safeParse(value);
        return found.success ? { value: found.data } : { problem: ofIssues(found.error.issues) };
    }
    if (isParser(schema)) {
        const found = schema["~standard"].validate(value);
        if (typeof found?.then === "function") throw new TypeError("expected a schema that answers at once, found one that gives a promise");
        return found.issues ? { problem: ofIssues(found.issues) } : { value: found.value };
    }
    try {
        return { value: fit(schema, structuredClone(value), "", schema) };
    } catch (error) {
        if (error instanceof Misfit) return { problem: error.message };
        throw error;
    }
}
