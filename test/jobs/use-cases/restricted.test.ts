import { privateKeyToAccount } from 'viem/accounts';
import { afterEach, expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { type ContractArtifact, smartWallet } from '../../../src/devnet/contracts.ts';
import { setBroken, setPermitted } from '../../../src/devnet/registry.ts';
import { startEchoRunner } from '../../../src/devnet/runner.ts';
import { callerHeaders, permitted, refusedCaller, restrictedJobs } from '../../support/caller.ts';
import { deployContract } from '../../support/contracts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { failsBeforeBroadcast, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import {
  payTo,
  runnerSecret,
  startTestGateway,
  type TestGateway,
  type TestGatewayOptions,
} from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { landPayment } from '../../support/onchain.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { header, offerOf, payer, signOffer, v1Header } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const documented = { chain, isDocumented: true };
const payerJob = '/x402/jobs/1/0';
const delegated = '/x402/jobs/1/1';
const price = 3_264_000n;

afterEach(() => setBroken(chain.chain, chain.registry, false));

async function start(options: Partial<TestGatewayOptions> & { readonly rpcUrl?: string } = {}) {
  const database = await createDatabase();
  const { rpcUrl, ...rest } = options;
  const gateway = await startTestGateway({
    database,
    ...documented,
    jobs: restrictedJobs(chain, rpcUrl),
    ...rest,
  });
  return { database, gateway };
}

async function paymentFor(gateway: TestGateway, path: string, account = payer) {
  return signOffer(offerOf(await gateway.post(path, { body: 'x' })), { account });
}

/** A refused request is not charged: the balances of operator and payer are unchanged. */
async function expectUncharged<T>(act: () => Promise<T>, payers = [payer.address]): Promise<T> {
  const balances = () =>
    Promise.all([payTo as `0x${string}`, ...payers].map((address) => chain.balance(address)));
  const before = await balances();
  const result = await act();
  expect(await balances()).toEqual(before);
  return result;
}

test('a permitted payer is the caller, and the runner gets its address', async () => {
  const runner = await startEchoRunner({ secret: runnerSecret, port: 0 });
  const { database, gateway } = await start({ runnerUrl: runner.url });
  const payment = await paymentFor(gateway, payerJob, permitted);
  const answer = await gateway.post(payerJob, { body: 'x', headers: header(payment) });
  expect(answer.status).toBe(202);
  await eventually(() => expect(runner.calls).toHaveLength(1));
  expect(runner.calls[0]?.metadata['x-net-caller']).toBe(permitted.address.toLowerCase());
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.map(({ type }) => type)).toContain('auth_passed');
  await runner.close();
});

const permit = (isPermitted: boolean) =>
  setPermitted(chain.chain, chain.registry, {
    serviceId: 1,
    caller: refusedCaller.address.toLowerCase() as `0x${string}`,
    permitted: isPermitted,
  });

test('a payer who is not permitted gets a 403 and is not charged, and its receipt says refused', async () => {
  const { database, gateway } = await start();
  const payment = await paymentFor(gateway, payerJob, refusedCaller);
  const send = () => gateway.post(payerJob, { body: 'x', headers: header(payment) });
  const answer = await expectUncharged(send, [refusedCaller.address]);
  expect(answer).toMatchObject({ status: 403, json: { code: 'caller_not_permitted' } });
  const digest = payment.accepted.extra['quoteDigest'];
  expect((await gateway.get(`/x402/receipts/${digest}`)).json).toMatchObject({
    state: 'refused',
    paid: false,
  });
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ denied: 1, accepted: 0 });
  expect((await allEvents(database.db)).some(({ type }) => type === 'settlement_started')).toBe(false);

  await permit(true);
  // a copy of what was refused is not started: its payer may have signed another payment
  expect(await send()).toMatchObject({ status: 402, json: { reason: 'request_refused' } });
  const anew = header(await paymentFor(gateway, payerJob, refusedCaller));
  expect((await gateway.post(payerJob, { body: 'x', headers: anew })).status).toBe(202);
  await permit(false);
});

test('a permitted caller that is not the payer calls by its signature, over an empty body too', async () => {
  const { gateway } = await start();
  for (const body of ['x', '']) {
    const headers = { ...header(await paymentFor(gateway, delegated)), ...(await callerHeaders(body)) };
    expect((await gateway.post(delegated, { body, headers })).status).toBe(202);
  }
});

type Headers = Record<string, string>;
const nowSecs = Math.floor(Date.now() / 1_000);
const withHeader = (name: string, value: string) => async () => ({
  ...(await callerHeaders('x')),
  [name]: value,
});

/** One for each check; the others of each are in test/payments/rules/caller-signature.test.ts. */
const refusals: readonly [name: string, status: number, code: string, headers: () => Promise<Headers>][] = [
  ['no headers', 400, 'missing_caller', async () => ({})],
  ['an expiry that is over', 403, 'signature_expired', () => callerHeaders('x', { expiry: nowSecs - 1 })],
  ['a signature over another job', 403, 'signature_mismatch', () => callerHeaders('x', { jobIndex: 2 })],
  [
    'the signature of another account',
    403,
    'signature_mismatch',
    withHeader('x-net-caller', refusedCaller.address),
  ],
  [
    'a caller who is not permitted',
    403,
    'caller_not_permitted',
    () => callerHeaders('x', { account: refusedCaller }),
  ],
];

test('a delegated call with anything wrong in its headers is refused with its code and not charged, and the same payment succeeds afterwards', async () => {
  const { database, gateway } = await start();
  for (const [name, status, code, headersOf] of refusals) {
    const payment = header(await paymentFor(gateway, delegated));
    const headers = await headersOf();
    const answer = await expectUncharged(() =>
      gateway.post(delegated, { body: 'x', headers: { ...payment, ...headers } }),
    );
    expect([name, answer.status, answer.json.code]).toEqual([name, status, code]);
    const good = await callerHeaders('x');
    const paid = await gateway.post(delegated, { body: 'x', headers: { ...payment, ...good } });
    expect([name, paid.status]).toEqual([name, 202]);
  }
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const denied = events.flatMap((event) => (event.type === 'auth_denied' ? [event.data.code] : []));
  expect(denied).toEqual(refusals.map(([, , code]) => code));
});

test('of twenty concurrent payments with one nonce one is accepted, nineteen are not charged, and a repetition of the one is recognised', async () => {
  // all are verified at once: on a busy machine none may be refused because that takes long
  const { database, gateway } = await start({ constants: { jobs: { facilitatorVerifyTimeoutMs: 50_000 } } });
  const accounts = Array.from({ length: 20 }, (_, i) =>
    privateKeyToAccount(`0x${(1_000 + i).toString(16).padStart(64, '0')}`),
  );
  await Promise.all(accounts.map(({ address }) => chain.mint(address, 10_000_000n)));
  const before = await chain.balance(payTo);
  const caller = await callerHeaders('x', { nonce: 'only-once' });
  const requests = await Promise.all(
    accounts.map(async (account) => ({
      ...header(await paymentFor(gateway, delegated, account)),
      ...caller,
    })),
  );
  const answers = await Promise.all(
    requests.map((headers) => gateway.post(delegated, { body: 'x', headers })),
  );
  const taken = answers.findIndex(({ status }) => status === 202);
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
  const others = answers.filter((_, index) => index !== taken);
  expect(new Set(others.map(({ status, json }) => `${status} ${json.code}`))).toEqual(
    new Set(['409 signature_replay']),
  );
  expect((await chain.balance(payTo)) - before).toBe(price);
  const balances = await Promise.all(accounts.map(({ address }) => chain.balance(address)));
  expect(balances.filter((balance) => balance === 10_000_000n)).toHaveLength(19);
  const again = await gateway.post(delegated, { body: 'x', headers: requests[taken]! });
  expect(again).toMatchObject({ status: 202, json: { call_id: answers[taken]?.json.call_id } });
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, replay_denied: 19 });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  // each event names the caller, the hash of the nonce, the job and the quote that has used it: its reader need follow nothing
  const denied = events.filter(({ type }) => type === 'nonce_replay_denied').map(({ data }) => data);
  const used = {
    service_id: 1,
    job_index: 1,
    caller: permitted.address.toLowerCase(),
    caller_nonce_sha256: sha256('only-once'),
    used_by_quote: events.find(({ type }) => type === 'auth_passed')?.stream,
  };
  expect(denied).toEqual(Array.from({ length: 19 }, () => expect.objectContaining(used)));
});

test('a used nonce is free on another job and for another caller', async () => {
  const { gateway } = await start();
  await setPermitted(chain.chain, chain.registry, {
    serviceId: 1,
    caller: payer.address.toLowerCase() as `0x${string}`,
    permitted: true,
  });
  for (const account of [permitted, payer]) {
    const headers = {
      ...header(await paymentFor(gateway, delegated)),
      ...(await callerHeaders('x', { nonce: 'n', account })),
    };
    expect((await gateway.post(delegated, { body: 'x', headers })).status).toBe(202);
  }
});

test('one delegated signature buys one call, also if a payment that was refused lands late', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const { gateway, database } = await start({ facilitatorUrl: proxy.url });
  const caller = await callerHeaders('x', { nonce: 'again' });
  const first = await paymentFor(gateway, delegated);
  proxy.faults.settle = failsBeforeBroadcast;
  const pay = async (payment = first) =>
    gateway.post(delegated, { body: 'x', headers: { ...header(payment), ...caller } });
  expect((await pay()).status).toBe(402);
  proxy.faults.settle = 'pass';
  const second = await paymentFor(gateway, delegated);
  expect(await expectUncharged(() => pay(second))).toMatchObject({
    status: 409,
    json: { code: 'signature_replay' },
  });
  await landPayment(chain.rpcUrl, first);
  await eventually(async () => expect((await pay()).status).toBe(202));
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1 });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a permission contract that reverts is 503, not a refusal of the caller: nothing is charged and the nonce stays free', async () => {
  const { gateway } = await start();
  await setBroken(chain.chain, chain.registry, true);
  const payment = header(await paymentFor(gateway, delegated));
  const caller = await callerHeaders('x', { nonce: 'still-free' });
  const send = () => gateway.post(delegated, { body: 'x', headers: { ...payment, ...caller } });
  const answer = await expectUncharged(send);
  expect(answer).toMatchObject({ status: 503, json: { code: 'permission_check_failed' } });
  expect(answer.headers.get('retry-after')).not.toBeNull();
  await setBroken(chain.chain, chain.registry, false);
  expect((await send()).status).toBe(202);
});

test('if the facilitator names another payer, the settlement is unknown and the operator is alerted', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const { database, gateway } = await start({ facilitatorUrl: proxy.url });
  proxy.faults.settle = {
    change: (answer) => ({ ...answer, payer: privateKeyToAccount(devnetKeys.operator).address }),
  };
  const payment = await paymentFor(gateway, payerJob, permitted);
  const answer = await gateway.post(payerJob, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
  const mismatch = (await allEvents(database.db)).find(({ type }) => type === 'payer_mismatch');
  expect(mismatch?.data).toMatchObject({ payer: permitted.address.toLowerCase() });
});

/** A contract account of the permitted caller's key, permitted itself. */
async function contractCaller(artifact: ContractArtifact, args: unknown[]): Promise<`0x${string}`> {
  const caller = await deployContract(chain.rpcUrl, artifact, args);
  await setPermitted(chain.chain, chain.registry, { serviceId: 1, caller, permitted: true });
  return caller;
}

test('a contract account is a caller only if its contract accepts the signature (ERC-1271)', async () => {
  const { gateway } = await start();
  const caller = await contractCaller(smartWallet, [permitted.address]);
  const send = async (account = permitted) => {
    const headers = { ...(await callerHeaders('x', { account })), 'x-net-caller': caller };
    return gateway.post(delegated, {
      body: 'x',
      headers: { ...header(await paymentFor(gateway, delegated)), ...headers },
    });
  };
  expect((await send()).status).toBe(202);
  expect(await expectUncharged(() => send(refusedCaller))).toMatchObject({
    status: 403,
    json: { code: 'signature_mismatch' },
  });
});

test('a dry run and the paid flow agree about a contract account that pays and calls', async () => {
  const { gateway } = await start();
  const job = '/x402/jobs/1/0';
  const wallet = await contractCaller(smartWallet, [permitted.address]);
  await chain.mint(wallet, 10_000_000n);
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const send = async (path: string, account = permitted) => {
    const payment = await signOffer(offer, { account, signed: { from: wallet } });
    return gateway.post(path, { body: 'x', headers: header(payment) });
  };
  const dryRun = await send(`${job}/auth-dry-run`);
  expect(dryRun).toMatchObject({ status: 200, json: { allowed: true, caller: wallet.toLowerCase() } });
  expect(dryRun.json).not.toHaveProperty('asserted');
  const forged = await send(`${job}/auth-dry-run`, refusedCaller);
  expect(forged).toMatchObject({ status: 402, json: { allowed: false, code: 'payment_invalid' } });
  expect((await send(job)).status).toBe(202);

  // a version 1 payment does not name its token, and may be in the second one
  const inSecond = offerOf(await gateway.post(job, { body: 'x' }));
  const { payload } = await signOffer(inSecond, {
    account: permitted,
    signed: { from: wallet },
    option: 1,
  });
  const v1 = v1Header({ payload });
  expect(await gateway.post(`${job}/auth-dry-run`, { body: 'x', headers: v1 })).toMatchObject({
    status: 200,
    json: { allowed: true, caller: wallet.toLowerCase() },
  });
});

test('a used nonce is refused before the permission contract is asked', async () => {
  const { gateway } = await start();
  const caller = await callerHeaders('x', { nonce: 'spent' });
  const send = async () =>
    gateway.post(delegated, {
      body: 'x',
      headers: { ...header(await paymentFor(gateway, delegated)), ...caller },
    });
  expect((await send()).status).toBe(202);
  await setBroken(chain.chain, chain.registry, true);
  expect(await send()).toMatchObject({ status: 409, json: { code: 'signature_replay' } });
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ replay_denied: 1, denied: 0 });
});

test('a refused caller writes nothing into the stream of a quote that another payer is paying', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const { database, gateway } = await start({ facilitatorUrl: proxy.url });
  const offer = offerOf(await gateway.post(delegated, { body: 'x' }));
  const mine = { ...header(await signOffer(offer)), ...(await callerHeaders('x')) };
  const stranger = {
    ...header(await signOffer(offer, { account: refusedCaller })),
    ...(await callerHeaders('x', { account: refusedCaller })),
  };
  // the stranger's verify ends only when the payment has been started
  proxy.faults.settle = {
    change: async (answer) => {
      const refused = await gateway.post(delegated, { body: 'x', headers: stranger });
      expect([403, 409]).toContain(refused.status);
      return answer;
    },
  };
  const paid = await gateway.post(delegated, { body: 'x', headers: mine });
  expect(paid.status).toBe(202);
  const events = (await allEvents(database.db)).filter(({ stream }) => stream === paid.json.quote_digest);
  expect(events.map(({ type }) => type)).not.toContain('auth_denied');
});
