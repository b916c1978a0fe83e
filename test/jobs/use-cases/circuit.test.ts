import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { smartWallet } from '../../../src/devnet/contracts.ts';
import { deployContract } from '../../support/contracts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';
import { header, offerOf, payer, payFor, quoteAndSign, signOffer } from '../../support/payer.ts';
import { operatorOf } from '../../support/operator.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const failuresToOpen = 5;
const refused = { status: 503, json: { code: 'facilitator_unavailable' } };

async function behindProxy(options: Partial<TestGatewayOptions> = {}) {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const database = await createDatabase();
  const { lines, logger } = logLines();
  const gateway = await startTestGateway({ database, chain, facilitatorUrl: proxy.url, logger, ...options });
  const count = (operation: string) => proxy.seen.filter((seen) => seen === operation).length;
  const circuitLogs = () => lines.filter(({ msg }) => /^the facilitator (gives no|answers again)/.test(msg));
  return { proxy, database, gateway, count, circuitLogs };
}
type Setup = Awaited<ReturnType<typeof behindProxy>>;

/** Everything fails, `/supported` too, until payments have opened the circuit. Only `pass` lets it close again. */
async function breakDown({ proxy, gateway }: Setup, operation: 'verify' | 'settle'): Promise<void> {
  for (const each of ['supported', 'verify', 'settle'] as const) proxy.faults[each] = 'server_error';
  if (operation === 'settle') proxy.faults.verify = 'pass';
  for (let i = 0; i < failuresToOpen; i++) {
    expect((await payFor(gateway, job)).status).toBe(503);
  }
  // one payer and one client: a probe confirms it
  await eventually(async () => expect((await gateway.get('/status')).json.status).toBe('degraded'));
}

async function started({ db }: Setup['database']): Promise<number> {
  return (await allEvents(db)).filter(({ type }) => type === 'settlement_started').length;
}

test('the circuit breaker opens after repeated failures: payments are 503 immediately until the facilitator answers again', async () => {
  const setup = await behindProxy();
  const { proxy, database, gateway, count, circuitLogs } = setup;
  await breakDown(setup, 'verify');
  const asked = count('verify');
  expect(asked).toBe(failuresToOpen);
  const before = await chain.balance(payTo);
  const payment = await quoteAndSign(gateway, job, 'x');
  const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject(refused);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(count('verify')).toBe(asked);
  expect(await chain.balance(payTo)).toBe(before);
  const status = await gateway.get('/status', await operatorOf(database, ['status:read']));
  expect(status.json.jobs.facilitator.detail).toContain('circuit breaker open');
  expect((await gateway.get('/x402/ready')).status).toBe(200);
  expect(circuitLogs()).toMatchObject([{ level: 40, cause: 'status_502' }]);
  const told = () => database.pool.query('select kind from tollbook.alert').then(({ rows }) => rows);
  await eventually(async () => expect(await told()).toContainEqual({ kind: 'facilitator_trouble' }));

  for (const each of ['supported', 'verify', 'settle'] as const) proxy.faults[each] = 'pass';
  await eventually(async () => {
    const paid = await gateway.post(job, { body: 'x', headers: header(payment) });
    expect(paid.status).toBe(202);
  });
  await eventually(async () => expect((await gateway.get('/status')).json.status).toBe('ok'));
  expect(circuitLogs()).toMatchObject([{ level: 40 }, { level: 30 }]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('with verify skipped no payment starts while the circuit is open, and an answered probe closes it', async () => {
  const setup = await behindProxy({ top: 'facilitator_verify = false' });
  const { proxy, database, gateway, count } = setup;
  await breakDown(setup, 'settle');
  expect(count('verify')).toBe(0);
  const payment = await quoteAndSign(gateway, job, 'x');
  const answer = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(answer).toMatchObject(refused);
  expect(count('verify')).toBe(0);
  expect(await started(database)).toBe(failuresToOpen);

  proxy.faults.supported = 'pass';
  await eventually(async () => {
    const again = await gateway.post(job, { body: 'x', headers: header(payment) });
    expect(again.json.code).toBe('settlement_pending');
  });
  expect(count('verify')).toBe(1);
  expect(await started(database)).toBe(failuresToOpen + 1);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

/** An account that signs nothing of value: it has no money and no code. */
const stranger = privateKeyToAccount(`0x${'5'.repeat(64)}`);

test('a stranger whose payments make the facilitator fail does not stop the payments of others', async () => {
  const { proxy, gateway, count } = await behindProxy();
  // as facilitators do at a malformed wrapped signature
  proxy.faults.verify = {
    failIf: ({ paymentPayload }) =>
      paymentPayload.payload.authorization.from === stranger.address.toLowerCase(),
  };
  for (let i = 0; i < 2 * failuresToOpen; i++) {
    const refusedOne = await payFor(gateway, job, 'x', { account: stranger });
    expect(refusedOne).toMatchObject(refused);
  }
  expect(count('verify')).toBe(2 * failuresToOpen);
  expect((await payFor(gateway, job)).status).toBe(202);
});

test('payments of three payers and three clients that all fail open the circuit, although the facilitator answers probes', async () => {
  const { proxy, gateway, count } = await behindProxy();
  proxy.faults.verify = 'server_error';
  for (let i = 0; i < 2 * failuresToOpen; i++) {
    const account = privateKeyToAccount(`0x${String((i % 3) + 1).padStart(64, '7')}`);
    const payment = await quoteAndSign(gateway, job, 'x', { account });
    const from = { 'x-forwarded-for': `10.0.0.${i % 3}` };
    expect(await gateway.post(job, { body: 'x', headers: { ...header(payment), ...from } })).toMatchObject(
      refused,
    );
  }
  expect(count('verify')).toBe(failuresToOpen);
});

const digits = (text: string, count: number): string => text.repeat(count).slice(0, count);
const wrapped = (signature: string): string => `${signature}${digits('6492', 64)}`;

describe('before the facilitator is asked', () => {
  test('a signature that cannot be of the payer is refused with a reason and not charged', async () => {
    const { proxy, database, gateway } = await behindProxy();
    const invalid = 'invalid_exact_evm_signature';
    for (const [name, change, reason] of [
      ['65 bytes that are no signature', (): string => `0x${digits('12', 130)}`, invalid],
      ['a signature of another account', (own: string): string => own, invalid],
      ['a signature with a high s', malleated, invalid],
      ['a contract signature of an account without code', (own: string): string => `${own}00`, invalid],
      ['a wrapped signature that is none (ERC-6492)', wrapped, 'malformed_wrapped_signature'],
    ] as const) {
      const offer = offerOf(await gateway.post(job, { body: 'x' }));
      const payment = await signOffer(offer, name.includes('another') ? { signed: { from: payTo } } : {});
      payment.payload.signature = change(payment.payload.signature);
      const { status, json } = await gateway.post(job, { body: 'x', headers: header(payment) });
      expect([name, status, json.code, json.reason]).toEqual([name, 402, 'payment_invalid', reason]);
    }
    expect(proxy.seen).not.toContain('verify');
    expect(await started(database)).toBe(0);
  });

  test('a contract account is asked whether it signed, and its payment settles', async () => {
    const { gateway, count } = await behindProxy();
    const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
    await chain.mint(wallet, 10_000_000n);
    const paid = await payFor(gateway, job, 'x', { signed: { from: wallet } });
    expect(paid.status).toBe(202);
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const forged = await signOffer(offer, { account: stranger, signed: { from: wallet } });
    const answer = await gateway.post(job, { body: 'x', headers: header(forged) });
    expect(answer).toMatchObject({ status: 402, json: { reason: 'invalid_exact_evm_signature' } });
    expect(count('verify')).toBe(1);
  });
});

/** The same signature with the other s: valid mathematics that contracts refuse. */
function malleated(signature: string): string {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = order - BigInt(`0x${signature.slice(66, 130)}`);
  const v = signature.endsWith('1b') ? '1c' : '1b';
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${v}`;
}

const text = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

test('an embedding program can sign facilitator requests, and errors of its signer are not disclosed', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const signer = { isLocked: false };
  const { proxy, database, gateway } = await behindProxy({
    facilitatorAuth: async ({ method, host, path }) => {
      if (signer.isLocked) throw new Error('the key is locked');
      const signed = `${text({ alg: 'EdDSA', typ: 'JWT' })}.${text({ uri: `${method} ${host}${path}` })}`;
      const signature = sign(null, Buffer.from(signed), privateKey).toString('base64url');
      return { authorization: `Bearer ${signed}.${signature}` };
    },
  });
  const admitted: unknown[] = [];
  proxy.admits = ({ headers, method, path: url }) => {
    const [head = '', body = '', signature = ''] = (headers.authorization ?? '')
      .slice('Bearer '.length)
      .split('.');
    const isSigned = verify(
      null,
      Buffer.from(`${head}.${body}`),
      publicKey,
      Buffer.from(signature, 'base64url'),
    );
    const { uri } = JSON.parse(Buffer.from(body, 'base64url').toString()) as { uri: string };
    admitted.push(uri);
    return isSigned && uri === `${method} ${headers.host}${url}`;
  };
  expect((await payFor(gateway, job)).status).toBe(202);
  const { host } = new URL(proxy.url);
  expect(admitted).toEqual(expect.arrayContaining([`POST ${host}/verify`, `POST ${host}/settle`]));

  signer.isLocked = true;
  const before = proxy.seen.length;
  const answer = await payFor(gateway, job);
  expect(answer).toMatchObject(refused);
  expect(answer.text).not.toContain('locked');
  expect(proxy.seen).toHaveLength(before);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
