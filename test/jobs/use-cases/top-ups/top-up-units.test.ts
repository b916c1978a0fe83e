import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { writeTopUpOrder } from '../../../../src/base/values/top-up-order.ts';
import { sha256 } from '../../../../src/base/values/sha256.ts';
import { inputsHashOf, zeroAddress } from '../../../../src/payments/rules/quote.ts';
import { openUserAccount } from '../../../../src/accounts/store/identity.ts';
import { expectBooks } from '../../../support/credit.ts';
import { useChain } from '../../../support/devnet.ts';
import { identitySecret, newWallet } from '../../../support/identity.ts';
import { header, offerOf, payFor, quoteAndSign, signOffer, v1Header } from '../../../support/payer.ts';
import { useShared } from '../../../support/shared.ts';
import { formsIn, postForm } from '../../../support/site.ts';
import {
  eventsOf,
  fundedWallet,
  signedIn,
  startTopUpGateway,
  topUpJob,
  type TopUpGateway,
} from '../../../support/top-up.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();

async function startWithUser() {
  const gateway = await startTopUpGateway(chain, { tables: '[pages]\nname = "Testbook"' });
  const { browser, userId } = await signedIn(gateway, { account: newWallet() });
  const { accountId } = await openUserAccount(gateway.database.pool, userId);
  const orderOf = (units: number): string => {
    const order = { accountId, units, expiresAt: 4_000_000_000 };
    return writeTopUpOrder([identitySecret], order, randomBytes(16).toString('base64url'));
  };
  return { gateway, browser, accountId, orderOf };
}

const shared = useShared(startWithUser);

/** The amounts of an offer, in USDC and EURC. */
async function amountsFor(gateway: TopUpGateway, body: string): Promise<string[]> {
  return offerOf(await gateway.post(topUpJob, { body })).accepts.map(({ amount }) => amount);
}

type Body = (orderOf: (units: number) => string) => string;
const order =
  (units: number): Body =>
  (orderOf) =>
    orderOf(units);
const json =
  (units: number): Body =>
  () =>
    `{"units":${units}}`;

describe('a top-up of several units', () => {
  test('that an order names costs and credits exactly as many times one, on every record', async () => {
    const { gateway, browser, accountId, orderOf } = await startWithUser();
    const { account, payer } = await fundedWallet(chain);
    const body = orderOf(3);
    const one = await amountsFor(gateway, orderOf(1));
    expect(await amountsFor(gateway, body)).toEqual(one.map((amount) => String(BigInt(amount) * 3n)));
    const paid = await payFor(gateway, topUpJob, body, { account, signed: { nonce: sha256(body) } });
    expect(paid.status).toBe(202);
    await eventually(async () => expect(await eventsOf(gateway.database, 'completed')).toHaveLength(1));
    const [bought] = await eventsOf(gateway.database, 'credit_topped_up');
    expect(bought?.data).toMatchObject({
      account_id: accountId,
      payer,
      atoms: '30000000',
      amount_micros: '30000000',
    });
    expect(await chain.balance(payer)).toBe(70_000_000n);
    expect((await browser.get('/v1/credits')).json.balance).toBe('30');
    expect((await browser.get('/credit')).text).toContain('30.00');
    await expectBooks(gateway.database);
  });

  test('that a program names in JSON is credited to the wallet that pays', async () => {
    const { gateway } = await startWithUser();
    const { account, payer } = await fundedWallet(chain);
    const paid = await payFor(gateway, topUpJob, '{"units":5}', { account });
    expect(paid.status).toBe(202);
    await eventually(async () => {
      const [bought] = await eventsOf(gateway.database, 'credit_topped_up');
      expect(bought?.data).toMatchObject({ payer, atoms: '50000000', amount_micros: '50000000' });
    });
    await expectBooks(gateway.database);
  });

  test.each<[string, Body, Body]>([
    ['one unit, with an order of two', order(1), order(2)],
    ['two units, with an order of one', order(2), order(1)],
    ['two units, with another order of two', order(2), order(2)],
    ['two units, with an order of three', order(2), order(3)],
    ['one unit, with two in JSON', json(1), json(2)],
    ['any body, with two in JSON', () => 'credit, please', json(2)],
    ['two in JSON, with one', json(2), json(1)],
    ['two in JSON, with three', json(2), json(3)],
    ['two in JSON, with the same in other bytes', json(2), () => '{ "units": 2 }'],
    ['two in JSON, with an order of two', json(2), order(2)],
  ])('is refused with the quote for %s, and never charged', async (_, quoted, sent) => {
    const { gateway, orderOf } = shared();
    const { account, payer } = await fundedWallet(chain);
    const body = sent(orderOf);
    const signed = body.startsWith('tollbook') ? { nonce: sha256(body) } : {};
    const payment = await quoteAndSign(gateway, topUpJob, quoted(orderOf), { account, signed });
    const refused = await gateway.post(topUpJob, { body, headers: header(payment) });
    expect([refused.status, refused.json.reason]).toEqual([402, 'inputs_hash_mismatch']);
    expect(await chain.balance(payer)).toBe(100_000_000n);
    // the new offer is for what was sent
    expect(offerOf(refused).accepts.map(({ amount }) => amount)).toEqual(await amountsFor(gateway, body));
  });

  test('is refused where less than its price is signed', async () => {
    const { gateway, orderOf } = shared();
    const { account, payer } = await fundedWallet(chain);
    const body = orderOf(2);
    const offer = offerOf(await gateway.post(topUpJob, { body }));
    const cheap = { ...offer, accepts: offer.accepts.map((one) => ({ ...one, amount: '10000000' })) };
    const payment = await signOffer(cheap, { account, signed: { nonce: sha256(body) } });
    const refused = await gateway.post(topUpJob, { body, headers: header(payment) });
    expect([refused.status, refused.json.reason]).toEqual([402, 'matches_no_option']);
    expect(await chain.balance(payer)).toBe(100_000_000n);
  });

  test('takes no quote of a pricing service, which is for one unit whatever body it names', async () => {
    const { gateway, orderOf } = shared();
    const { account, payer } = await fundedWallet(chain);
    const body = orderOf(2);
    const asked = {
      serviceId: 9,
      jobIndex: 0,
      requester: zeroAddress,
      inputsHash: inputsHashOf(Buffer.from(body)),
    };
    const issued = await gateway.quotes?.issue(asked);
    if (issued?.kind !== 'issued') throw new Error('no quote was issued');
    const path = issued.endpoint.slice(new URL(issued.endpoint).origin.length);
    const named = await gateway.post(path, { body });
    expect([named.status, named.json.reason]).toEqual([402, 'inputs_hash_mismatch']);
    // its offer, as for a body of one unit, signed for this order
    const [accepted, ...others] = offerOf(await gateway.post(topUpJob, { body: 'x' })).accepts;
    if (!accepted) throw new Error('nothing is offered');
    const extra = { ...accepted.extra, quoteDigest: issued.digest };
    const offer = { ...offerOf(named), accepts: [{ ...accepted, extra }, ...others] };
    const payment = await signOffer(offer, { account, signed: { nonce: sha256(body) } });
    const refused = await gateway.post(topUpJob, { body, headers: header(payment) });
    expect([refused.status, refused.json.reason]).toEqual([402, 'inputs_hash_mismatch']);
    expect(await chain.balance(payer)).toBe(100_000_000n);
  });

  test('is not sold by version 1 of x402, whose payments name no quote', async () => {
    const { gateway } = shared();
    const { account, payer } = await fundedWallet(chain);
    const asked = await gateway.post(topUpJob, { body: '{"units":2}' });
    expect(asked.json.accepts).toEqual([]);
    const payment = await signOffer(offerOf(asked), { account });
    const refused = await gateway.post(topUpJob, { body: '{"units":2}', headers: v1Header(payment) });
    expect([refused.status, refused.json.reason]).toEqual([402, 'price_depends_on_request']);
    expect(await chain.balance(payer)).toBe(100_000_000n);
  });

  test.each(['0', '101', '1.5', '-1', '"2"', 'null', '1e3'])(
    'of %s in JSON is refused without an offer',
    async (units) => {
      const { gateway } = shared();
      const asked = await gateway.post(topUpJob, { body: `{"units":${units}}` });
      expect([asked.status, asked.json.code]).toEqual([422, 'input_invalid']);
      expect(asked.json.details).toEqual(['units must be a whole number from 1 to 100']);
    },
  );

  test('has no order if it is not of 1 to 100 units, or if its units were changed', async () => {
    const { gateway, browser, orderOf } = shared();
    const token = formsIn((await browser.get('/credit')).text).find(({ action }) => action === '/sign-out');
    const ask = (units: string) =>
      postForm(browser, '/credit/top-up/order', { form: token?.fields['form'] ?? '', units });
    for (const units of ['0', '101', '1.5', '-1', '', '1e1', 'two']) {
      const refused = await ask(units);
      expect([units, refused.status, refused.json.error]).toEqual([
        units,
        422,
        'The number of top-ups must be a whole number from 1 to 100. Nothing was charged.',
      ]);
    }
    expect((await ask('100')).json.body).toMatch(/^tollbook-top-up:2:\d+:100:/);
    expect((await ask('1')).json.body).toMatch(/^tollbook-top-up:1:/);
    for (const [was, is] of [
      ['2', '3'],
      ['2', '101'],
      ['2', '1.5'],
    ] as const) {
      const body = orderOf(2).replace(new RegExp(`^(tollbook-top-up:2:\\d+):${was}:`), `$1:${is}:`);
      const asked = await gateway.post(topUpJob, { body });
      expect([asked.status, asked.json.details]).toEqual([422, ['this gateway has not made this order']]);
    }
  });
});
