// verify.js - checks an instance's chain of hashes here, in the reader's own browser, from the raw
// records that instance.records gives. docs/format.md ("Hashes") is all that it is written from.

/**
 * @typedef {{commitment: string, salt?: string, text?: string, hex?: string}} Value
 * @typedef {{id: string, seq: number, what: number, at: number, fired: number, flags?: number,
 *   step?: number, ord?: number, attempt?: number, body?: string, body_hex?: string, key?: string,
 *   actor?: Value, payload?: Value, reason?: Value, hash: string}} Record
 * @typedef {{seq: number, isEntry: boolean, ok: boolean, what: string, hash: string}} Mark
 */

const CREATE = -1;
/** Of flags: a part of the record's body was erased, so its hash cannot be made again. */
const ERASED = 2;
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

/** The lines of instance.records. @param {string} lines @returns {{row: any, records: Record[]}} */
export function readRecords(lines) {
  let row = null;
  const records = [];
  for (const line of lines.split("\n")) {
    if (!line) continue;
    const found = JSON.parse(line);
    if (found.instance) row = found.instance;
    if (found.record) records.push(found.record);
  }
  if (!row) throw new Error("the records have no line for the instance");
  return { row, records };
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
 * @returns {Promise<Mark[]>}
 */
export async function verifyChain({ row, records }, progress) {
  let previous = /** @type {Uint8Array} */ (new Uint8Array(32)),
    seq = 0,
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
        ? ""
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
    if (marks.length % 200 === 0) progress?.(marks.length);
  }
  if (records[0]?.what !== CREATE && marks.length)
    Object.assign(marks[0], { ok: false, what: "the record of its creation is missing" });
  return marks;
}

/**
 * Does an entry, as instance.history shows it, say what its record covers? "" if so.
 * @param {any} entry
 * @param {Record} record
 */
export function shownFault(entry, record) {
  const differs = (/** @type {any} */ shown, /** @type {Value | undefined} */ value) =>
    value?.salt !== undefined && value.text !== undefined && shown !== value.text;
  if (entry.hash !== record.hash) return "the history shows another hash";
  if (differs(entry.actor_ref, record.actor)) return "the history shows another actor";
  if (differs(entry.reason, record.reason)) return "the history shows another reason";
  if (Date.parse(entry.recorded_at) !== record.at) return "the history shows another time";
  if (
    record.payload?.text !== undefined &&
    record.payload.salt !== undefined &&
    JSON.stringify(entry.payload) !== JSON.stringify(JSON.parse(record.payload.text))
  )
    return "the history shows another payload";
  return "";
}
