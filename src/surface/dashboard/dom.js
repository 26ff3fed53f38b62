// dom.js - elements from plain calls, and a page that changes in place.
//
// Text becomes text nodes, never markup: there is no innerHTML in this folder. patch() makes an
// element look like a new one and keeps what a person was doing: focus, open folds, scrolling.

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */
/** @typedef {Record<string, any>} Props */

const HANDLERS = Symbol("handlers");

/** One listener for each type: patch() only has to carry the functions over. @param {any} event */
function dispatch(event) {
  const handler = event.currentTarget[HANDLERS]?.[event.type];
  if (handler) return handler(event);
}

/** @param {any} element @param {string} type @param {Function} handler */
function listen(element, type, handler) {
  if (!element[HANDLERS]) element[HANDLERS] = {};
  if (!element[HANDLERS][type]) element.addEventListener(type, dispatch);
  element[HANDLERS][type] = handler;
}

/** @param {Element} element @param {string} name @param {any} value */
function set(element, name, value) {
  if (name.startsWith("on")) listen(element, name.slice(2), value);
  else if (name === "value" || name === "checked") /** @type {any} */ (element)[name] = value;
  else if (name === "style") Object.assign(/** @type {any} */ (element).style, value);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined)
    element.setAttribute(name, String(value));
}

/** @param {Node} parent @param {Child[]} children */
function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else
      parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {Element} element @param {Props | null} props @param {Child[]} children */
function fill(element, props, children) {
  for (const name in props) set(element, name, props[name]);
  append(element, children);
  return element;
}

/**
 * h("a.link", {href: "#/"}, "Home"). Names that begin with "on" are listeners.
 * @param {string} spec a tag with classes @param {Props | null} [props] @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(spec, props, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return /** @type {HTMLElement} */ (fill(element, props ?? null, children));
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 */
export function s(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return /** @type {SVGElement} */ (fill(element, props ?? null, children));
}

/** @param {Node} node */
const keyOf = (node) => (node instanceof Element ? node.getAttribute("data-key") : null);

/** @param {Node} a @param {Node} b */
const isLike = (a, b) =>
  a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** A fold stays as the reader left it. @param {Element} from @param {Element} to */
function patchAttributes(from, to) {
  for (const { name } of [...from.attributes])
    if (
      !to.hasAttribute(name) &&
      !(name === "open" && from.nodeName === "DETAILS") &&
      name !== "style"
    )
      from.removeAttribute(name);
  for (const { name, value } of [...to.attributes])
    if (from.getAttribute(name) !== value && name !== "style") from.setAttribute(name, value);
  /** @type {any} */ (from)[HANDLERS] = /** @type {any} */ (to)[HANDLERS];
  for (const type in /** @type {any} */ (to)[HANDLERS]) from.addEventListener(type, dispatch);
  if (/** @type {any} */ (to).style?.cssText !== /** @type {any} */ (from).style?.cssText)
    /** @type {any} */ (from).style.cssText = /** @type {any} */ (to).style.cssText;
}

/** @param {Node} parent @param {Node} to */
function patchChildren(parent, to) {
  const keyed = new Map();
  for (const child of parent.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = parent.firstChild;
  for (const wanted of [...to.childNodes]) {
    let found = keyOf(wanted) ? keyed.get(keyOf(wanted)) : at;
    if (found && isLike(found, wanted)) {
      if (found === at) at = found.nextSibling;
      else parent.insertBefore(found, at);
      patch(found, wanted);
    } else parent.insertBefore(wanted, at);
  }
  while (at) {
    const next = at.nextSibling;
    parent.removeChild(at);
    at = next;
  }
}

/**
 * Make `from` look like `to`, which is used up.
 * @param {Node} from
 * @param {Node} to
 * @returns {Node} what is there now
 */
export function patch(from, to) {
  if (from === to) return from;
  if (!isLike(from, to)) {
    from.parentNode?.replaceChild(to, from);
    return to;
  }
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return from;
  }
  if (from instanceof Element && to instanceof Element) {
    if (from.hasAttribute("data-own")) return from; /* what is inside keeps itself */
    patchAttributes(from, to);
    if (
      from instanceof HTMLInputElement ||
      from instanceof HTMLTextAreaElement ||
      from instanceof HTMLSelectElement
    ) {
      const other = /** @type {any} */ (to);
      if (from instanceof HTMLSelectElement) patchChildren(from, to);
      if (document.activeElement !== from && from.value !== other.value && !from.dataset.keep)
        from.value = other.value;
      return from;
    }
    patchChildren(from, to);
  }
  return from;
}

/** Show this in place of what `root` holds. @param {Element} root @param {...Child} children */
export function show(root, ...children) {
  const wanted = root.cloneNode(false);
  append(wanted, children);
  patchChildren(root, wanted);
}
