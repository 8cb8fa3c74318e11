// What `loadtest compare` and the programs of peers say to each other: see protocol.py, which this repeats for Node.
import fs from "node:fs";
import path from "node:path";

const CHUNK = 1000;

export const databaseUrl = process.env.COMPARE_DATABASE_URL;
export const jobSeconds = Number(process.env.COMPARE_JOB_SECONDS ?? "0");
export const command = process.argv[2];

/** The jobs of the command line of `enqueue`, [{seq, at}, …] with `at` a Date, a chunk at a time. */
export function* chunks() {
  const [count, at, spacing] = process.argv.slice(3).map(Number);
  for (let first = 0; first < count; first += CHUNK) {
    const length = Math.min(CHUNK, count - first);
    yield Array.from({ length }, (_, n) => ({ seq: first + n, at: new Date((at + (first + n) * spacing) * 1000) }));
  }
}

/** A function that writes the start of job `seq` down, by one write. */
export function startLog() {
  const file = fs.openSync(path.join(process.env.COMPARE_STARTS, `${process.pid}.starts`), "a", 0o644);
  const record = Buffer.alloc(16);
  return (seq) => {
    record.writeDoubleLE(seq, 0);
    record.writeDoubleLE((performance.timeOrigin + performance.now()) / 1000, 8);
    fs.writeSync(file, record);
  };
}

export const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Run `create` over all chunks, one after another, and say how long that took. */
export async function timed(create) {
  const began = performance.now();
  for (const chunk of chunks()) await create(chunk);
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }));
}

export const sayReady = () => console.log("ready");
