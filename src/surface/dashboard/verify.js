// verify.js - checks an instance's history here, in the reader's own browser, from the raw records
// that instance.export gives: the chain of hashes, that each entry is a transition which the
// definition declares for the state before it, and that what a page shows is what was recorded.
// docs/format.md ("Hashes", "Compiled definitions", "Export files") is all that it is written from.

/**
 * @typedef {{commitment: string, salt?: string, text?: string, hex?: string}} Value
 * @typedef {{id: string, seq: number, what: number, at: number, fired: number, flags?: number,
 *   step?: number, ord?: number, attempt?: number, body?: string, body_hex?: string, key?: string,
 *   actor?: Value, payload?: Value, reason?: Value, hash: string}} Record
 * @typedef {{seq: number, isEntry: boolean, ok: boolean, what: string, hash: string}} Mark
 */

const CREATE = -1;
/** Of flags: a part of the record's body was erased, so its hash cannot be made again. */
const ERASED = 2,
  GUARD = 1;
const text = new TextEncoder();

export const canVerify = () => typeof crypto !== "undefined" && !!crypto.subtle;

/** @param {string} hex */
const unhex = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
/** @param {Uint8Array} bytes */
const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Unsigned LEB128, for numbers up to 2^53. @param {number} n */
function varint(n) {
  const out = [];
  do {
    const low = n % 128;
    n = Math.floor(n / 128);
    out.push(n > 0 ? low | 128 : low);
  } while (n > 0);
  return Uint8Array.from(out);
}

/** @param {number} n */
const zigzag = (n) => varint(n >= 0 ? n * 2 : -n * 2 - 1);

/** @param {Uint8Array[]} parts */
function join(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** With its length in front. @param {Uint8Array} bytes */
const lp = (bytes) => join([varint(bytes.length), bytes]);
/** @param {Uint8Array | null} hash */
const opt = (hash) => (hash ? join([Uint8Array.of(1), hash]) : Uint8Array.of(0));

/** @param {Uint8Array} bytes */
const sha256 = async (bytes) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {any} */ (bytes)));

/** @param {string | null | undefined} plain @param {string | null | undefined} hex */
const bytesOf = (plain, hex) =>
  typeof hex === "string" ? unhex(hex) : text.encode(plain ?? "");

/**
 * What a hash covers of a value: its commitment, made again unless the value was erased.
 * @param {Value | null | undefined} value
 */
async function commitment(value) {
  if (!value) return null;
  if (value.salt === undefined) return unhex(value.commitment);
  return sha256(join([unhex(value.salt), bytesOf(value.text, value.hex)]));
}

/** A create record has no body of its own: it covers the instance's row. @param {any} row */
async function createBody(row) {
  return join([unhex(row.source), unhex(row.compiled), lp(text.encode(row.name ?? "")),
    varint(row.version ?? 0), opt(await commitment(row.subject)),
    opt(await commitment(row.input)), opt(await commitment(row.metadata)),
    lp(bytesOf(row.correlation, row.correlation_hex)), lp(bytesOf(row.labels, row.labels_hex)),
    lp(text.encode(row.parent ?? "")), varint(row.test ? 1 : 0)]);
}

/** @param {Record} record @param {any} row @param {Uint8Array} previous */
async function hashOf(record, row, previous) {
  const body =
    record.what === CREATE ? await createBody(row) : bytesOf(record.body, record.body_hex);
  return sha256(
    join([text.encode("pawl.rec.1"), previous, text.encode(row.id), varint(record.seq),
      zigzag(record.what), zigzag(record.at), zigzag(record.fired), varint(record.step ?? 0),
      varint(record.ord ?? 0), varint(record.attempt ?? 0), varint(record.flags ?? 0),
      opt(await commitment(record.actor)), opt(await commitment(record.payload)),
      opt(await commitment(record.reason)), lp(body),
      lp(record.key ? unhex(record.key) : new Uint8Array(0))])
  );
}

/**
 * The lines of instance.export, or of instance.records, which has no definitions.
 * @param {string} lines
 * @returns {{row: any, records: Record[], definitions: any[]}}
 */
export function readRecords(lines) {
  let row = null;
  const records = [],
    definitions = [];
  for (const line of lines.split("\n")) {
    if (!line) continue;
    const found = JSON.parse(line);
    if (found.instance) row = found.instance;
    if (found.record) records.push(found.record);
    if (found.definition) definitions.push(found.definition);
  }
  if (!row) throw new Error("the records have no line for the instance");
  return { row, records, definitions };
}

// ---- The definition ----

/** @typedef {{from: string, action: string, to: string}} Way */
/** @typedef {{initial: string, isMachine: boolean, ways: Way[]}} Table */

/** @param {string} compiled @returns {Table} */
function readTable(compiled) {
  const { kind, states, initial, transitions } = JSON.parse(compiled);
  return {
    initial: states[initial].name,
    isMachine: kind === "machine",
    ways: transitions.map((/** @type {any} */ way) => ({
      from: states[way.from].name,
      action: way.action,
      to: states[way.to].name
    }))
  };
}

/**
 * The transitions that the hash of the creation covers; null: the lines have no definition. Flows
 * have the same states and transitions, so that of a flow which was amended may be a longer one.
 * @param {any} row
 * @param {any[]} definitions
 * @returns {Promise<Table | null>}
 */
export async function declared(row, definitions) {
  /** @type {Table | null} */
  let own = null;
  const others = [];
  for (const definition of definitions) {
    const text = definition.compiled ?? "",
      hash = toHex(await sha256(bytesOf(text, definition.compiled_hex)));
    if (hash === row.compiled) own = readTable(text);
    else if (hash === definition.compiled_sha256) others.push(readTable(text));
  }
  if (!own) {
    if (!definitions.length) return null;
    throw new Error("no definition in the export has the hash that the creation covers");
  }
  const longest = [own, ...others].sort((a, b) => b.ways.length - a.ways.length)[0];
  return own.isMachine ? own : { ...own, ways: longest.ways };
}

/** @param {Record} record @param {Table | null} table @param {string} state before the record */
function wayFault(record, table, state) {
  if (!table || record.what < 0) return "";
  const way = table.ways[record.what];
  if (!way) return "its definition has no such transition";
  return way.from === state
    ? ""
    : "its definition does not declare " + way.action + " from " + state;
}

/** @param {Record} record @param {number} seq the last entry before it */
function orderFault(record, seq) {
  if (record.what >= 0)
    return record.seq === seq + 1 ? "" : "entry " + (seq + 1) + " was expected here";
  return record.seq === seq
    ? ""
    : "it stands at entry " + record.seq + ", and entry " + seq + " was before it";
}

/**
 * One mark for each record, in order. A record behind a bad one is bad: its hash covers the one
 * before it.
 * @param {{row: any, records: Record[]}} chain
 * @param {(done: number) => void} [progress]
 * @param {Table | null} [table]
 * @returns {Promise<Mark[]>}
 */
export async function verifyChain({ row, records }, progress, table = null) {
  let previous = /** @type {Uint8Array} */ (new Uint8Array(32)),
    seq = 0,
    state = table?.initial ?? "",
    isBroken = false;
  const marks = [];
  for (const record of records) {
    const isErased = ((record.flags ?? 0) & ERASED) !== 0; // the next hash covers that it was
    const hash = isErased ? unhex(record.hash) : await hashOf(record, row, previous),
      isSame = toHex(hash) === record.hash;
    const order = orderFault(record, seq);
    const what =
      order ||
      (isSame
        ? wayFault(record, table, state)
        : isBroken
          ? "an entry before it does not verify"
          : "its hash does not cover what is here");
    marks.push({
      seq: record.seq,
      isEntry: record.what >= 0,
      ok: !what,
      what,
      hash: record.hash
    });
    if (what) isBroken = true;
    previous = hash;
    seq = record.seq;
    if (record.what >= 0) state = table?.ways[record.what]?.to ?? state;
    if (marks.length % 200 === 0) progress?.(marks.length);
  }
  if (records[0]?.what !== CREATE && marks.length)
    Object.assign(marks[0], { ok: false, what: "the record of its creation is missing" });
  return marks;
}

/** @param {any} shown @param {Value | undefined} value @param {boolean} [isJson] */
function differs(shown, value, isJson = false) {
  if (!value) return shown !== undefined && shown !== null;
  if (value.salt === undefined || value.text === undefined) return false; /* erased, or bytes */
  return isJson
    ? JSON.stringify(shown) !== JSON.stringify(JSON.parse(value.text))
    : shown !== value.text;
}

/**
 * Does an entry, as instance.history shows it, say what its record covers? "" if so.
 * @param {any} entry
 * @param {Record | undefined} record
 * @param {Table | null} [table]
 */
export function shownFault(entry, record, table = null) {
  if (!record) return "there is no record of it";
  const way = table?.ways[record.what];
  const faults = /** @type {[string, boolean][]} */ ([["hash", entry.hash !== record.hash],
    ["action", !!way && entry.action !== way.action],
    ["state", !!way && (entry.from_state !== way.from || entry.to_state !== way.to)],
    ["actor", differs(entry.actor_ref, record.actor)],
    ["reason", differs(entry.reason, record.reason)],
    ["time", Date.parse(entry.recorded_at) !== record.at ||
      Date.parse(entry.fired_at) !== record.fired],
    ["guard", !!entry.guard_satisfied !== (((record.flags ?? 0) & GUARD) !== 0)],
    ["step", !!entry.step_id && entry.step_id !== record.id + "." + record.ord],
    ["payload", differs(entry.payload, record.payload, true)]]);
  const fault = faults.find(([, is]) => is);
  return fault ? "the history shows another " + fault[0] : "";
}

/**
 * By which definition it goes: that of its creation, or of the last amend. Code goes over to another
 * version by itself. null: that cannot be said.
 * @param {{row: any, records: Record[]}} chain
 * @param {Table | null} table
 */
function definitionOf({ row, records }, table) {
  if (!table) return null;
  const amended = records.filter((record) => table.ways[record.what]?.action === "amend").pop();
  if (!amended) return row;
  if (amended.payload?.text === undefined || amended.payload.salt === undefined) return null;
  const { definition, version } = JSON.parse(amended.payload.text);
  return { name: definition, version };
}

/**
 * Is the instance, as it is shown, the one that was created? "" if so.
 * @param {any} item
 * @param {{row: any, records: Record[]}} chain
 * @param {Table | null} table
 */
export function createdFault(item, chain, table) {
  const row = chain.row,
    by = definitionOf(chain, table);
  const faults = /** @type {[string, boolean][]} */ ([["id", item.instance_id !== row.id],
    ["definition", !!by && (item.definition ?? "") !== (by.name ?? "")],
    ["version",
      !!by && item.kind !== "code" && (item.version ?? 0) !== (by.version ?? 0)],
    ["subject", differs(item.subject_ref, row.subject)],
    ["input", differs(item.input, row.input, true)],
    ["metadata", differs(item.instance_metadata, row.metadata, true)]]);
  const fault = faults.find(([, is]) => is);
  return fault ? "the page shows another " + fault[0] : "";
}
