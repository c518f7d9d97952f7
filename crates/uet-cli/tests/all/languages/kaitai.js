// `kaitai.js compile FILE.ksy FOLDER` compiles a description to JavaScript and Python. `kaitai.js read FOLDER FIELDS`
// reads packets from standard input, one in hexadecimal digits on each line. For each it prints a line of JSON: the
// headers with their fields, and the payload, or the error. FIELDS names the fields of each header.
"use strict";
const fs = require("fs");
const path = require("path");
const [command, ...files] = process.argv.slice(2);

async function compile(file, folder) {
    const compiler = require("kaitai-struct-compiler");
    const description = require("js-yaml").load(fs.readFileSync(file, "utf8"));
    for (const language of ["javascript", "python"]) {
        const out = await compiler.compile(language, description, null, false);
        Object.entries(out).forEach(([name, text]) => fs.writeFileSync(path.join(folder, name), text));
    }
    // No runtime here reads these: the compiler at least must accept the description for them.
    for (const language of ["java", "go", "csharp", "ruby", "rust", "cpp_stl"]) {
        const out = await compiler.compile(language, description, null, false);
        if (Object.keys(out).length === 0) throw new Error(`the compiler writes nothing for ${language}`);
    }
}

function read(folder, fields) {
    const { KaitaiStream } = require("kaitai-struct");
    const { Uet } = require(path.resolve(folder, "Uet.js"));
    const known = JSON.parse(fs.readFileSync(fields, "utf8"));
    const camel = name => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    const number = value => value instanceof Uint8Array
        ? BigInt("0x" + Buffer.from(value).toString("hex")).toString() : BigInt(Number(value)).toString();
    for (const line of fs.readFileSync(0, "utf8").split("\n").slice(0, -1)) {
        let out;
        try {
            const bytes = Buffer.from(line, "hex");
            const packet = new Uet(new KaitaiStream(Uint8Array.from(bytes).buffer));
            const names = ["tss", "tssSsi", "pds", "ses", "rendezvous", "atomic", "compareSwap"];
            const headers = names.map(name => packet[name]).filter(header => header);
            out = { headers: headers.map(header => {
                const name = Object.keys(known).find(name => Uet[camel("_" + name)] === header.constructor);
                const there = Object.keys(known[name]).map(id => [id, header[camel(id)]]);
                return [name, Object.fromEntries(there.filter(([, value]) => value !== undefined)
                    .map(([id, value]) => [id, number(value)]))];
            }), payload: Buffer.from(packet.payload).toString("hex") };
        } catch (error) {
            if (error.name !== "EOFError") throw error;
            out = { error: error.message };
        }
        console.log(JSON.stringify(out));
    }
}

({ compile, read })[command](...files);
