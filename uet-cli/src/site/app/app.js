// The page of the app: packets, findings, contexts, forms and the model. The program in worker.js does the work.
"use strict";

const find = (id) => document.getElementById(id);
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const ROW = 22;
const RANKS = { note: 1, warning: 2, error: 3 };
const state = { input: null, packets: [], shown: [], findings: [], summary: null, selected: 0, forms: null, built: null, steps: [], step: 0 };

// ---- The program ----

let worker, next = 0;
const waiting = new Map();

async function start() {
  const packed = Uint8Array.from(atob(find("program").textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
  worker = new Worker(URL.createObjectURL(new Blob([find("worker").textContent], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => {
    const command = waiting.get(data.id);
    if (!command) return;
    command.lines(data.lines);
    if (data.ended) {
      waiting.delete(data.id);
      data.error === null ? command.done() : command.fail(new Error(data.error));
    }
  };
  worker.postMessage({ module });
}

/// Runs a command. `lines` receives its lines while it runs.
function run(args, input, lines) {
  return new Promise((done, fail) => {
    const id = next++;
    waiting.set(id, { lines, done, fail });
    worker.postMessage({ id, args, input: input instanceof Blob ? input : new Blob([input]) });
  });
}

async function one(args, input) {
  const all = [];
  await run(args, input, (lines) => all.push(...lines));
  return all[0];
}

// ---- Packets ----

async function open(input, name) {
  Object.assign(state, { input, packets: [], shown: [], findings: [], summary: null, selected: 0 });
  find("detail").replaceChildren();
  find("status").textContent = `reading ${name} …`;
  const worst = (number, severity) => {
    const packet = state.packets[number - 1];
    if (packet) packet.rank = Math.max(packet.rank, RANKS[severity]);
  };
  const take = (lines) => {
    for (const line of lines) {
      if (line[0] === "packet") {
        const [, number, time, ends, context, side, again, text] = line;
        state.packets.push({ number, time, ends, context, side, again, text, rank: 0 });
      } else if (line[0] === "finding") {
        state.findings.push(line.slice(1));
        worst(line[1], line[3]);
      } else state.summary = line[1];
    }
    find("status").textContent = `reading ${name}: ${state.packets.length} packets …`;
    filter();
  };
  try {
    await run(["packets"], input, take);
    const { packets, contexts, judged, error } = state.summary;
    const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
    find("status").textContent =
      `${name}: ${counted(packets, "packet")}, ${counted(contexts, "context")}, ${counted(state.findings.length, "finding")}; ` +
      `${counted(judged, "requirement")} judged over several packets (by public evidence)${error ? `. Then: ${error}` : ""}`;
  } catch (error) {
    find("status").textContent = `${name}: ${error.message}`;
  }
  findings();
  contexts();
  if (state.packets.length > 0) select(1);
}

function filter() {
  const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (packet) => words.every((word) => {
    if (/^#\d+$/.test(word)) return packet.context === Number(word.slice(1));
    return `${packet.ends ?? ""} ${packet.text}`.toLowerCase().includes(word);
  });
  state.shown = words.length ? state.packets.filter(matches) : state.packets;
  find("count").textContent = words.length ? `${state.shown.length} of ${state.packets.length}` : "";
  draw();
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
  const packet = await one(["packet", String(number)], state.input);
  if (state.selected === number) find("detail").replaceChildren(...details(packet, number));
}

/// Returns the bytes and the fields of a packet. Each highlights the other.
function details(packet, number) {
  const bytes = packet.hex.match(/../g) ?? [];
  const cells = bytes.map((byte) => make("span", { textContent: byte }));
  const table = make("table");
  const light = (rows, lo, hi, on) => {
    rows.forEach((row) => row.classList.toggle("lit", on));
    cells.slice(lo >> 3, (hi + 7) >> 3).forEach((cell) => cell.classList.toggle("lit", on));
  };
  const places = [];
  for (const layer of packet.layers) {
    table.append(make("tr", {}, make("th", { colSpan: 4, textContent: `${layer.layer}: ${layer.title}` })));
    for (const [name, value, meaning, lo, hi] of layer.fields) {
      const row = make("tr", {}, ...[name, value, `${lo >> 3}.${lo & 7}`, meaning].map((textContent) => make("td", { textContent })));
      row.onmouseenter = () => light([row], lo, hi, true);
      row.onmouseleave = () => light([row], lo, hi, false);
      places.push([row, lo, hi]);
      table.append(row);
    }
  }
  cells.forEach((cell, index) => {
    const rows = places.filter(([, lo, hi]) => lo < index * 8 + 8 && hi > index * 8).map(([row]) => row);
    cell.onmouseenter = () => light(rows, index * 8, index * 8 + 8, true);
    cell.onmouseleave = () => light(rows, index * 8, index * 8 + 8, false);
  });
  const found = state.findings.filter(([about]) => about === number);
  const list = make("ul", {}, ...found.map(([, id, severity, message]) => make("li", { className: severity, textContent: `${severity} ${id}: ${message}` })));
  return [make("h2", { textContent: packet.text }), list, make("div", { className: "bytes" }, ...cells), table];
}

function findings() {
  const rows = state.findings.slice(0, 10_000).map(([number, id, severity, message]) => {
    const link = make("a", { href: "#", textContent: number });
    link.onclick = (event) => {
      event.preventDefault();
      show("packets");
      select(number);
    };
    const cells = [link, severity, id, message].map((content) => make("td", {}, content));
    return make("tr", { className: severity }, ...cells);
  });
  find("findings").replaceChildren(...rows);
}

// ---- Contexts ----

function contexts() {
  const kinds = Object.entries(state.summary?.kinds ?? {}).map(([kind, count]) => `${count} ${kind}`);
  find("kinds").textContent = kinds.length ? `${kinds.join(", ")}; ${state.summary.retransmissions} retransmissions` : "";
  const counts = new Map();
  for (const { context } of state.packets) {
    if (context !== null) counts.set(context, (counts.get(context) ?? 0) + 1);
  }
  const options = [...counts].slice(0, 5000).map(([id, count]) => make("option", { value: id, textContent: `context ${id}: ${count} packets` }));
  find("context").replaceChildren(...options);
  ladder();
}

function ladder() {
  const id = Number(find("context").value);
  const packets = state.packets.filter(({ context }) => context === id).slice(0, 2000);
  const ends = packets.find(({ side }) => side === 0)?.ends ?? packets[0]?.ends?.slice().reverse() ?? ["", ""];
  const arrows = packets.map(({ number, time, side, again, rank, text }) => {
    const row = arrow(side, `${number}: ${text}`, `${time?.slice(17, 26) ?? ""}`, again ? "again" : "", rank);
    row.onclick = () => {
      show("packets");
      select(number);
    };
    return row;
  });
  find("ladder").replaceChildren(make("div", { className: "ends" }, make("b", { textContent: ends[0] }), make("b", { textContent: ends[1] })), ...arrows);
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

listen();
start().then(forms).then(() => {
  find("status").textContent = "ready";
}, (error) => {
  find("status").textContent = `this browser cannot run it: ${error.message}`;
});
