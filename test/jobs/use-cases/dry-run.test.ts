import { expect, test } from 'vitest';
import { callerHeaders, permitted, refusedCaller, restrictedJobs } from '../../support/caller.ts';
import { useChain } from '../../support/devnet.ts';
import { startWithDatabase } from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { header, offerOf, signOffer } from '../../support/payer.ts';

const chain = useChain();
const documented = { chain, isDocumented: true };
const dry = (index: number) => `/x402/jobs/1/${index}/auth-dry-run`;

async function start(tables?: string) {
  const { database, gateway } = await startWithDatabase({
    ...documented,
    jobs: restrictedJobs(chain),
    ...(tables ? { tables } : {}),
  });
  return { database, gateway };
}

const names = (answer: { json: { checks: { name: string; passed: boolean }[] } }) =>
  answer.json.checks.map(({ name, passed }) => `${name} ${passed}`);

test('a delegated caller sees every check, and its nonce works in the paid flow afterwards', async () => {
  const { gateway } = await start();
  const caller = await callerHeaders('x', { nonce: 'tried' });
  for (let i = 0; i < 3; i++) {
    const run = await gateway.post(dry(1), { body: 'x', headers: caller });
    expect(run).toMatchObject({
      status: 200,
      json: {
        allowed: true,
        mode: 'restricted_paid',
        caller: permitted.address.toLowerCase(),
        service_id: 1,
        job_index: 1,
      },
    });
    expect(names(run)).toEqual(['caller true', 'signature true', 'nonce true', 'permission true']);
  }
  const offer = offerOf(await gateway.post('/x402/jobs/1/1', { body: 'x' }));
  const headers = { ...header(await signOffer(offer)), ...caller };
  expect((await gateway.post('/x402/jobs/1/1', { body: 'x', headers })).status).toBe(202);
  const used = await gateway.post(dry(1), { body: 'x', headers: caller });
  expect(used).toMatchObject({ status: 409, json: { allowed: false, code: 'signature_replay' } });
  expect(names(used)).toEqual(['caller true', 'signature true', 'nonce false', 'permission true']);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({
    dry_run: 4,
    dry_run_allowed: 3,
    dry_run_denied: 1,
    denied: 0,
    accepted: 1,
  });
});

test('whether a nonce is used is disclosed only after the signature over it is valid', async () => {
  const { gateway } = await start();
  const caller = await callerHeaders('x', { nonce: 'secret-use' });
  const offer = offerOf(await gateway.post('/x402/jobs/1/1', { body: 'x' }));
  await gateway.post('/x402/jobs/1/1', {
    body: 'x',
    headers: { ...header(await signOffer(offer)), ...caller },
  });
  const stranger = {
    ...(await callerHeaders('x', { nonce: 'secret-use', account: refusedCaller })),
    'x-net-caller': permitted.address,
  };
  const run = await gateway.post(dry(1), { body: 'x', headers: stranger });
  expect(run).toMatchObject({ status: 403, json: { code: 'signature_mismatch' } });
  expect(names(run)).toEqual(['caller true', 'signature false']);
});

test('where the payer is the caller, its payment proves it, X-NET-CALLER only asserts it, and neither is 400', async () => {
  const { gateway } = await start();
  const payment = header(
    await signOffer(offerOf(await gateway.post('/x402/jobs/1/0', { body: 'x' })), { account: permitted }),
  );
  const proven = await gateway.post(dry(0), { body: 'x', headers: payment });
  expect(proven).toMatchObject({
    status: 200,
    json: { allowed: true, caller: permitted.address.toLowerCase() },
  });
  expect(proven.json).not.toHaveProperty('asserted');
  const asserted = await gateway.post(dry(0), { body: 'x', headers: { 'x-net-caller': permitted.address } });
  expect(asserted).toMatchObject({ status: 200, json: { allowed: true, asserted: true } });
  const refused = await gateway.post(dry(0), {
    body: 'x',
    headers: { 'x-net-caller': refusedCaller.address },
  });
  expect(refused).toMatchObject({
    status: 403,
    json: { allowed: false, asserted: true, code: 'caller_not_permitted' },
  });
  expect(await gateway.post(dry(0), { body: 'x' })).toMatchObject({
    status: 400,
    json: { code: 'missing_caller' },
  });
  const forged = await gateway.post(dry(0), { body: 'x', headers: { 'payment-signature': 'AAAA' } });
  expect(forged).toMatchObject({ status: 402, json: { allowed: false, code: 'payment_invalid' } });
});

test('a disabled job with restricted fields is tried before it is enabled, and each answer says that it is not sold', async () => {
  const { gateway } = await start();
  const run = await gateway.post(dry(2), { body: 'x', headers: await callerHeaders('x', { jobIndex: 2 }) });
  expect(run).toMatchObject({ status: 200, json: { allowed: true, enabled: false, mode: 'disabled' } });
  expect(names(run)).toEqual(['caller true', 'signature true', 'nonce true', 'permission true']);
  const stranger = await callerHeaders('x', { jobIndex: 2, account: refusedCaller });
  expect(await gateway.post(dry(2), { body: 'x', headers: stranger })).toMatchObject({
    status: 403,
    json: { allowed: false, enabled: false, code: 'caller_not_permitted' },
  });
  const paid = await gateway.post('/x402/jobs/1/2', { body: 'x' });
  expect(paid).toMatchObject({ status: 403, json: { code: 'x402_disabled' } });
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({
    dry_run: 2,
    dry_run_allowed: 1,
    dry_run_denied: 1,
  });
});

test('a public job has no checks, a disabled one without fields is 403, one without a price 404', async () => {
  const { gateway } = await start();
  expect(await gateway.post(dry(3), { body: 'x' })).toMatchObject({
    status: 200,
    json: { allowed: true, enabled: true, checks: [] },
  });
  expect(await gateway.post(dry(4), { body: 'x' })).toMatchObject({
    status: 403,
    json: { allowed: false, enabled: false, code: 'x402_disabled', checks: [] },
  });
  expect(await gateway.post(dry(9), { body: 'x' })).toMatchObject({
    status: 404,
    json: { allowed: false, enabled: false, code: 'job_not_found' },
  });
});

test('a dry run changes no table except by its own event', async () => {
  const { database, gateway } = await start();
  // Written for any event, or every second: the log itself, what is derived from it, and heartbeats.
  const derived = /\.(event|lane|lane_\w+|log_\w+|ledger_cursor|projection|job_day|\w*process)$/;
  const counts = () =>
    database.asOwner(async (owner) => {
      const { rows } = await owner.query<{ name: string }>(
        `select format('%I.%I', schemaname, tablename) as name from pg_tables
          where schemaname in ('tollbook', 'identity')`,
      );
      const found: Record<string, string | undefined> = {};
      for (const { name } of rows.filter((row) => !derived.test(row.name)))
        found[name] = (await owner.query<{ count: string }>(`select count(*) from ${name}`)).rows[0]?.count;
      return found;
    });
  const before = await counts();
  expect(Object.keys(before)).toContain('tollbook.claim');
  await gateway.post(dry(1), { body: 'x', headers: await callerHeaders('x') });
  expect(await counts()).toEqual(before);
  expect((await allEvents(database.db)).map(({ type, data }) => [type, data])).toEqual([
    [
      'dry_run_allowed',
      {
        service_id: 1,
        job_index: 1,
        mode: 'delegated_caller_signature',
        caller: permitted.address.toLowerCase(),
      },
    ],
  ]);
});
