import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { useChain } from '../../../support/devnet.ts';
import { networkOf, runnerSecret, startWithDatabase } from '../../../support/gateway.ts';
import { isInstalled, packageEnvironment } from '../../../support/installed.ts';
import { destroy, spawnProgram } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';
import { receiver, startEventChain, transferEvent } from './support.ts';

const chain = useChain();
const root = path.resolve(import.meta.dirname, '../../../..');
const env = { ORDERS: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' };
const tables = `
[[triggers]]
name = "orders"
kind = "webhook"
service_id = 1
job_index = 0
secret = "env:ORDERS"

[[runners]]
name = "fetches"
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;
const hasTools = isInstalled('curl') && isInstalled('openssl', 'version');

test.skipIf(!hasTools)(
  'examples/send-webhook.sh triggers the job of examples/webhook-runner.ts, once however often it is sent',
  async () => {
    const { database, gateway } = await startWithDatabase({ chain, tables, env });
    const runner = spawnProgram([process.execPath, 'examples/webhook-runner.ts'], root, {
      GATEWAY_URL: gateway.url,
      RUNNER_TOKEN: runnerSecret,
    });
    onTestFinished(() => runner.kill('SIGKILL'));
    const send = async (id: string, body: string): Promise<string> => {
      const sender = promisify(execFile)('bash', ['examples/send-webhook.sh', id], {
        cwd: root,
        env: {
          ...packageEnvironment(),
          WEBHOOK_URL: `${gateway.url}/triggers/webhook/orders`,
          WEBHOOK_SECRET: env.ORDERS,
        },
      });
      sender.child.stdin?.end(body);
      return (await sender).stdout;
    };
    const first = await send('order-7', '{"order":7}');
    expect(JSON.parse(first)).toMatchObject({ status: 'triggered' });
    expect(await send('order-7', '{"order":7}')).toBe(first);
    const [report] = await runner.says(/.*"outcome":"completed".*/);
    expect(JSON.parse(report)).toMatchObject({ trigger: 'webhook', triggerName: 'orders', via: 'lease' });
    const stored = await eventually(async () => {
      const { rows } = await database.pool.query<{ body: Buffer }>('select body from tollbook.call_result');
      expect(rows).toHaveLength(1);
      return rows;
    });
    expect(JSON.parse(String(stored[0]?.body))).toEqual({ shipped: 7, because: 'orders: order-7' });
    runner.kill('SIGTERM');
    await runner.exited;
  },
);

test('the runner of the examples does the calls of a schedule and those of the events of a contract', async () => {
  // the chain of the payments has its own id
  const events = await startEventChain({ chainId: 31_337 });
  onTestFinished(() => events.stop());
  const { database, gateway } = await startWithDatabase({
    chain,
    tables: `
[[runners]]
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"

[[triggers]]
name = "each-second"
kind = "cron"
service_id = 1
job_index = 0
schedule = "* * * * * *"

[[triggers]]
name = "deposits"
kind = "chain"
service_id = 1
job_index = 1
network = "eip155:31337"
addresses = ["${events.token}"]
event = "${transferEvent}"
filters = { to = "${receiver}" }
${networkOf('eip155:31337', events.url)}`,
  });
  const program = spawnProgram([process.execPath, 'examples/trigger-runner.ts'], root, {
    GATEWAY_URL: gateway.url,
    RUNNER_TOKEN: runnerSecret,
  });
  onTestFinished(() => destroy(program));
  await program.says(/fetching the calls of service 1/);
  await program.says(/the report of \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/);
  const { rows } = await eventually(async () => {
    const found = await database.pool.query(
      `select 1 from tollbook.task where kind = 'chain_trigger' and payload->>'reached' is not null`,
    );
    expect(found.rows).toHaveLength(1);
    return found;
  });
  expect(rows).toHaveLength(1);
  const [hash] = await events.mint(1_234);
  await program.says(new RegExp(`${receiver} got 1234 in ${hash}`));
});
