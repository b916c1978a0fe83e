// A runner that fetches its calls, so that it needs no address. Run it with
//   GATEWAY_URL=http://127.0.0.1:8402 RUNNER_TOKEN=… node_modules/.bin/node examples/poll-runner.ts
// if the token is that of a [[runners]] entry with mode = "lease". Ctrl-C finishes the running calls, then ends.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
// in your own project: from '@tollbook/runner'
import { createRunner, job, Refuse, RetryLater } from '../src/runner/index.ts';

const { GATEWAY_URL = 'http://127.0.0.1:8402', SERVICE_ID = '1', RUNNER_TOKEN_FILE } = process.env;
const { RUNNER_TOKEN = RUNNER_TOKEN_FILE ? readFileSync(RUNNER_TOKEN_FILE, 'utf8').trim() : '' } =
  process.env;
const serviceId = Number(SERVICE_ID);

/** Any bytes come back unchanged. */
const echo = job({
  serviceId,
  jobIndex: 0,
  on: { x402: ({ body, contentType = 'application/octet-stream' }) => ({ contentType, body }) },
});

/** A body like {"text": "…"} is checked before the handler runs; one that does not fit is refused. */
const shout = job({
  serviceId,
  jobIndex: 1,
  input: z.object({ text: z.string().max(10_000) }),
  on: {
    x402: async ({ input, signal }) => {
      if (input.text === '') throw new Refuse('there is nothing to shout');
      // pass the signal on: it aborts when the result of this run is no longer needed
      const weather = await fetch('data:text/plain,fair', { signal });
      if (!weather.ok) throw new RetryLater('the weather is not known yet', { afterSecs: 30 });
      return { text: `${input.text.toUpperCase()}!`, weather: await weather.text() };
    },
  },
});

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => stop.abort());

const runner = createRunner({
  jobs: [echo, shout],
  signal: stop.signal,
  onCall: (report) => console.log(JSON.stringify(report)),
  onError: (error) => console.error(`${error.code}: ${error.message}`, error.cause ?? ''),
});
console.log(`fetching the calls of service ${serviceId} from ${GATEWAY_URL}`);
await runner.poll({ gatewayUrl: GATEWAY_URL, token: RUNNER_TOKEN });
