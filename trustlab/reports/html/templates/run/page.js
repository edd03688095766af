"use strict";
const contents = document.querySelector("nav details"), code = document.getElementById("code");
const narrow = matchMedia("(max-width: 900px)");
const fold = () => { contents.open = !narrow.matches; };
fold();
narrow.addEventListener("change", fold);
code.hidden = false;
code.addEventListener("click", () => {
  const cells = [...document.querySelectorAll("details.code")], open = cells.some((one) => !one.open);
  for (const one of cells) one.open = open;
  code.textContent = open ? "Hide all code" : "Show all code";
});
const answers = document.querySelector('header a[href="answers.html"]');
for (const table of answers ? document.querySelectorAll(".data table") : []) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const at = heads.indexOf("case_id");
  for (const { cells } of at < 0 ? [] : table.tBodies[0].rows) {
    if (cells.length !== heads.length) continue;
    const link = document.createElement("a");
    link.href = `answers.html#${encodeURIComponent(cells[at].textContent)}`;
    link.append(...cells[at].childNodes);
    cells[at].append(link);
  }
}
for (const cell of document.querySelectorAll(".data tbody > tr > *")) {
  cell.classList.toggle("short", cell.textContent.length < 36);
}
