// A runner for unpaid calls: those of a schedule and those of a contract's events. Run it with
//   GATEWAY_URL=http://127.0.0.1:8402 RUNNER_TOKEN=… node_modules/.bin/node examples/trigger-runner.ts
// if the token is that of a [[runners]] entry with mode = "lease". docs/triggers.md has the [[triggers]] that call it.
import { z } from 'zod';
// in your own project: from '@tollbook/runner'
import { createRunner, job } from '../src/runner/index.ts';

const { GATEWAY_URL = 'http://127.0.0.1:8402', RUNNER_TOKEN = '', SERVICE_ID = '1' } = process.env;
const serviceId = Number(SERVICE_ID);

/** A call that is delivered again must do nothing twice: the key says which call it is. A program of yours asks its database. */
const done = new Set<string>();

/** Its trigger is of kind = "cron". */
const report = job({
  serviceId,
  jobIndex: 0,
  input: z.object({ scheduled_at: z.iso.datetime() }),
  on: {
    cron: ({ idempotencyKey, input }) => {
      if (!done.has(idempotencyKey)) console.log(`the report of ${input.scheduled_at}`);
      done.add(idempotencyKey);
    },
  },
});

/** Its trigger is of kind = "chain", with the event Transfer. */
const deposit = job({
  serviceId,
  jobIndex: 1,
  input: z.object({ transaction: z.string(), args: z.object({ to: z.string(), value: z.coerce.bigint() }) }),
  on: {
    chain: ({ idempotencyKey, input }) => {
      const { to, value } = input.args;
      if (!done.has(idempotencyKey)) console.log(`${to} got ${value} in ${input.transaction}`);
      done.add(idempotencyKey);
    },
  },
});

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => stop.abort());

const runner = createRunner({
  jobs: [report, deposit],
  signal: stop.signal,
  onError: (error) => console.error(`${error.code}: ${error.message}`, error.cause ?? ''),
});
console.log(`fetching the calls of service ${serviceId} from ${GATEWAY_URL}`);
await runner.poll({ gatewayUrl: GATEWAY_URL, token: RUNNER_TOKEN });
