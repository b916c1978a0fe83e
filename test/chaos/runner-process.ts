/** A runner as a process of its own, so that it can die: its argument is its work, as JSON. Prints one line per run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRunner, type Job, job, type JobCall, Refuse, RetryLater } from '../../src/runner/index.ts';
import { sha256 } from '../../src/base/values/sha256.ts';
import { fleetWork, runnerToken, type RunnerWork } from './runner-work.ts';

const { mode, where, holdMs = 0, concurrency } = JSON.parse(process.argv[2] ?? '') as RunnerWork;

function report(call: JobCall | JobCall<undefined, 'webhook'>): void {
  const { callId, idempotencyKey, attempt, body } = call;
  const quoteDigest = 'quoteDigest' in call ? call.quoteDigest : '';
  const line = { callId, idempotencyKey, attempt, quoteDigest, bodySha256: sha256(body) };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Call id and attempt decide how long a call takes, and whether it fails once or for good. */
async function run(call: JobCall): Promise<string> {
  report(call);
  const { callId, attempt, body } = call;
  // a second attempt of a call that was held is as quick as others
  await sleep((attempt === 1 ? holdMs : 0) + ((callId * 37) % 120));
  if (callId % (holdMs > 0 ? 2 : 7) === 0 && attempt === 1) throw new RetryLater();
  const refusals = Number(/^refuse (\d) times/.exec(body.toString('latin1'))?.[1] ?? 0);
  if (attempt <= refusals) throw new Refuse('this call is refused at first');
  if (callId % 29 === 0) throw new Refuse('this call is always refused');
  return `done: ${callId}`;
}

const sold: Job[] = [
  job({ serviceId: 1, jobIndex: 0, on: { x402: run } }),
  job({ serviceId: 1, jobIndex: 1, on: { x402: run } }),
  job({ serviceId: 2, jobIndex: 0, on: { x402: run } }),
];
const triggered = job({
  serviceId: fleetWork.serviceId,
  jobIndex: 0,
  on: {
    async webhook(call) {
      report(call);
      await sleep(fleetWork.workMs);
      return 'done';
    },
  },
});

if (concurrency === undefined) {
  const runner = createRunner({ jobs: sold, timeoutMs: 8_000, concurrency: 8 });
  if (mode === 'push') await runner.listen({ secret: runnerToken, port: Number(where) });
  else {
    const often = { leaseSecs: 5, waitSecs: 1, max: 4 };
    await runner.poll({ gatewayUrl: where, token: runnerToken, services: [2], ...often });
  }
} else {
  const runner = createRunner({ jobs: [triggered], concurrency });
  const { runner: name, token, leaseSecs } = fleetWork;
  if (mode === 'lease') await runner.poll({ gatewayUrl: where, token, leaseSecs, max: 32, waitSecs: 5 });
  else {
    const [{ connect }, { jetstream }] = await Promise.all([
      import('@nats-io/transport-node'),
      import('@nats-io/jetstream'),
    ]);
    const servers = where.split(',');
    const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 200 });
    await runner.consume({ connection, jetstream: jetstream(connection), runner: name, token, leaseSecs });
  }
}
