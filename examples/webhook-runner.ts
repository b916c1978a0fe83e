// A runner whose job is called by paid requests and by webhooks. Run it with
//   GATEWAY_URL=http://127.0.0.1:8402 RUNNER_TOKEN=… node_modules/.bin/node examples/webhook-runner.ts
// if the gateway has a [[triggers]] entry with kind = "webhook" for the job. examples/send-webhook.sh sends one.
import { z } from 'zod';
// in your own project: from '@tollbook/runner'
import { createRunner, type Handler, job } from '../src/runner/index.ts';

const { GATEWAY_URL = 'http://127.0.0.1:8402', RUNNER_TOKEN = '', SERVICE_ID = '1' } = process.env;
const order = z.object({ order: z.number() });

/** The same work for both: `trigger` tells them apart, also to the type checker. */
const ship: Handler<z.infer<typeof order>, 'x402' | 'webhook'> = (call) => ({
  shipped: call.input.order,
  because: call.trigger === 'x402' ? `paid: ${call.quoteDigest}` : `${call.triggerName}: ${call.triggerId}`,
});

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => stop.abort());

const runner = createRunner({
  jobs: [
    job({ serviceId: Number(SERVICE_ID), jobIndex: 0, input: order, on: { x402: ship, webhook: ship } }),
  ],
  signal: stop.signal,
  onCall: (report) => console.log(JSON.stringify(report)),
  onError: (error) => console.error(`${error.code}: ${error.message}`, error.cause ?? ''),
});
await runner.poll({ gatewayUrl: GATEWAY_URL, token: RUNNER_TOKEN });
