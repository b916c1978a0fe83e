/**
 * One runner of the fleet: takes calls by leases or from the broker, and writes a line for each run that it begins and ends. Arguments:
 * the mode, the URLs, separated by commas, and how many calls it runs at once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createRunner, job } from '../../src/runner/index.ts';
import { fleet } from './names.ts';

const [mode, urls = '', concurrency = '16'] = process.argv.slice(2);
const servers = urls.split(',');

const work = job({
  serviceId: fleet.serviceId,
  jobIndex: 0,
  on: {
    async webhook({ callId, attempt, idempotencyKey }) {
      process.stdout.write(`run ${callId} ${attempt} ${idempotencyKey}\n`);
      await sleep(fleet.workMs);
      return 'done';
    },
  },
});
const runner = createRunner({
  jobs: [work],
  concurrency: Number(concurrency),
  onError: ({ code, message }) => process.stderr.write(`${code} ${message}\n`),
});
const { runner: name, token, leaseSecs } = fleet;
process.stdout.write('started\n');
if (mode === 'jetstream') {
  const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 200 });
  await runner.consume({ connection, jetstream: jetstream(connection), runner: name, token, leaseSecs });
} else {
  const gatewayUrl = servers[Math.floor(Math.random() * servers.length)] ?? '';
  await runner.poll({ gatewayUrl, token, leaseSecs, max: 32, waitSecs: 5 });
}
