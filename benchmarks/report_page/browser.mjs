// Opens a page in headless Chromium: how long it takes, what it asks for, what axe-core says, and how it looks.
// Arguments: Chromium's program, the page, a folder for pictures. Answers with one JSON object.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.CRA_NODE_PACKAGES + "/");
const { chromium } = require("playwright-core");
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const [program, page_path, pictures] = process.argv.slice(2);
const url = pathToFileURL(page_path).href;
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: program, args: flags });
const looks = {
  light: { colorScheme: "light", viewport: { width: 1200, height: 900 } },
  dark: { colorScheme: "dark", viewport: { width: 1200, height: 900 } },
  narrow: { colorScheme: "light", viewport: { width: 360, height: 800 } },
  scriptless: { colorScheme: "light", viewport: { width: 1200, height: 900 }, javaScriptEnabled: false },
};
const told = { seconds: [], painted: [], requests: [], refused: [], violations: {}, wider: {}, checked: 0 };

const LOADS = 8; // browsers differ from run to run

async function opened(look) {
  const context = await browser.newContext({ ...look, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("request", (request) => { if (request.url() !== url) told.requests.push(request.url()); });
  page.on("console", (message) => { if (message.type() === "error") told.refused.push(message.text()); });
  page.on("pageerror", (error) => told.refused.push(String(error)));
  const start = performance.now();
  await page.goto(url, { waitUntil: "load" });
  told.seconds.push((performance.now() - start) / 1000);
  // The first paint may come after `load`: of a page on a loaded machine, no entry would be there yet.
  if (look.javaScriptEnabled !== false)
    await page.evaluate(() => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen))));
  told.painted.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime / 1000));
  return { context, page };
}

for (let load = 0; load < LOADS; load += 1) {
  const { context } = await opened(looks.light);
  await context.close();
}
for (const [name, look] of Object.entries(looks)) {
  const { context, page } = await opened(look);
  await page.screenshot({ path: `${pictures}/${name}.png` });
  if (look.javaScriptEnabled !== false) {
    told.wider[name] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.evaluate(() => {
      const some = [...document.querySelectorAll("details")];
      for (const each of some.slice(0, 60)) each.open = true;
    });
    // axe-core as a content script would run it: the page's own policy allows no script but its own.
    const session = await context.newCDPSession(page);
    await session.send("Page.enable");
    await session.send("Runtime.evaluate", { expression: axe });
    const answer = await session.send("Runtime.evaluate", {
      expression: "axe.run(document).then((found) => JSON.stringify({checked: found.passes.length, violations: found.violations.map(" +
        "(each) => [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200), each.nodes[0].failureSummary])}))",
      awaitPromise: true, returnByValue: true,
    });
    const found = JSON.parse(answer.result.value);
    told.violations[name] = found.violations;
    told.checked = Math.max(told.checked, found.checked);
    await page.screenshot({ path: `${pictures}/${name}-open.png`, fullPage: process.env.CRA_WHOLE === "1" });
  }
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(told));
