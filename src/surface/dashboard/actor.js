// actor.js - in whose name the page acts: a token's actor, or a name that the reader gave.

/** @type {{name: string | null, scopes: string | null, actor_ref: string | null}} */
let caller = { name: null, scopes: null, actor_ref: null };

/** @param {typeof caller} found */
export const setCaller = (found) => {
  caller = found;
};

/** @param {string} name */
export function setActor(name) {
  try {
    localStorage.setItem("pawl.actor", name);
  } catch {
    /* a browser may forbid it: it lasts as long as the page */
  }
  kept = name;
}

let kept = (() => {
  try {
    return localStorage.getItem("pawl.actor") ?? "";
  } catch {
    return "";
  }
})();

/** @returns {{name: string, fixed: string | null, caller: string | null}} */
export const actor = () => ({
  name: caller.actor_ref ?? kept,
  fixed: caller.actor_ref,
  caller: caller.scopes && (caller.name ?? "a token")
});

/** The member of a write that says who makes it. */
export const actorMember = () => (actor().name ? { actor_ref: actor().name } : {});
