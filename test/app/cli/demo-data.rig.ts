import { readdirSync } from 'node:fs';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readDescription } from '../../../src/devnet/description.ts';
import { freePort } from '../../../src/devnet/ports.ts';
import { endProcessesAround } from '../../support/processes.ts';
import { destroy, spawnTollbook, temporaryFolder, tollbook } from '../../support/program.ts';
import { timeLimits } from '../../support/time-limits.ts';

vi.setConfig({ testTimeout: 900_000 });

const dayMs = 86_400_000;

interface Group {
  readonly day: string | null;
  readonly model: string | null;
}

async function start(dir: string, until: RegExp) {
  const port = String(await freePort());
  const program = spawnTollbook(['start', '--dir', dir, '--port', port, '--demo-data']);
  onTestFinished(async () => {
    await destroy(program);
    await endProcessesAround(dir);
  });
  // a month takes longer than what tests wait for elsewhere
  const said = vi.waitFor(() => expect(program.stdout()).toMatch(until), {
    timeout: timeLimits.rigMs,
    interval: 200,
  });
  await Promise.race([said, program.exited]);
  expect(program.stdout()).toMatch(until);
  return program;
}

test('--demo-data makes a month of activity by requests, which the verifier calls sound, and the clocks are right after it', async () => {
  const dir = temporaryFolder();
  await start(dir, /Try next/);
  const devnet = await readDescription(dir);
  const { gateway_url: url, demo_user: user } = devnet;
  const signedIn = await fetch(`${url}/api/auth/sign-in/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(user),
  });
  expect(signedIn.status).toBe(200);
  const cookie = signedIn.headers
    .getSetCookie()
    .map((one) => one.split(';', 1)[0])
    .join('; ');
  const get = async (where: string): Promise<unknown> =>
    (await fetch(url + where, { headers: { cookie } })).json();
  const from = new Date(Date.now() - 31 * dayMs).toISOString().slice(0, 10);
  const to = new Date().toISOString().slice(0, 10);
  const byDay = (await get(`/v1/usage?from=${from}&to=${to}&by=day`)) as { rows: Group[] };
  // thirty days of activity begin at the present time of day: in the evening they touch 31 dates. Credit is bought at the end of the first
  // one, and early in the morning nothing of the last one is over
  expect([29, 30, 31]).toContain(byDay.rows.length);
  const byModel = (await get(`/v1/usage?from=${from}&to=${to}&by=model`)) as { rows: Group[] };
  expect(new Set(byModel.rows.map(({ model }) => model))).toEqual(new Set(['devnet-large', 'devnet-small']));
  const client = new pg.Client(devnet.database_url);
  await client.connect();
  const { rows } = await client.query<{ type: string; count: number }>(
    `select type, count(*)::int as count from tollbook.event group by type`,
  );
  const { rows: times } = await client.query<{ late: boolean; first: Date }>(
    `select abs(extract(epoch from tollbook.clock() - clock_timestamp())) > 1 as late, (select min(at) from tollbook.event) as first`,
  );
  await client.end();
  const counts = Object.fromEntries(rows.map(({ type, count }) => [type, count]));
  expect(counts).toMatchObject({ dead_lettered: 2, refunded: 1, key_revoked: 1, credit_topped_up: 4 });
  // twenty of the month, and the one of the start's own check
  expect(counts).toMatchObject({ payment_settled: 22, completed: 20 });
  expect(times[0]?.late).toBe(false);
  expect(Date.now() - (times[0]?.first.getTime() ?? 0)).toBeGreaterThan(29 * dayMs);
  const verified = await tollbook(['verify'], { DATABASE_URL: devnet.database_url });
  expect([verified.code, verified.stderr]).toEqual([0, '']);
});

test('demo data that was cut off is deleted, and no process is left', async () => {
  const dir = temporaryFolder();
  const program = await start(dir, /Making a month/);
  program.kill('SIGINT');
  expect(await program.ended).toMatchObject({ code: 0 });
  expect(readdirSync(dir).filter((name) => ['postgres', 'chain.json'].includes(name))).toEqual([]);
});
