// pg-boss as `loadtest compare` runs it: the schema, the jobs, a worker.
// Tuned: batches of 500 (default 1), a poll every 0.5 s (its minimum; default 2), no pause while batches are full.
import { PgBoss } from "pg-boss";
import { command, databaseUrl, jobSeconds, pause, sayReady, startLog, timed } from "./protocol.mjs";

const QUEUE = "compare";

/** An id that tells the harness which jobs are of this run. */
const idOf = (seq) => `00000000-0000-4000-8000-${seq.toString(16).padStart(12, "0")}`;

async function started() {
  const boss = new PgBoss({ connectionString: databaseUrl });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
}

async function schema() {
  const boss = await started();
  await boss.createQueue(QUEUE);
  await boss.stop({ graceful: false });
}

async function enqueue() {
  const boss = await started();
  await timed((jobs) =>
    boss.insert(QUEUE, jobs.map(({ seq, at }) => ({ id: idOf(seq), data: { seq }, startAfter: at }))),
  );
  await boss.stop({ graceful: false });
}

async function work() {
  const write = startLog();
  const boss = await started();
  await boss.work(QUEUE, { batchSize: 500, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }, async (jobs) => {
    for (const job of jobs) write(job.data.seq);
    if (jobSeconds) await pause(jobSeconds);
  });
  sayReady();
}

if (command === "schema") await schema();
else if (command === "enqueue") await enqueue();
else await work();
