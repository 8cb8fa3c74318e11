// graphile-worker as `loadtest compare` runs it: the schema, the jobs, a worker.
// Tuned: the batching preset that its documentation measures with (24 jobs at once, local queue of 500, completions in
// batches without a delay, a pool of 25), and a poll every 100 ms (default 2,000), for it has no timer for future jobs.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { command, databaseUrl, jobSeconds, pause, sayReady, startLog, timed } from "./protocol.mjs";

const TASK = "compare";
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(level, message);
});

async function withUtils(use) {
  const utils = await makeWorkerUtils({ connectionString: databaseUrl, logger });
  try {
    await use(utils);
  } finally {
    await utils.release();
  }
}

async function work() {
  const write = startLog();
  const runner = await run({
    preset: {
      worker: {
        connectionString: databaseUrl,
        concurrentJobs: 24,
        maxPoolSize: 25,
        pollInterval: 100,
        preparedStatements: true,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger,
      },
    },
    taskList: {
      [TASK]: async (payload) => {
        write(payload.seq);
        if (jobSeconds) await pause(jobSeconds);
      },
    },
  });
  sayReady();
  await runner.promise;
}

if (command === "schema") {
  await withUtils((utils) => utils.migrate());
} else if (command === "enqueue") {
  await withUtils((utils) =>
    timed((jobs) =>
      utils.addJobs(jobs.map(({ seq, at }) => ({ identifier: TASK, payload: { seq }, runAt: at }))),
    ),
  );
} else {
  await work();
}
