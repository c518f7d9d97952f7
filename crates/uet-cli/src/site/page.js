"use strict";
// No request leaves this page: it works from a folder.
const by = (id) => document.getElementById(id);

// A list that a text narrows: every word has to be there.
function narrow(input, items, textOf) {
  const texts = items.map((item) => textOf(item).toLowerCase());
  const update = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    items.forEach((item, index) => {
      const fits = words.every((word) => texts[index].includes(word));
      item.hidden = !fits;
      shown += fits;
    });
    by("count").textContent = `${shown} of ${items.length}`;
  };
  input.addEventListener("input", update);
  update();
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function show(vector) {
  const bytes = element("div", undefined, "bytes");
  const cells = vector.hex.match(/../g)?.map((digits) => element("span", digits, "payload")) ?? [];
  bytes.append(...cells);

  const table = element("table");
  const ofByte = cells.map(() => []);
  for (const [title, at, fields] of vector.headers) {
    const head = table.insertRow();
    head.append(element("th", `${title}, from byte ${at}`));
    head.firstChild.colSpan = 3;
    for (const [name, bit, width, value] of fields) {
      const row = table.insertRow();
      const last = bit + width - 1;
      row.append(element("td", name), element("td", `${bit >> 3}.${bit & 7}, ${width} bits`), element("td", value));
      const own = cells.slice(bit >> 3, (last >> 3) + 1);
      own.forEach((cell, index) => {
        cell.classList.remove("payload");
        ofByte[(bit >> 3) + index].push(row);
      });
      const light = (on) => [row, ...own].forEach((one) => one.classList.toggle("lit", on));
      row.addEventListener("mouseenter", () => light(true));
      row.addEventListener("mouseleave", () => light(false));
    }
  }
  cells.forEach((cell, index) => {
    const light = (on) => [cell, ...ofByte[index]].forEach((one) => one.classList.toggle("lit", on));
    cell.title = `byte ${index}`;
    cell.addEventListener("mouseenter", () => light(true));
    cell.addEventListener("mouseleave", () => light(false));
  });
  const wrong = vector.wrong.map((text) => element("p", text, "wrong"));
  by("vector").replaceChildren(
    element("h2", vector.name), element("p", vector.about), element("p", vector.said), ...wrong, bytes, table);
}

if (by("names")) {
  const links = VECTORS.map((vector) => {
    const link = element("a", vector.name);
    link.href = `#${vector.name}`;
    link.dataset.text = `${vector.name} ${vector.about} ${vector.said}`;
    return link;
  });
  by("names").append(...links);
  const go = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const index = Math.max(0, VECTORS.findIndex((vector) => vector.name === name));
    links.forEach((link, at) => link.classList.toggle("here", at === index));
    if (VECTORS[index]) show(VECTORS[index]);
  };
  addEventListener("hashchange", go);
  go();
  narrow(by("find"), links, (link) => link.dataset.text);
}
if (by("filter")) {
  const items = by("rows") ? [...by("rows").rows].slice(1) : [...by("rules").children];
  narrow(by("filter"), items, (item) => item.textContent);
}
if (by("rules")) {
  // The address names a rule: open its timeline.
  const open = () => {
    const details = by(decodeURIComponent(location.hash.slice(1)))?.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", open);
  open();
}
