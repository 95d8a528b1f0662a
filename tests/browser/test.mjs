// The report and the live page in a real browser: what a reader meets, and what must never leave the page.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const { REPRO, CHROMIUM, PROJECT, PAPER, PICTURES } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "repro-browser-"));
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const children = [];

function project(name, ...options) {
  const root = join(folder, name);
  execFileSync("python3", [PROJECT, root, ...options]);
  return root;
}
/** This repository's own pipeline, with a store and results apart from the checkout's. */
function paper(name) {
  const root = join(folder, name);
  for (const part of ["pipeline.yaml", "stages", "docs/deviations.md"]) cpSync(join(PAPER, part), join(root, part), { recursive: true });
  return root;
}
function repro(root, ...args) {
  return execFileSync(REPRO, ["-C", root, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
function start(root, ...args) {
  const child = spawn(REPRO, ["-C", root, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  child.ended = new Promise((end) => child.on("exit", end));
  children.push(child);
  return child;
}
/** A run that can be held at an event, as by Ctrl-Z: a page that asks once a second would miss most nodes of a smoke run. */
function heldRun(root, ...args) {
  const run = start(root, "run", "--json", ...args);
  let wanted = null;
  createInterface({ input: run.stdout }).on("line", (line) => {
    const event = JSON.parse(line);
    if (!wanted?.at(event)) return;
    run.kill("SIGSTOP");
    wanted.reached(event);
    wanted = null;
  });
  run.until = (at) => new Promise((reached, missed) => {
    wanted = { at, reached };
    run.ended.then((code) => missed(new Error(`the run ended with ${code} before the event`)));
    run.kill("SIGCONT");
  });
  run.end = () => { run.kill("SIGCONT"); return run.ended; };
  return run;
}

/** A page that fails its test on any word on the console, any error, and any request that leaves `home`. */
async function open(url, home, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.trouble = [];
  page.on("console", (message) => page.trouble.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => page.trouble.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(home) && !asked.startsWith("data:") && !asked.startsWith("blob:")) page.trouble.push(`asked for ${asked}`);
  });
  page.on("dialog", (dialog) => { page.trouble.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(url);
  return page;
}
/** The page of a `repro ui`, which has looked once. */
async function live(root, ...args) {
  const ui = start(root, "ui", "--port", "0", "--json", ...args);
  const url = await new Promise((found) => ui.stdout.once("data", (data) => found(JSON.parse(data).url)));
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/);
  const page = await open(url, url);
  await page.waitForFunction(() => document.getElementById("live-mark").textContent === "idle");
  return { page, ui, url };
}
async function picture(page, name, options) {
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}.png`), ...options });
}
async function close(page) {
  assert.deepEqual(page.trouble, []);
  await page.context().close();
}
async function accessible(page) {
  // The page's own policy forbids foreign scripts, so axe comes in through the debugger, which it does not bind.
  await page.evaluate(axe + ";undefined");
  const found = await page.evaluate(() => axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  const told = found.violations.map((rule) => `${rule.id}: ${rule.help}\n${rule.nodes.slice(0, 4).map((node) => "    " + node.html.slice(0, 160) + "\n      " + (node.any[0]?.message || "")).join("\n")}`);
  assert.equal(told.length, 0, told.join("\n"));
}

const small = project("small", "--hostile");
repro(small, "run");
const SMALL = `file://${small}/out/quick/report/index.html`;

const tests = {
  async "the report opens from disk, silent, and asks for nothing"() {
    const page = await open(SMALL, "file://" + small + "/out/quick/report/index.html");
    assert.equal(await page.locator("tbody.claim").count(), 16);
    assert.equal(await page.locator("figure svg[role=img][aria-label]").count(), 4);
    assert.equal(await page.locator("#pipeline .sq").count() > 60, true);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    for (const shown of await page.locator("#pipeline .legend .n").allTextContents()) assert.match(shown, /^\d+$/);
    await picture(page, "light", { fullPage: true });
    await close(page);
  },

  async "the filter works by text, verdict and group, with the keyboard alone"() {
    const page = await open(SMALL, "file://");
    const shown = () => page.locator("tbody.claim:visible").count();
    await page.keyboard.press("/");
    await page.keyboard.type("optim");
    assert.equal(await shown(), 3);
    assert.match(await page.locator("#claim-count").textContent(), /^3 of 16 claims$/);
    await page.keyboard.press("Escape");
    assert.equal(await shown(), 16);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    assert.equal(await page.locator(".chip.fail").getAttribute("aria-pressed"), "true");
    assert.equal(await shown(), 3);
    await page.locator("#claim-group").selectOption("theory");
    assert.equal(await shown(), 1);
    await page.locator("#claim-search").fill("no such words");
    assert.equal(await shown(), 0);
    assert.equal(await page.locator("#no-claims").isVisible(), true);
    // A link to a claim that the filter hides shows it again.
    await page.evaluate(() => { location.hash = "claim-E6"; });
    await page.waitForFunction(() => !document.getElementById("claim-E6").hidden);
    assert.equal(await shown(), 16);
    await close(page);
  },

  async "marks show their values by pointer and by arrow keys"() {
    const page = await open(SMALL, "file://");
    const mark = page.locator("#figure-energy .mark").nth(5);
    await mark.scrollIntoViewIfNeeded();
    await mark.hover();
    assert.equal(await page.locator("#tip").textContent(), "none, N = 32: 4.900");
    await picture(page, "hover");
    await page.mouse.move(1, 1);
    assert.equal(await page.locator("#tip").isVisible(), false);
    await page.locator("#figure-lr-step .sheet").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#tip").textContent(), "none, N = 2: 0.450");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#tip").isVisible(), false);
    await close(page);
  },

  async "claims and figures tell what stands behind them"() {
    const page = await open(SMALL, "file://");
    await page.locator("#claim-E6 button.more").click();
    assert.match(await page.locator("#claim-E6-more").textContent(), /What stands behind it.*62 nodes/s);
    await page.locator("#figure-energy details.behind > summary").click();
    await page.locator("#figure-energy details.behind details > summary").nth(1).click();
    const row = page.locator("#figure-energy details.behind tbody tr").first();
    assert.match(await row.textContent(), /N0-linear-lr2e-3-s0[0-9a-f]{12}.*seed 0/);
    await row.locator("button").click();
    assert.match(await page.locator("#node-card").textContent(), /repro run lr-transfer\/N0-linear-lr2e-3-s0.*WIDTH/s);
    await picture(page, "behind");
    await close(page);
  },

  async "light, dark, narrow and print are all readable"() {
    const dark = await open(SMALL, "file://", { colorScheme: "dark" });
    assert.equal(await dark.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(20, 22, 26)");
    await picture(dark, "dark");
    await dark.locator("#theme").click();
    assert.equal(await dark.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(251, 250, 247)");
    await close(dark);
    const narrow = await open(SMALL, "file://", { viewport: { width: 360, height: 800 } });
    assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "the page is wider than the screen");
    await picture(narrow, "narrow");
    await close(narrow);
    const print = await open(SMALL, "file://", { colorScheme: "dark" });
    await print.emulateMedia({ media: "print" });
    assert.equal(await print.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.equal(await print.locator("nav").isVisible(), false);
    const pdf = await print.pdf({ format: "A4", path: PICTURES ? join(PICTURES, "print.pdf") : undefined });
    assert.equal(pdf.subarray(0, 4).toString(), "%PDF");
    await close(print);
  },

  async "it is accessible, in light and in dark"() {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(SMALL, "file://", { colorScheme });
      await page.locator("#claim-E6 button.more").click();
      await page.locator("#figure-energy details.behind > summary").click();
      await accessible(page);
      await close(page);
    }
  },

  async "a page with 2,000 nodes holds, and is drawn in less than a second"() {
    const large = project("large", "--nodes", "2000");
    repro(large, "report");
    const page = await open(`file://${large}/out/quick/report/index.html`, "file://");
    assert.equal(await page.locator("#pipeline .sq").count() >= 2003, true);
    const { loaded, nodes } = await page.evaluate(() => ({ loaded: performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd, nodes: document.querySelectorAll("*").length }));
    const begin = Date.now();
    await page.locator(".nodes-find").fill("N1999-");
    await page.waitForFunction(() => document.querySelectorAll(".squares .sq:not(.dim)").length === 1);
    console.log(`    drawn in ${Math.round(loaded)} ms, ${nodes} elements, found in ${Date.now() - begin} ms`);
    await page.locator(".squares .sq:not(.dim)").click();
    assert.match(await page.locator("#node-card").textContent(), /N1999-linear/);
    assert.equal(loaded < 5000, true, `${loaded} ms`);
    await picture(page, "two-thousand", { fullPage: true });
    await close(page);
  },

  async "the live page follows a smoke run: nodes, logs, verdicts"() {
    const root = paper("smoke");
    const { page, ui, url } = await live(root, "--profile", "smoke");
    const squares = page.locator(".squares .sq");
    const done = () => page.locator(".squares .sq.ran, .squares .sq.cached").count();
    const all = await squares.count();
    assert.equal(all > 50, true, `${all} nodes`);
    assert.equal(await done(), 0);
    assert.equal(await page.locator("tbody.claim").count(), 0);
    assert.equal(await page.locator("#now").isVisible(), false);
    await page.evaluate(() => { globalThis.opened = "once"; });

    // Held while a model trains: the page shows it, with what it printed and all that came before it.
    const run = heldRun(root, "all", "--profile", "smoke");
    const { node } = await run.until(({ event, stage }) => event === "node_working" && stage === "lr-transfer");
    await page.locator("#now .runs li", { hasText: node }).locator("pre.log", { hasText: '"train_loss":' }).waitFor();
    assert.equal(await page.locator("#live-mark").textContent(), "live");
    assert.equal(await page.locator(".squares .sq.running").count() > 0, true);
    const some = await done();
    assert.equal(0 < some && some < all, true, `${some} of ${all}`);
    assert.equal((await page.locator("#now .lead").textContent()).startsWith(`${some} of ${all} nodes done`), true);
    await picture(page, "live");
    await accessible(page);

    // Held when the claims are judged: the verdicts are there before the figures and the report are.
    await run.until(({ event, node }) => event === "node_done" && node === "verify");
    const { verdicts } = JSON.parse(readFileSync(join(root, "out/smoke/verify/verdicts.json"), "utf8"));
    assert.equal(verdicts.length > 20, true, `${verdicts.length} verdicts`);
    await page.waitForFunction((judged) => document.querySelectorAll("tbody.claim").length === judged, verdicts.length);
    const more = await done();
    assert.equal(some < more && more < all, true, `${some}, ${more} of ${all}`);
    assert.equal(await page.locator("figure svg").count(), 0);

    assert.equal(await run.end(), 0);
    await page.waitForFunction((all) => document.querySelectorAll(".squares .sq:is(.ran, .cached)").length === all, all);
    await page.locator("#figure-hidden-norm svg").waitFor();
    await page.locator("#now").waitFor({ state: "hidden" });
    assert.equal(await page.locator("#live-mark").textContent(), "idle");
    assert.equal(await page.locator(".banner").count(), 0);
    await page.locator(`.squares .sq[aria-label^="${node}:"]`).click();
    await page.locator("#node-card pre", { hasText: '"train_loss":' }).waitFor();
    assert.equal(await page.evaluate(() => globalThis.opened), "once");

    // Another page in the same browser cannot read it.
    const other = await (await browser.newContext()).newPage();
    await other.goto("about:blank");
    assert.equal(await other.evaluate((address) => fetch(address + "api/live").then(() => "read", () => "refused"), url), "refused");
    await other.context().close();
    await close(page);
    ui.kill();
  },

  async "the live page draws the loss of a long training, until it is stopped"() {
    const root = paper("long");
    const longer = ["--profile", "smoke", "--set", "steps=1000000"];
    const node = "lr-transfer/N4-linear-lr5e-3-s0";
    const { page, ui } = await live(root, ...longer);
    const run = heldRun(root, node, ...longer);
    const shown = page.locator("#now .runs li", { hasText: node });
    const points = async () => (await shown.locator("svg polyline").getAttribute("points")).split(" ").length;
    const first = await points();
    await page.waitForFunction((first) => document.querySelector("#now polyline")?.getAttribute("points").split(" ").length > first, first);
    assert.match(await shown.textContent(), /[\d,]+ of 1,000,000 · loss \d+\.\d+/);
    const [last, from] = (await shown.locator("svg").getAttribute("aria-label")).match(/[\d.]+/g).map(Number);
    assert.equal(last < from, true, `the loss went from ${from} to ${last}`);
    await picture(page, "training");
    run.kill("SIGINT");
    assert.equal(await run.ended, 130);
    await page.locator("#now").waitFor({ state: "hidden" });
    assert.equal(await page.locator(".squares .sq.running").count(), 0);
    assert.equal(await page.locator("#live-mark").textContent(), "idle");
    await close(page);
    ui.kill();
  },
};

let failed = 0;
try {
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}`);
    }
  }
} finally {
  // A held process would keep any other signal for later.
  children.forEach((child) => child.kill("SIGKILL"));
  await browser.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
console.log(failed ? `${failed} of ${Object.keys(tests).length} browser tests failed` : `all ${Object.keys(tests).length} browser tests passed`);
process.exit(failed ? 1 : 0);
