// timers.js - what falls due next: timers and deadlines of instances, and alarms.
import { get } from "./api.js";
import { link } from "./app.js";
import { h, show } from "./dom.js";
import { timerWords } from "./waits.js";
import { exact, shortId, when } from "./words.js";

/** @param {any} timer */
function timerRow(timer) {
  return h("tr", { "data-key": timer.instance_id + timer.name + (timer.step_id ?? "") },
    h("td.time", { title: exact(timer.due_at) }, when(timer.due_at)),
    h("td", null, timerWords(timer.name)),
    h("td", null,
      h("a", { href: link("instances/" + timer.instance_id), "data-row": "1" },
        timer.subject_ref ?? h("code", null, shortId(timer.instance_id)))),
    h("td", null, timer.definition ? timer.definition + "@" + timer.version : "inline"));
}

/** @param {any} alarm */
const alarmRow = (alarm) =>
  h("tr", { "data-key": alarm.alarm_id },
    h("td.time", { title: exact(alarm.at) }, when(alarm.at)),
    h("td", null, h("code", null, alarm.operation)),
    h("td", null, h("code", null, JSON.stringify(alarm.input).slice(0, 200))),
    h("td", null, alarm.firing ? "firing" : ""));

/** @param {string} title @param {string[]} heads @param {HTMLElement[]} rows */
const table = (title, heads, rows) =>
  h("div.scroll", null,
    h("table.list", null, h("caption.sr", null, title),
      h("thead", null,
        h("tr", null,
          heads.map((name, i) => h("th" + (i ? "" : ".time"), { scope: "col" }, name)))),
      h("tbody", null, rows)));

/** @param {import("./app.js").Route} route @returns {Promise<import("./app.js").Page>} */
export async function page(route) {
  async function read() {
    const [timers, alarms] = await Promise.all([get("/timers", { limit: 500 }), get("/alarms")]);
    if (!route.isCurrent()) return;
    show(route.root, h("h1", null, "Timers"),
      timers.timers.length
        ? [table("Timers, the next one first", ["Due", "Timer", "Instance", "Definition"],
              timers.timers.map(timerRow)),
            timers.more && h("p.end", null, "The next 500; there are more.")]
        : h("div.empty", null, h("h2", null, "No timer is armed"),
            h("p", null, "A ", h("code", null, "sleep"), ", a ", h("code", null, "timeout"),
              ", a machine's ", h("code", null, "deadline"),
              " or the wait before another attempt is shown here, with when it is due. Timers " +
                "outlive the server: what fell due while it was down fires at its start.")),
      h("h2.later-title", null, "Alarms"),
      alarms.alarms.length
        ? table("Alarms", ["Due", "Operation", "Input", ""], alarms.alarms.map(alarmRow))
        : h("p.muted", null,
            "None. An alarm runs one operation later: pawl alarm set --after 5m …"));
  }
  await read();
  return { title: "Timers", refresh: read };
}
