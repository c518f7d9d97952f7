"use strict";
// Nothing here fetches anything: the page is one file.
const by = (id) => document.getElementById(id);
document.documentElement.classList.add("scripted");

// Lists that words and a verdict narrow; every word has to be there.
const lists = [["failures", "failure-count"], ["rules", "rule-count"], ["rows", "count"]].filter(([id]) => by(id));
const entries = lists.map(([id, count]) => {
  const items = by(id).rows ? [...by(id).rows].slice(1) : [...by(id).children];
  const text = (item) => (item.cells ? [...item.cells] : [item]).map((part) => part.textContent).join(" ").toLowerCase();
  return { count: by(count), items: items.map((item) => ({ item, text: text(item) })) };
});
const chips = [...document.querySelectorAll(".chips button")];
let verdict = "";
const update = () => {
  const words = by("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { count, items } of entries) {
    let shown = 0;
    for (const { item, text } of items) {
      const judged = item.dataset.verdict;
      item.hidden = !words.every((word) => text.includes(word)) || Boolean(judged && verdict && judged !== verdict);
      shown += !item.hidden;
    }
    count.textContent = `${shown} of ${items.length}`;
  }
};
by("filter").addEventListener("input", update);
for (const chip of chips) {
  chip.addEventListener("click", () => {
    verdict = chip.dataset.verdict;
    chips.forEach((other) => other.classList.toggle("on", other === chip));
    update();
  });
}
for (const link of document.querySelectorAll("[data-search]")) {
  link.addEventListener("click", () => {
    by("filter").value = link.dataset.search;
    update();
  });
}
update();

// A packet of a ladder shows its fields, in place of those of another packet.
for (const packet of document.querySelectorAll("[data-fields]")) {
  const show = () => {
    const chosen = by(packet.dataset.fields);
    for (const other of chosen.parentNode.querySelectorAll("details")) other.open = other === chosen;
    chosen.scrollIntoView({ block: "nearest" });
  };
  packet.addEventListener("click", show);
  packet.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      show();
    }
  });
}
