// scenarios.mjs - what a person does in the dashboard, and what must be seen then. run_browser.py begins a server for
// each, and says which run every day.

export const HOSTILE = `<img src=x onerror="window.hacked=1">'"></script><script>window.hacked=1</script>\u202e{{7*7}}`;

/** The text of an element, or of the page. */
const text = (page, selector = "main") => page.locator(selector).first().innerText();

/** Wait until the page says it. */
const says = (page, words, selector = "main") => page.waitForFunction(([where, what]) => document.querySelector(where)?.innerText.includes(what), [selector, words]);

/** A node of the graph has this mark. */
const lit = (page, mark, name) => page.locator("svg.graph .node." + mark + " text", { hasText: name }).first().waitFor();

const instanceOf = (t, ...filters) => t.json("list", ...filters).instances[0].instance_id;

async function fivePages(t) {
  const page = await t.page({ actor: "ann", mayRefuse: /409 \(Conflict\)/ });
  await t.go(page, "");
  await says(page, "Welcome. Four things that are true here");
  await page.getByRole("button", { name: "Ship it anyway" }).click();
  await says(page, "invalid-transition: no 'ship' from 'new'; legal now: pay, drop");
  await says(page, "by mallory");
  t.assert((await page.locator(".pair > div").nth(0).locator(".mark.bad").count()) === 0, "the history as recorded verifies");
  t.assert((await page.locator(".pair > div").nth(1).locator(".mark.bad").count()) >= 2, "the changed entry and those behind it do not verify");
  await t.shot(page, "home");
  await t.go(page, "instances");
  await says(page, "batch-release");
  await t.shot(page, "instances");
  await t.go(page, "definitions/order");
  await says(page, "No errors and no warnings");
  t.assert((await page.locator("svg.graph .node.state").count()) === 4, "a box for each state");
  await t.shot(page, "definition");
  await t.go(page, "approvals");
  await says(page, "the annual report");
  await t.shot(page, "approvals");
  // One action, then an update that the page was not asked for.
  const id = instanceOf(t, "--definition", "order", "--subject", "A-19");
  await t.go(page, "instances/" + id);
  await says(page, "verified in this browser");
  await page.getByRole("button", { name: "pay", exact: true }).click();
  await lit(page, "present", "paid");
  t.assert((await text(page, ".now")).includes("paid"), "the state is shown");
  t.pawl("fire", id, "ship", "--actor", "bob");
  await lit(page, "done", "shipped");
  await says(page, "bob");
  await says(page, "3 records verified in this browser");
  await t.shot(page, "instance");
}

/** Every field that a caller may fill holds markup; all of it is shown as text. */
async function hostileStrings(t) {
  const page = await t.page({ actor: HOSTILE, mayRefuse: /40[04]/ });
  const made = JSON.parse(t.words[0]);
  const isClean = async (what) => {
    const found = await page.evaluate(() => ({ hacked: "hacked" in window, images: [...document.images].filter((image) => !image.src.endsWith("/dashboard/icon.svg")).length, scripts: document.scripts.length }));
    t.assert(!found.hacked && found.images === 0 && found.scripts === 1, what, found);
  };
  for (const [kind, id] of Object.entries(made)) {
    for (const tab of ["history", "timeline", "steps", "data"]) {
      await t.go(page, "instances/" + id + "?tab=" + tab);
      await says(page, "<img src=x onerror");
      await isClean(kind + " " + tab);
    }
    await t.shot(page, "hostile-" + kind);
  }
  for (const hash of ["", "instances", "instances?subject_ref=" + encodeURIComponent(HOSTILE), "instances?state=" + encodeURIComponent(HOSTILE), "definitions", "definitions/hostile", "definitions/hostile-flow", "approvals?all=1", "timers", "workers", encodeURIComponent(HOSTILE), "definitions/" + encodeURIComponent(HOSTILE)]) {
    await t.go(page, hash);
    await page.waitForTimeout(150);
    await isClean(hash);
  }
}

export const scenarios = { fivePages, hostileStrings };
