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
for (const cell of document.querySelectorAll(".data tbody > tr > *")) {
  cell.classList.toggle("short", cell.textContent.length < 36);
}
