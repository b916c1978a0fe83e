import { expect, test } from 'vitest';
import { freePort } from '../../../src/devnet/ports.ts';
import { noLook } from '../../../src/base/values/discovery/listing.ts';
import { beginListingLook, endListingLook, readListingLook } from '../../../src/jobs/store/listing-rounds.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import {
  otherItems,
  startDiscoveryService,
  type TestDiscoveryService,
} from '../../support/discovery-service.ts';
import { payTo, startTestGateway } from '../../support/gateway.ts';
import { operatorOf } from '../../support/operator.ts';
import { soonMs } from '../../support/time-limits.ts';
import { eventually } from '../../support/wait.ts';

const nowhere = 'http://127.0.0.1:9';
/** No request of these tests asks a chain or a facilitator. */
const chain = {
  rpcUrl: nowhere,
  facilitatorUrl: nowhere,
  token: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
  secondToken: '0xe7f1725e7734ce288f8367e1bb143e90bb3f0512',
} as const;
const metricsToken = 'a-token-of-the-metrics-with-32-letters';
const jobs = ['https://shop.example/x402/jobs/1/0', 'https://shop.example/x402/jobs/1/1'];
const ours = jobs.map((resource) => ({ resource, payTo }));
const others = otherItems(3);

async function startWatched(
  database: TestDatabase,
  service: TestDiscoveryService,
  { graceSecs = 0, timeoutMs = 10_000 } = {},
) {
  const gateway = await startTestGateway({
    database,
    chain,
    // with a port that the system chooses, the address is that of the port
    bind: `127.0.0.1:${await freePort()}`,
    top: 'public_url = "https://shop.example"',
    tables: `[metrics]\ntoken = "env:METRICS_TOKEN"\n[discovery]\nurl = "${service.url}"`,
    env: { METRICS_TOKEN: metricsToken },
    constants: { discovery: { graceSecs, timeoutMs } },
  });
  const figure = async (name: string): Promise<string | undefined> => {
    const { text } = await gateway.get('/metrics', { authorization: `Bearer ${metricsToken}` });
    const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`));
    return line?.split(' ').at(-1);
  };
  return { ...gateway, figure };
}

/** Has the service looked at once, and waits for the end of the look. */
async function look({ asOwner, pool }: TestDatabase): Promise<void> {
  await asOwner((owner) => owner.query(`update tollbook.task set due_at = now() where kind = 'listing'`));
  await eventually(async () => {
    // beyond the lease of a look under way
    const ended = `select 1 from tollbook.task where kind = 'listing' and due_at > now() + interval '30 minutes'`;
    expect((await pool.query(ended)).rowCount).toBe(1);
  });
}

/** Waits for an alert. Its end takes longer: other processes may still report it. */
const told = ({ pool }: TestDatabase, alert: string): Promise<void> =>
  eventually(async () => {
    const { rows } = await pool.query(
      `select kind || ' ' || subject as alert from tollbook.alert where is_firing`,
    );
    expect(rows.map((row) => row.alert)).toContain(alert);
  });

test('two gateways look in turns; a listing is gone after two conclusive looks, an unclear answer never counts as one, and each change is reported once', async () => {
  const service = await startDiscoveryService([...others, ...ours]);
  const { host } = new URL(service.url);
  const database = await createDatabase();
  const gateways = [await startWatched(database, service), await startWatched(database, service)];
  const operator = await operatorOf(database, ['status:read']);
  const everywhere = (part: object): Promise<void> =>
    eventually(async () => {
      for (const gateway of gateways)
        expect((await gateway.get('/status', operator)).json.jobs.discovery).toMatchObject(part);
    });
  await everywhere({ ok: true, service: host, listed_jobs: 2, gone_jobs: [], never_listed_jobs: [] });
  expect(service.asked).toEqual([`/base/discovery/merchant?payTo=${payTo}&limit=100&offset=0`]);

  service.items = [...others, ours[0]!];
  await look(database);
  await everywhere({ ok: true, listed_jobs: 2 });
  await look(database);
  await everywhere({ ok: false, listed_jobs: 1, gone_jobs: ['1/1'] });
  await told(database, 'listing_missing service 1');

  service.items = others;
  await look(database);
  await look(database);
  await everywhere({ ok: false, listed_jobs: 0, gone_jobs: ['1/0', '1/1'] });
  await told(database, `listing_gone ${host}`);
  for (const { figure } of gateways)
    expect([await figure('tollbook_listing_up'), await figure('tollbook_discovery_up')]).toEqual(['0', '1']);

  service.items = [...others, ...ours];
  await look(database);
  await everywhere({ ok: true, listed_jobs: 2, gone_jobs: [] });
  service.fault = (_, response) => void response.end('<!doctype html>');
  for (let looks = 0; looks < 3; looks++) await look(database);
  const detail = 'its answers are not conclusive: malformed';
  await everywhere({ ok: false, detail, listed_jobs: 2, gone_jobs: [] });
  await told(database, `discovery_unknown ${host}`);
  for (const { figure } of gateways)
    expect([await figure('tollbook_listing_up'), await figure('tollbook_discovery_up')]).toEqual(['1', '0']);

  const { rows } = await database.pool.query(
    `select kind from tollbook.alert where kind ~ 'listing|discovery'`,
  );
  expect(rows).toHaveLength(3);
});

test('a job that was never listed raises no alert, and a gateway that stops ends its look immediately for the next one', async () => {
  const service = await startDiscoveryService([...others, ours[0]!]);
  const database = await createDatabase();
  const gateway = await startWatched(database, service, { timeoutMs: 60_000 });
  const operator = await operatorOf(database, ['status:read']);
  await eventually(async () => {
    const { json } = await gateway.get('/status', operator);
    expect(json.jobs.discovery).toMatchObject({ ok: true, listed_jobs: 1, never_listed_jobs: ['1/1'] });
  });
  service.asked.length = 0;
  service.fault = () => {};
  await database.asOwner((owner) =>
    owner.query(`update tollbook.task set due_at = now() where kind = 'listing'`),
  );
  await eventually(() => expect(service.asked).toHaveLength(1));
  const startedAt = performance.now();
  await gateway.stop();
  expect(performance.now() - startedAt).toBeLessThan(soonMs(1_000));
  const { dueAtSecs, state } = await readListingLook(database.pool, service.url);
  expect(dueAtSecs).toBeLessThanOrEqual(Date.now() / 1_000 + 1);
  expect(state.listings).toEqual([expect.objectContaining({ key: jobs[0], misses: 0 })]);
});

test('one gateway at a time looks; where it ends without a word another one looks, and the late result of the first changes nothing', async () => {
  const { pool, asOwner } = await createDatabase();
  const url = 'https://facilitator.example';
  const begun = await Promise.all([1, 2, 3].map(() => beginListingLook(pool, url, 60_000)));
  expect(begun.filter(Boolean)).toEqual([{ look: 1, state: noLook }]);
  await asOwner((owner) => owner.query(`update tollbook.task set due_at = now() where kind = 'listing'`));
  expect(await beginListingLook(pool, url, 60_000)).toMatchObject({ look: 2 });
  const state = { listings: [], lookedAtSecs: 7 };
  expect(await endListingLook(pool, url, { look: 1, state, dueMs: 0 })).toBe(false);
  expect(await endListingLook(pool, url, { look: 2, state, dueMs: 60_000 })).toBe(true);
  expect(await readListingLook(pool, url)).toMatchObject({ state });
  expect(await beginListingLook(pool, url, 60_000)).toBe(undefined);
  // another service has looks of its own
  expect(await beginListingLook(pool, `${url}/b`, 60_000)).toMatchObject({ look: 1, state: noLook });
});
