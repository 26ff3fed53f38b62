// definition.js - one definition: its picture, its text, its versions with what changed, the report
// of the checker, and a form that starts an instance of it.
import { get, namePath, newKey, post, postText, Refusal } from "./api.js";
import { actorMember } from "./actor.js";
import { link } from "./app.js";
import { copyMenu } from "./copy.js";
import { endings } from "./definitions.js";
import { diffView } from "./diff.js";
import { h, show } from "./dom.js";
import { schemaForm } from "./form.js";
import { fitGraph, graphFrame } from "./graph.js";
import { badge, count, when } from "./words.js";

/** @param {any} report */
function checkReport(report) {
  if (report.refused) return h("p.muted", null, report.refused);
  const lines = [...report.errors.map((/** @type {any} */ f) => ({ ...f, kind: "failed" })),
    ...report.warnings.map((/** @type {any} */ f) => ({ ...f, kind: "suspended" }))];
  if (!lines.length)
    return h("p", null, h("span.mark.ok", null, "✓ "), "No errors and no warnings.");
  return h("ul.plain", null,
    lines.map((line) =>
      h("li", null,
        h("span.badge." + line.kind, null, line.kind === "failed" ? "error" : "warning"), " ",
        line.line > 0 && h("code.muted", null, line.line + ":" + line.column + " "), line.message)
    ));
}

/** JSON in one line is broken into lines; other text is as it was supplied. @param {string} text */
function inLines(text) {
  if (text.trim().includes("\n") || !text.startsWith("{")) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** @param {any} kept as retention.list has it */
const retentionCard = (kept) =>
  h("section.card", null, h("h2", null, "After the end"),
    h("p", null, "What an instance holds is erased " + kept.after_end + " after its end."),
    h("dl.facts", null,
      [["Erased", kept.erased], ["Due now", kept.due], ["On hold", kept.held]].map(([is, n]) => [
        h("dt", null, is), h("dd", null, count(n) + (kept.more ? "+" : ""))
      ]),
      kept.oldest_due_at && [h("dt", null, "Due since"), h("dd", null, when(kept.oldest_due_at))]));

/** @param {any} definition */
function startForm(definition) {
  const form = schemaForm(definition.input ?? null),
    problem = h("p.problem", { role: "alert", hidden: true });
  const subject = /** @type {HTMLInputElement} */ (
    h("input", { id: "start-subject", autocomplete: "off" })
  );
  const body = () => {
    const input = form.read();
    return {
      definition: definition.name + "@" + definition.version,
      ...(input !== undefined && { input }),
      ...(subject.value && { subject_ref: subject.value }),
      ...actorMember()
    };
  };
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const made = await post("/instances", body(), newKey());
      location.hash = link("instances/" + made.instance_id);
    } catch (error) {
      problem.hidden = false;
      problem.textContent = /** @type {Error} */ (error).message;
    }
  };
  return h("form.start",
    { onsubmit: start, "data-own": "1", "data-key": "start-" + definition.sha256 },
    h("div.field", null, h("label", { for: "start-subject" }, "Subject (what it is about)"),
      subject),
    form.node, problem,
    h("div.buttons", null, h("button.primary", { type: "submit" }, "Start one")));
}

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  const name = route.path.join("/");
  const asked = Number(route.query.get("version")) || undefined,
    against = Number(route.query.get("against")) || undefined;
  const newest = await get("/definitions/" + namePath(name));
  const definition = await get("/definitions/" + namePath(name), {
    version: asked ?? newest.version,
    expanded: true
  });
  const href = "definitions/" + encodeURIComponent(name);
  /** @type {{graph: any, counts: any, report: any, other: any, kept: any}} */
  const found = { graph: null, counts: null, report: null, other: null, kept: null };
  let graphWords = "",
    zoom = 0;
  try {
    found.graph = await get("/graphs/" + namePath(name), {
      version: definition.version,
      format: "layout"
    });
  } catch (error) {
    graphWords = error instanceof Refusal ? error.message : "";
  }
  if (against) found.other = await get("/definitions/" + namePath(name), { version: against });
  const readCounts = async () => {
    found.counts = await get("/instances/counts", {
      definition: name + "@" + definition.version
    });
    if (route.isCurrent()) draw();
  };
  /** Who may not see retentions sees none. */
  async function readRetention() {
    const { retention } = await get("/retention");
    found.kept = retention.find((/** @type {any} */ one) => one.definition === name) ?? null;
    if (found.kept && route.isCurrent()) draw();
  }
  async function check() {
    try {
      found.report =
        definition.kind === "code"
          ? { refused: "Code is checked by its compiler." }
          : await postText("/definitions/check", definition.text,
              definition.text.trimStart().startsWith("{")
                ? "application/json"
                : "application/yaml");
    } catch (error) {
      found.report = { refused: /** @type {Error} */ (error).message };
    }
    if (route.isCurrent()) draw();
  }
  function versions() {
    const list = Array.from(
      { length: Math.min(newest.version, 200) },
      (_, i) => newest.version - i
    );
    return h("ul.plain.versions", null,
      list.map((n) =>
        h("li", null,
          h("a",
            {
              href: link(href + "?version=" + n),
              "aria-current": n === definition.version ? "true" : null
            },
            name + "@" + n),
          n === newest.version && h("span.muted", null, " newest"),
          n !== definition.version && [" · ",
            h("a", { href: link(href + "?version=" + definition.version + "&against=" + n) },
              "diff with @" + definition.version)])
      ));
  }
  function draw() {
    const statuses =
      found.counts &&
      Object.entries(found.counts.by_status).filter(
        ([status, n]) => Number(n) > 0 && ["running", "suspended", "paused"].includes(status)
      );
    show(route.root,
      h("div.head", null, h("h1", null, name, h("span.muted", null, "@" + definition.version)),
        h("p.now", null, definition.kind,
          definition.version !== newest.version && [" · ",
            h("a", { href: link(href) }, "newest is @" + newest.version)])),
      h("div.columns", null,
        h("div.main", null,
          h("section.card.graph-card", null,
            found.graph ? graphFrame(found.graph) : h("p.muted", null, graphWords),
            h("div.zoom", null,
              ["−", "+", "fit"].map((sign) =>
                h("button.plain",
                  {
                    "aria-label": sign === "−" ? "Smaller" : sign === "+" ? "Larger" : "Fit",
                    onclick: () => {
                      const frame = /** @type {Element} */ (
                        route.root.querySelector(".graph-frame")
                      );
                      zoom =
                        sign === "fit"
                          ? 0
                          : Math.min(
                              3,
                              Math.max(
                                0.2,
                                (zoom || fitGraph(frame)) * (sign === "+" ? 1.25 : 0.8)
                              )
                            );
                      draw();
                    }
                  },
                  sign)
              ))),
          found.other &&
            h("section.card", null,
              h("h2", null, "What changed from @" + against + " to @" + definition.version),
              diffView(found.other.text, definition.text),
              h("p", null,
                h("a", { href: link(href + "?version=" + definition.version) },
                  "Close the comparison"))),
          h("section.card", null, h("h2", null, "Text"),
            h("pre.text", { tabindex: 0 }, inLines(definition.text)),
            h("p.hint", null, "SHA-256 of it as supplied ", h("code", null, definition.sha256)))),
        h("aside", null,
          h("section.card", null, h("h2", null, "Start one"), startForm(definition)),
          h("section.card", null, h("h2", null, "Instances"),
            !found.counts
              ? h("p.muted", null, "…")
              : found.counts.total === 0
                ? h("p.muted", null, "None of this version yet.")
                : [h("p", null,
                      h("a",
                        {
                          href: link(
                            "instances?definition=" +
                              encodeURIComponent(name + "@" + definition.version)
                          )
                        },
                        count(found.counts.total) + " of this version")),
                    h("ul.plain", null,
                      statuses.map((/** @type {any} */ [status, n]) =>
                        h("li", null, badge(status), " " + count(n))
                      )),
                    endings(found.counts).length > 0 && [h("h3", null, "Ended"),
                      h("ul.plain", null,
                        endings(found.counts).map(([kind, , n]) =>
                          h("li", null, badge(kind), " " + count(n))
                        ))],
                    h("h3", null, "By state"),
                    h("ul.plain", null,
                      Object.entries(found.counts.by_state).map(([state, n]) =>
                        h("li", null,
                          h("a",
                            {
                              href: link(
                                "instances?definition=" +
                                  encodeURIComponent(name + "@" + definition.version) +
                                  "&state=" +
                                  encodeURIComponent(state)
                              )
                            },
                            state),
                          " " + count(Number(n)))
                      ))]),
          found.kept && retentionCard(found.kept),
          h("section.card", null, h("h2", null, "Check"),
            found.report ? checkReport(found.report) : h("p.muted", null, "…")),
          h("section.card", null, h("h2", null, "Versions"), versions()),
          h("section.card", null, h("h2", null, "Take it along"),
            copyMenu({
              operation: "instance.create",
              method: "POST",
              path: "/instances",
              body: { definition: name, ...actorMember() },
              pawl: ["start", name]
            })))));
    const frame = route.root.querySelector(".graph-frame");
    if (frame) fitGraph(frame, zoom);
  }
  if (route.isCurrent()) draw();
  readCounts().catch(() => {});
  check();
  readRetention().catch(() => {});
  return { title: name, refresh: readCounts };
}
