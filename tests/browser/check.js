// node check.js BROWSER URL...: what axe-core finds on each page, at 1280 and 420 px, and what a
// page wider than its window is; as JSON, a line each.
const fs = require("fs"), puppeteer = require("puppeteer-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
// A table's corner, which pandas leaves empty.
const rules = { "empty-table-header": { enabled: false } };

(async () => {
  const [executablePath, ...urls] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
  for (const url of urls) for (const width of [1280, 420]) {
    const page = await browser.newPage();
    await page.setBypassCSP(true);
    await page.setViewport({ width, height: 900 });
    await page.goto(url, { waitUntil: "load" });
    await page.evaluate(() => { for (const one of document.querySelectorAll("details")) one.open = true; });
    await page.evaluate(axe);
    const found = await page.evaluate((rules) => axe.run(document, { rules }), rules);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    const told = found.violations.map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`);
    if (wide > width) told.push(`the page is ${wide} px wide`);
    console.log(JSON.stringify({ url, width, passes: found.passes.map((one) => one.id), told }));
    await page.close();
  }
  await browser.close();
})();
