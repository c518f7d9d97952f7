// Runs one command of the program in WebAssembly. The page and the program never see more of the file than they read.
"use strict";

const CHUNK = 1 << 20;
/// Number of lines that the page receives at once. It is busy with them for some milliseconds.
const BATCH = 1000;

/// Ends the program from inside a call.
class Exit extends Error {}

/// The system calls that the program needs: arguments, an input, outputs, clocks. Everything else is not there.
function system(args, input, print) {
  const encoder = new TextEncoder();
  const texts = ["uet", ...args].map((text) => encoder.encode(text + "\0"));
  let memory, at = 0, window = { from: 0, bytes: new Uint8Array(0) };
  const view = () => new DataView(memory.buffer);

  /// Copies the next bytes of the input, and returns how many.
  function read(target) {
    if (at >= window.from + window.bytes.length) {
      const blob = input.slice(at, at + CHUNK);
      window = { from: at, bytes: new Uint8Array(new FileReaderSync().readAsArrayBuffer(blob)) };
    }
    const start = at - window.from;
    const part = window.bytes.subarray(start, start + target.length);
    target.set(part);
    at += part.length;
    return part.length;
  }

  /// Calls `each` with every buffer of a list, until one returns less than the buffer's length.
  function buffers(list, count, done, each) {
    let total = 0;
    for (let index = 0; index < count; index++) {
      const [start, length] = [0, 4].map((part) => view().getUint32(list + index * 8 + part, true));
      const moved = each(new Uint8Array(memory.buffer, start, length));
      total += moved;
      if (moved < length) break;
    }
    view().setUint32(done, total, true);
    return 0;
  }

  const calls = {
    args_sizes_get(count, size) {
      view().setUint32(count, texts.length, true);
      view().setUint32(size, texts.reduce((sum, text) => sum + text.length, 0), true);
      return 0;
    },
    args_get(list, buffer) {
      for (const [index, text] of texts.entries()) {
        view().setUint32(list + index * 4, buffer, true);
        new Uint8Array(memory.buffer, buffer).set(text);
        buffer += text.length;
      }
      return 0;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    fd_read: (file, list, count, done) => (file === 0 ? buffers(list, count, done, read) : 8),
    fd_write(file, list, count, done) {
      return buffers(list, count, done, (bytes) => {
        print(file, bytes.slice());
        return bytes.length;
      });
    },
    fd_prestat_get: () => 8,
    random_get(start, length) {
      crypto.getRandomValues(new Uint8Array(memory.buffer, start, length));
      return 0;
    },
    clock_time_get(clock, precision, result) {
      view().setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    proc_exit(code) {
      throw Object.assign(new Exit(), { code });
    },
  };
  const missing = () => 52;
  const all = new Proxy(calls, { get: (known, name) => known[name] ?? missing });
  return { imports: all, use: (instance) => (memory = instance.exports.memory) };
}

/// Runs a command, and posts its lines in batches.
function run({ module, args, input }) {
  const decoder = new TextDecoder();
  let rest = "", lines = [], errors = "";
  function print(file, bytes) {
    const text = decoder.decode(bytes, { stream: true });
    if (file === 2) {
      errors += text;
      return;
    }
    const parts = (rest + text).split("\n");
    rest = parts.pop();
    for (const part of parts) lines.push(JSON.parse(part));
    if (lines.length >= BATCH) {
      postMessage({ lines });
      lines = [];
    }
  }
  const { imports, use } = system(args, input, print);
  const names = WebAssembly.Module.imports(module).map(({ name }) => name);
  const wasi_snapshot_preview1 = Object.fromEntries(names.map((name) => [name, imports[name]]));
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1 });
  use(instance);
  let code = 0;
  try {
    instance.exports._start();
  } catch (error) {
    if (!(error instanceof Exit)) errors += error;
    code = error.code ?? 1;
  }
  postMessage({ lines, ended: true, error: code === 0 ? null : errors.trim() || `exit code ${code}` });
}

onmessage = ({ data }) => run(data);
