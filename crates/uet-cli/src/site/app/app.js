// The page of the app: packets, findings, contexts, forms and the model. The program in worker.js does the work.
"use strict";

const find = (id) => document.getElementById(id);
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const ROW = 22;
/// Length of a piece of work that leaves the page responsive, in milliseconds.
const SLICE = 10;
/// The maximum number of findings, of contexts, and of packets of a context that the page shows.
const MOST = 1000;
const RANKS = { note: 1, warning: 2, error: 3 };
const state = { input: null, packets: [], shown: [], words: [], scanned: 0, contexts: new Map(), findings: [], summary: null, selected: 0, forms: null, built: null, steps: [], step: 0 };

// ---- The program ----

let module, source;
const workers = new Map();

async function start() {
  const packed = Uint8Array.from(atob(find("program").textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
  source = URL.createObjectURL(new Blob([find("worker").textContent], { type: "text/javascript" }));
}

/// Runs a command in a worker of its own, once the program is there. `lines` receives its lines while it runs. Ends an earlier run of this command,
/// whose promise then stays open.
async function run(args, input, lines) {
  await started;
  workers.get(args[0])?.terminate();
  const worker = new Worker(source);
  workers.set(args[0], worker);
  return new Promise((done, fail) => {
    worker.onmessage = ({ data }) => {
      lines(data.lines);
      if (!data.ended) return;
      worker.terminate();
      data.error === null ? done() : fail(new Error(data.error));
    };
    worker.onerror = ({ message }) => fail(new Error(message));
    worker.postMessage({ module, args, input: input instanceof Blob ? input : new Blob([input]) });
  });
}

async function one(args, input) {
  const all = [];
  await run(args, input, (lines) => all.push(...lines));
  return all[0];
}

// ---- Packets ----

async function open(input, name) {
  Object.assign(state, { input, packets: [], contexts: new Map(), findings: [], summary: null, selected: 0 });
  filter();
  find("detail").replaceChildren();
  find("status").textContent = `reading ${name} …`;
  const pairs = new Map();
  // Millions of packets share few addresses.
  const shared = (ends) => {
    if (!pairs.has(`${ends}`)) pairs.set(`${ends}`, ends);
    return pairs.get(`${ends}`);
  };
  const add = ([, number, time, ends, context, side, again, text]) => {
    const packet = { number, time, ends: ends && shared(ends), context, side, again, text, rank: 0 };
    state.packets.push(packet);
    if (context === null) return;
    if (!state.contexts.has(context)) state.contexts.set(context, []);
    state.contexts.get(context).push(packet);
  };
  const take = (lines) => {
    for (const line of lines) {
      if (line[0] === "packet") add(line);
      else if (line[0] === "finding") {
        const [, number, , severity] = line;
        const packet = state.packets[number - 1];
        state.findings.push(line.slice(1));
        if (packet) packet.rank = Math.max(packet.rank, RANKS[severity]);
      } else state.summary = line[1];
    }
    find("status").textContent = `reading ${name}: ${state.packets.length} packets …`;
    scan();
    if (state.selected === 0 && state.packets.length > 0) select(1);
  };
  try {
    await run(["packets"], input, take);
    const { packets, contexts, judged, error } = state.summary;
    const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
    find("status").textContent =
      `${name}: ${counted(packets, "packet")}, ${counted(contexts, "context")}, ${counted(state.findings.length, "finding")}; ` +
      `${counted(judged, "requirement")} judged over several packets${error ? `. Then: ${error}` : ""}`;
  } catch (error) {
    find("status").textContent = `${name}: ${error.message}`;
  }
  findings();
  contexts();
  // Later packets can reveal errors of earlier ones.
  find("detail").querySelector("ul")?.replaceWith(findingsOf(state.selected));
}

function filter() {
  const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  Object.assign(state, { words, scanned: 0, shown: words.length ? [] : state.packets });
  scan();
}

let later;

/// Applies the filter to the packets that it has not seen, for some milliseconds at a time.
function scan() {
  clearTimeout(later);
  const matches = (packet) => state.words.every((word) => {
    if (/^#\d+$/.test(word)) return packet.context === Number(word.slice(1));
    return `${packet.ends ?? ""} ${packet.text}`.toLowerCase().includes(word);
  });
  const end = performance.now() + SLICE;
  while (state.words.length && state.scanned < state.packets.length && performance.now() < end) {
    const part = state.packets.slice(state.scanned, state.scanned + 500);
    state.shown.push(...part.filter(matches));
    state.scanned += part.length;
  }
  find("count").textContent = state.words.length ? `${state.shown.length} of ${state.packets.length}` : "";
  draw();
  if (state.words.length && state.scanned < state.packets.length) later = setTimeout(scan);
}

/// Draws the rows that are visible: a capture may have a million.
function draw() {
  const list = find("list");
  // Browsers limit the height of an element.
  const height = Math.min(state.shown.length * ROW, 8_000_000);
  find("space").style.height = `${height}px`;
  const scale = height > list.clientHeight ? list.scrollTop / (height - list.clientHeight) : 0;
  const fit = Math.ceil(list.clientHeight / ROW) + 1;
  const first = Math.max(0, Math.min(state.shown.length - fit + 1, Math.round(scale * (state.shown.length - fit + 1))));
  const rows = state.shown.slice(first, first + fit).map((packet) => {
    const row = make("div", { className: `row rank${packet.rank}${packet.number === state.selected ? " here" : ""}` });
    const from = packet.ends ? `${packet.ends[0]} > ${packet.ends[1]}` : "";
    for (const text of [packet.number, packet.time?.slice(11, 26) ?? "", from, packet.context === null ? "" : `#${packet.context}`, packet.text]) {
      row.append(make("span", { textContent: text }));
    }
    row.onclick = () => select(packet.number);
    return row;
  });
  find("window").style.top = `${list.scrollTop}px`;
  find("window").replaceChildren(...rows);
}

async function select(number) {
  state.selected = number;
  draw();
  const { input } = state;
  const packet = await one(["packet", String(number)], input);
  if (state.input === input) find("detail").replaceChildren(...details(packet, number));
}

/// Returns the bytes of a packet, the figures of its headers and its fields. Each highlights the others.
function details(packet, number) {
  const bytes = packet.hex.match(/../g) ?? [];
  const cells = bytes.map((byte) => make("span", { textContent: byte }));
  const table = make("table"), figures = make("div");
  const places = [];
  const light = (parts, lo, hi, on) => {
    [...parts, ...cells.slice(lo >> 3, (hi + 7) >> 3)].forEach((part) => part.classList.toggle("lit", on));
  };
  const listen = (part, parts, lo, hi) => {
    part.onmouseenter = () => light(parts(), lo, hi, true);
    part.onmouseleave = () => light(parts(), lo, hi, false);
  };
  for (const layer of packet.layers) {
    const title = `${layer.layer}: ${layer.title}`, figure = make("div", { className: "figure" });
    table.append(make("tr", {}, make("th", { colSpan: 4, textContent: title })));
    figures.append(make("b", { textContent: title }), figure);
    for (const [name, value, meaning, lo, hi] of layer.fields) {
      const row = make("tr", {}, ...[name, value, `${lo >> 3}.${lo & 7}`, meaning].map((textContent) => make("td", { textContent })));
      // A group of flags repeats the bits of its parts.
      const group = layer.fields.some(([other]) => other.startsWith(`${name}.`));
      const parts = [row, ...(group ? [] : boxes(name, value, lo - layer.offset * 8, hi - layer.offset * 8))];
      figure.append(...parts.slice(1));
      parts.forEach((part) => listen(part, () => parts, lo, hi));
      places.push([parts, lo, hi]);
      table.append(row);
    }
  }
  cells.forEach((cell, index) => {
    const [lo, hi] = [index * 8, index * 8 + 8];
    listen(cell, () => places.filter((place) => place[1] < hi && place[2] > lo).flatMap(([parts]) => parts), lo, hi);
  });
  const left = make("div", {}, figures, make("div", { className: "bytes" }, ...cells));
  return [make("h2", { textContent: packet.text }), findingsOf(number), make("div", { className: "columns" }, left, table)];
}

function findingsOf(number) {
  const found = state.findings.filter(([about]) => about === number);
  return make("ul", {}, ...found.map(([, id, severity, message]) => make("li", { className: severity, textContent: `${severity} ${id}: ${message}` })));
}

/// Returns the boxes of a field in a figure with 32 bits per line.
function boxes(name, value, lo, hi) {
  const all = [];
  for (let start = lo; start < hi; start = (Math.floor(start / 32) + 1) * 32) {
    const line = Math.floor(start / 32), end = Math.min(hi, line * 32 + 32);
    const box = make("span", { textContent: name.split(".").at(-1), title: `${name}: ${value}` });
    Object.assign(box.style, { gridRow: `${line + 1}`, gridColumn: `${start % 32 + 1} / ${end - line * 32 + 1}` });
    all.push(box);
  }
  return all;
}

function findings() {
  const rows = state.findings.slice(0, MOST).map(([number, id, severity, message]) => {
    const link = make("a", { href: "#", textContent: number });
    link.onclick = (event) => {
      event.preventDefault();
      show("packets");
      select(number);
    };
    const cells = [link, severity, id, message].map((content) => make("td", {}, content));
    return make("tr", { className: severity }, ...cells);
  });
  const more = state.findings.length > MOST ? [make("caption", { textContent: `the first ${MOST} of ${state.findings.length} findings` })] : [];
  find("findings").replaceChildren(...more, ...rows);
}

// ---- Contexts ----

function contexts() {
  const kinds = Object.entries(state.summary?.kinds ?? {}).map(([kind, count]) => `${count} ${kind}`);
  const more = state.contexts.size > MOST ? `; below, the first ${MOST} of ${state.contexts.size} contexts` : "";
  find("kinds").textContent = kinds.length ? `${kinds.join(", ")}; ${state.summary.retransmissions} retransmissions${more}` : "";
  const options = [...state.contexts].slice(0, MOST).map(([id, { length }]) => make("option", { value: id, textContent: `context ${id}: ${length} packets` }));
  find("context").replaceChildren(...options);
  ladder();
}

function ladder() {
  const all = state.contexts.get(Number(find("context").value)) ?? [];
  const packets = all.slice(0, MOST);
  const ends = packets.find(({ side }) => side === 0)?.ends ?? packets[0]?.ends?.slice().reverse() ?? ["", ""];
  const arrows = packets.map(({ number, time, side, again, rank, text }) => {
    const row = arrow(side, `${number}: ${text}`, `${time?.slice(17, 26) ?? ""}`, again ? "again" : "", rank);
    row.onclick = () => {
      show("packets");
      select(number);
    };
    return row;
  });
  const more = all.length > MOST ? [make("p", { textContent: `the first ${MOST} of ${all.length} packets` })] : [];
  find("ladder").replaceChildren(...more, make("div", { className: "ends" }, make("b", { textContent: ends[0] }), make("b", { textContent: ends[1] })), ...arrows);
}

function arrow(side, text, at, more, rank = 0) {
  const line = make("div", { className: `arrow side${side} rank${rank}`, textContent: `${text} ${more ? `(${more})` : ""}` });
  return make("div", { className: "rung" }, make("small", { textContent: at }), line);
}

// ---- Forms ----

async function forms() {
  state.forms = await one(["forms"], "");
  const options = (rows) => rows.map(([code, form], index) => make("option", { value: index, textContent: form.title }));
  find("pds").replaceChildren(...options(state.forms.pds.filter(([, form]) => form.name !== "prologue")));
  find("ses").replaceChildren(make("option", { value: "", textContent: "no semantic header" }), ...options(state.forms.ses));
  find("ext").replaceChildren(make("option", { value: "", textContent: "no extension" }), ...state.forms.ext.map((form, index) => make("option", { value: index, textContent: form.title })));
  chosen();
}

/// Shows the fields of the chosen headers.
function chosen() {
  const [types, pds] = state.forms.pds[find("pds").value];
  const [nexts, ses] = state.forms.ses[find("ses").value] ?? [[0], null];
  const ext = state.forms.ext[find("ext").value] ?? null;
  const given = { "pds.type": types[0], "pds.next_hdr": nexts[0] };
  const parts = [pds, ses, ext].filter(Boolean).map((form) => {
    const fields = form.fields.map((field) => {
      const { name, width, doc, choices } = field;
      const input = choices.length
        ? make("select", {}, ...choices.map(([value, text]) => make("option", { value, textContent: `${value} ${text}` })))
        : make("input", { value: "0", size: Math.min(20, Math.ceil(width / 4) + 2) });
      input.dataset.name = name;
      input.dataset.when = JSON.stringify(field.when);
      if (name in given) input.value = given[name];
      return make("label", { title: doc }, make("code", { textContent: name }), input);
    });
    return make("fieldset", {}, make("legend", { textContent: form.title }), ...fields);
  });
  find("forms").replaceChildren(...parts);
  build();
}

/// Builds the packet of the form. Fields whose condition does not hold are left out.
async function build() {
  const inputs = [...find("forms").querySelectorAll("[data-name]")];
  const values = Object.fromEntries(inputs.map((input) => [input.dataset.name, input.value]));
  const fields = {};
  for (const input of inputs) {
    const when = JSON.parse(input.dataset.when);
    const exists = !when || when[1].includes(Number(values[when[0]]));
    input.parentElement.hidden = !exists;
    const value = input.value.trim();
    if (exists) fields[input.dataset.name] = /^0x/i.test(value) ? value : Number(value);
  }
  const payload = find("payload").value.replace(/\s/g, "");
  try {
    state.built = await one(["build", "uet"], JSON.stringify({ fields, payload_hex: payload || null }));
    const found = state.built.findings.map(([id, severity, message]) => message);
    find("built").textContent = [state.built.text, state.built.hex, ...found].join("\n");
  } catch (error) {
    state.built = null;
    find("built").textContent = error.message;
  }
}

function copied(how) {
  const { hex, json, rust } = state.built;
  if (how === "hex") return hex;
  if (how === "json") return JSON.stringify(json);
  if (rust) return rust;
  // A secured packet, or one with reserved bits.
  const bytes = hex.match(/../g).map((byte) => `0x${byte}`).join(", ");
  return `let bytes = [${bytes}];\nlet packet = uet_wire::Uet::parse(&bytes)?;\n`;
}

// ---- The model ----

async function play() {
  const request = {
    operation: find("operation").value, bytes: Number(find("bytes").value), mode: find("mode").value,
    impairments: find("impairments").value,
  };
  try {
    state.steps = [];
    await run(["play"], JSON.stringify(request), (lines) => state.steps.push(...lines));
    state.step = 1;
    stage();
  } catch (error) {
    for (const id of ["stage", "status"]) find(id).textContent = error.message;
  }
}

function stage() {
  const rows = state.steps.slice(0, state.step).map(({ at, side, packet, note, impairments, lost, done }) => {
    const time = `${(at / 1000).toFixed(3)} µs`;
    if (packet) return arrow(side, packet, time, impairments, lost ? 3 : impairments ? 2 : 0);
    return make("div", { className: "rung" }, make("small", { textContent: time }), make("div", { className: `note side${side}${done === false ? " error" : ""}`, textContent: note }));
  });
  find("stage").replaceChildren(make("div", { className: "ends" }, make("b", { textContent: "initiator" }), make("b", { textContent: "target" })), ...rows);
  rows.at(-1)?.scrollIntoView({ block: "nearest" });
}

/// Returns the played packets as a capture (pcap with nanoseconds, raw IP).
function capture() {
  const word = (value) => [0, 8, 16, 24].map((shift) => (value >>> shift) & 255);
  const file = [0xa1b23c4d, 0x00040002, 0, 0, 262144, 101].flatMap(word);
  for (const { at, hex } of state.steps.filter(({ packet }) => packet)) {
    const bytes = hex.match(/../g).map((byte) => parseInt(byte, 16));
    const times = [Math.floor(at / 1e9), at % 1e9, bytes.length, bytes.length];
    file.push(...times.flatMap(word), ...bytes);
  }
  return new Blob([Uint8Array.from(file)]);
}

// ---- The page ----

function show(tab) {
  document.querySelectorAll("section[data-tab]").forEach((section) => (section.hidden = section.dataset.tab !== tab));
  document.querySelectorAll("#tabs button").forEach((button) => button.classList.toggle("here", button.dataset.tab === tab));
  if (tab === "packets") draw();
}

function listen() {
  find("file").onchange = ({ target }) => target.files[0] && open(target.files[0], target.files[0].name);
  document.ondragover = (event) => event.preventDefault();
  document.ondrop = (event) => {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (file) open(file, file.name);
  };
  find("paste").oninput = ({ target }) => target.value.trim() && open(new Blob([target.value]), "the pasted text");
  find("example").onclick = async () => {
    find("impairments").value = "trim 64 request 2; drop ack 1";
    await play();
    open(capture(), "a write of the model, of which a packet is trimmed and an ACK is lost");
  };
  find("filter").oninput = filter;
  find("list").onscroll = draw;
  find("list").onkeydown = (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const index = state.shown.findIndex(({ number }) => number === state.selected) + (move ?? 0);
    if (move && state.shown[index]) {
      event.preventDefault();
      select(state.shown[index].number);
    }
  };
  find("context").onchange = ladder;
  for (const id of ["pds", "ses", "ext"]) find(id).onchange = chosen;
  find("forms").oninput = build;
  find("payload").oninput = build;
  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.onclick = () => state.built && navigator.clipboard.writeText(copied(button.dataset.copy));
  });
  find("show").onclick = () => state.built && open(new Blob([`${state.built.hex}\n`]), "the built packet").then(() => show("packets"));
  find("play").onclick = play;
  find("step").onclick = () => {
    state.step = Math.min(state.step + 1, state.steps.length);
    stage();
  };
  find("all").onclick = () => {
    state.step = state.steps.length;
    stage();
  };
  find("record").onclick = () => open(capture(), "the played packets").then(() => show("packets"));
  document.querySelectorAll("#tabs button").forEach((button) => (button.onclick = () => show(button.dataset.tab)));
}

const started = start();
listen();
started.then(forms).then(() => {
  // A file may have been opened before.
  if (state.input === null) find("status").textContent = "ready";
}, (error) => {
  find("status").textContent = `this browser cannot run it: ${error.message}`;
});
