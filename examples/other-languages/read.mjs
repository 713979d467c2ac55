// Lists the model and tool calls of a recording and checks its chains: node read.mjs RECORDING
// Exit code 0: every line is as it was written; 1: one is not, and no line after it is read. Needs no package.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";

// A line is {"event":E,"hash":H,"prevHash":P}, H = sha256(P + "|" + E): the bytes of E are cut out, never parsed to be
// hashed, and the line must be what it would be with the right hashes. What no newline ends was never written in full.
function* events(data) {
  let prevHash = "0".repeat(64);
  for (let from = 0, to; (to = data.indexOf("\n", from)) >= 0; from = to + 1) {
    const line = data.subarray(from, to);
    const event = line.subarray(9, -153);
    const hash = createHash("sha256").update(`${prevHash}|`).update(event).digest("hex");
    const tail = `,"hash":"${hash}","prevHash":"${prevHash}"}`;
    if (!line.equals(Buffer.concat([Buffer.from('{"event":'), event, Buffer.from(tail)]))) return yield null;
    yield JSON.parse(event);
    prevHash = hash;
  }
}

const [recording] = process.argv.slice(2);
const folders = [recording, join(recording, "sessions")].filter((folder) => existsSync(folder));
const files = folders.flatMap((folder) => readdirSync(folder).sort().map((name) => join(folder, name)));
for (const file of files.filter((name) => name.endsWith(".jsonl") && !name.endsWith(".content.jsonl"))) {
  let count = 0;
  for (const event of events(readFileSync(file))) {
    count += 1;
    if (event?.type === "NODE_RECORDED") console.log(`${event.seq} ${event.payload.type} ${event.payload.name}`);
    if (event) continue;
    console.log(`CHANGED ${basename(file)} line ${count}`);
    process.exitCode = 1;
  }
  console.log(`${basename(file)}: ${count} lines read`);
}
