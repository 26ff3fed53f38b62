// form.js - a form from the schema of an input (the keywords that definitions allow). What the form
// cannot say is typed as JSON; the server checks all of it.
import { h } from "./dom.js";

/** @typedef {{node: HTMLElement, read: () => any}} Control */

/** @param {string} id @param {any} schema @param {boolean} required @returns {Control} */
function scalarControl(id, schema, required) {
  if (Array.isArray(schema.enum)) {
    const select = /** @type {HTMLSelectElement} */ (
      h("select", { id }, !required && h("option", { value: "" }, ""),
        schema.enum.map((/** @type {any} */ value, /** @type {number} */ i) =>
          h("option", { value: String(i) },
            typeof value === "string" ? value : JSON.stringify(value))
        ))
    );
    return {
      node: select,
      read: () => (select.value === "" ? undefined : schema.enum[Number(select.value)])
    };
  }
  if (schema.type === "boolean") {
    const select = /** @type {HTMLSelectElement} */ (
      h("select", { id }, !required && h("option", { value: "" }, ""),
        h("option", { value: "true" }, "true"), h("option", { value: "false" }, "false"))
    );
    return {
      node: select,
      read: () => (select.value === "" ? undefined : select.value === "true")
    };
  }
  const isNumber = schema.type === "number" || schema.type === "integer";
  const input = /** @type {HTMLInputElement} */ (
    h("input",
      {
        id,
        type: isNumber ? "number" : "text",
        step: schema.type === "integer" ? 1 : "any",
        min: schema.minimum,
        max: schema.maximum,
        required,
        autocomplete: "off"
      })
  );
  return {
    node: input,
    read: () => (input.value === "" ? undefined : isNumber ? Number(input.value) : input.value)
  };
}

/** @param {string} id @param {boolean} required @returns {Control} */
function jsonControl(id, required) {
  const area = /** @type {HTMLTextAreaElement} */ (
    h("textarea", { id, rows: 3, required, spellcheck: "false" })
  );
  return {
    node: area,
    read: () => {
      if (!area.value.trim()) return undefined;
      try {
        return JSON.parse(area.value);
      } catch (error) {
        throw new Error(
          (id.split("-").pop() ?? "") +
            ": expected JSON. " +
            /** @type {Error} */ (error).message
        );
      }
    }
  };
}

/** @param {any} schema */
const isScalar = (schema) =>
  schema &&
  (Array.isArray(schema.enum) ||
    ["string", "number", "integer", "boolean"].includes(schema.type));

/** @param {string} name @param {any} schema */
const titleOf = (name, schema) => (typeof schema?.title === "string" ? schema.title : name);

/** @param {any} schema null: any input @param {string} [prefix] @returns {Control} */
export function schemaForm(schema, prefix = "in") {
  const names =
    schema?.type === "object" || schema?.properties
      ? Object.keys(schema.properties ?? {})
      : null;
  if (!names || !names.length) {
    const control = jsonControl(prefix + "-input", false);
    return {
      node: h("div.field", null, h("label", { for: prefix + "-input" }, "Input (JSON)"),
        control.node,
        h("p.hint", null,
          schema
            ? "Checked by the definition's schema."
            : "This definition declares no schema for its input.")),
      read: control.read
    };
  }
  const controls = names.map((name) => {
    const member = schema.properties[name],
      required = (schema.required ?? []).includes(name),
      id = prefix + "-" + name;
    const nested = member?.properties ? schemaForm(member, id) : null;
    const control =
      nested ??
      (isScalar(member) ? scalarControl(id, member, required) : jsonControl(id, required));
    return {
      name,
      required,
      control,
      node: nested
        ? h("fieldset", null, h("legend", null, titleOf(name, member)), nested.node)
        : h("div.field", null,
            h("label", { for: id }, titleOf(name, member), required ? " (required)" : ""),
            control.node, member?.description && h("p.hint", null, member.description))
    };
  });
  return {
    node: h("div.schema", null, controls.map((one) => one.node)),
    read: () => {
      const pairs = controls
        .map((one) => [one.name, one.control.read()])
        .filter(([, value]) => value !== undefined);
      return pairs.length || schema.required?.length ? Object.fromEntries(pairs) : undefined;
    }
  };
}
