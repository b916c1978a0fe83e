/** A runner as its own process, so that it can die: `push PORT` or `lease GATEWAY_URL`, its token, and for how long it holds calls. Prints one line per run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRunner, type Job, job, type JobCall, Refuse, RetryLater } from '../../src/runner/index.ts';
import { sha256 } from '../../src/base/values/sha256.ts';

const [mode = '', where = '', secret = '', hold = '0'] = process.argv.slice(2);
const holdMs = Number(hold);

/** Call id and attempt decide how long a call takes, and whether it fails once or for good. */
async function run({ callId, idempotencyKey, attempt, quoteDigest, body }: JobCall): Promise<string> {
  const line = { callId, idempotencyKey, attempt, quoteDigest, bodySha256: sha256(body) };
  process.stdout.write(`${JSON.stringify(line)}\n`);
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
const runner = createRunner({ jobs: sold, timeoutMs: 8_000, concurrency: 8 });
if (mode === 'push') await runner.listen({ secret, port: Number(where) });
else
  await runner.poll({ gatewayUrl: where, token: secret, services: [2], leaseSecs: 5, waitSecs: 1, max: 4 });
