"use strict";
// The table of requirements, narrowed by a text: every word has to be there.
const input = document.getElementById("filter");
const rows = [...document.getElementById("rows").rows].slice(1);
const update = () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const cells = (row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const text = cells(row);
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length}`;
};
input.addEventListener("input", update);
update();
