import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { writeTopUpOrder } from '../../../../src/base/values/top-up-order.ts';
import { sha256 } from '../../../../src/base/values/sha256.ts';
import { smartWallet } from '../../../../src/devnet/contracts.ts';
import { deployContract } from '../../../support/contracts.ts';
import { expectBooks, laneOn } from '../../../support/credit.ts';
import { useChain } from '../../../support/devnet.ts';
import { openUserAccount } from '../../../../src/accounts/store/identity.ts';
import { type Browser, identitySecret, newWallet } from '../../../support/identity.ts';
import { header, payer, quoteAndSign } from '../../../support/payer.ts';
import { formsIn, postForm } from '../../../support/site.ts';
import {
  buyCredit,
  eventsOf,
  fundedWallet,
  signedIn,
  startTopUpGateway,
  topUpJob,
  type TopUpGateway,
} from '../../../support/top-up.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const orderPath = '/credit/top-up/order';

interface Order {
  readonly body: string;
  readonly nonce: string;
}

/** The answer to a user who asks for an order on the page of credit. */
async function askForOrder(browser: Browser): ReturnType<Browser['get']> {
  const { text } = await browser.get('/credit');
  const token = formsIn(text).find(({ action }) => action === '/sign-out')?.fields['form'] ?? '';
  return postForm(browser, orderPath, { form: token });
}

async function startWithUser() {
  const gateway = await startTopUpGateway(chain, { tables: '[pages]\nname = "Testbook"' });
  const { browser, userId } = await signedIn(gateway, { account: newWallet() });
  const order = (await askForOrder(browser)).json as Order;
  const { accountId } = await openUserAccount(gateway.database.pool, userId);
  return { gateway, browser, userId, order, accountId };
}

/** Pays for a body, with a nonce that the payer signs. */
async function payWith(gateway: TopUpGateway, body: string, signed: object = {}, account = payer) {
  const payment = await quoteAndSign(gateway, topUpJob, body, { account, signed });
  return gateway.post(topUpJob, { body, headers: header(payment) });
}

test('an order is made only for the session, by a form of this gateway', async () => {
  const { gateway, browser, order, accountId } = await startWithUser();
  expect(order).toEqual({
    body: expect.stringMatching(new RegExp(`^tollbook-top-up:1:${accountId}:`)) as string,
    contentType: 'text/plain',
    nonce: sha256(order.body),
  });
  const again = (await askForOrder(browser)).json as Order;
  expect(again.body).not.toBe(order.body);
  const [stranger, forged, elsewhere] = [
    await postForm(gateway.browser(), orderPath, { form: 'x' }),
    await postForm(browser, orderPath, { form: 'x' }),
    await postForm(browser, orderPath, { form: 'x' }, { origin: 'https://evil.example' }),
  ];
  expect([stranger.status, forged.status, elsewhere.status]).toEqual([303, 303, 403]);
});

describe('a top-up whose body is an order', () => {
  test('credits the account of the order, whoever pays, and a wallet that pays without one its own account', async () => {
    const { gateway, browser, order, accountId } = await startWithUser();
    const paying = await fundedWallet(chain);
    const paid = await payWith(gateway, order.body, { nonce: order.nonce }, paying.account);
    expect(paid.status).toBe(202);
    await eventually(async () => {
      const [event] = await eventsOf(gateway.database, 'credit_topped_up');
      expect(event?.data).toMatchObject({ account_id: accountId, payer: paying.payer });
    });
    expect((await browser.get('/v1/credits')).json.balance).toBe('10');
    const other = await buyCredit(gateway.url, paying.key);
    const { userId } = await signedIn(gateway, paying);
    expect(other.result.account).toBe(`user:${userId}`);
    await expectBooks(gateway.database);
  });

  test('is charged once, also if its payer signs it again', async () => {
    const { gateway, order } = await startWithUser();
    const { account, payer: from } = await fundedWallet(chain);
    expect((await payWith(gateway, order.body, { nonce: order.nonce }, account)).status).toBe(202);
    const again = await payWith(gateway, order.body, { nonce: order.nonce }, account);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
    expect(await eventsOf(gateway.database, 'settlement_started')).toHaveLength(1);
    expect(await chain.balance(from)).toBe(90_000_000n);
  });

  test('takes no payment that was signed for another order: who holds a signed payment cannot have its credit', async () => {
    const { gateway, order } = await startWithUser();
    const thief = await signedIn(gateway, { account: newWallet() });
    const { body: own } = (await askForOrder(thief.browser)).json as Order;
    const { account, payer: from } = await fundedWallet(chain);
    const payment = await quoteAndSign(gateway, topUpJob, order.body, {
      account,
      signed: { nonce: order.nonce },
    });
    const stolen = await gateway.post(topUpJob, { body: own, headers: header(payment) });
    expect([stolen.status, stolen.json.reason]).toEqual([402, 'nonce_of_another_order']);
    const random = await payWith(gateway, own, {}, account);
    expect([random.status, random.json.reason]).toEqual([402, 'nonce_of_another_order']);
    expect(await chain.balance(from)).toBe(100_000_000n);
    expect((await gateway.post(topUpJob, { body: order.body, headers: header(payment) })).status).toBe(202);
  });

  test.each<[string, (accountId: number, salt: string) => string, RegExp]>([
    [
      'was changed',
      (accountId, salt) =>
        writeTopUpOrder([identitySecret], { accountId, units: 1, expiresAt: 4_000_000_000 }, salt).replace(
          ':1:',
          ':1:1',
        ),
      /has not made this order/,
    ],
    [
      'another made',
      (accountId, salt) =>
        writeTopUpOrder(['another secret'], { accountId, units: 1, expiresAt: 4_000_000_000 }, salt),
      /has not made this order/,
    ],
    [
      'is too old',
      (accountId, salt) =>
        writeTopUpOrder([identitySecret], { accountId, units: 1, expiresAt: 1_000_000_000 }, salt),
      /too old/,
    ],
    ['is not whole', () => 'tollbook-top-up:1:', /has not made this order/],
  ])('that %s is refused without an offer, and never charged', async (_, write, words) => {
    const { gateway, accountId } = await startWithUser();
    const body = write(accountId, randomBytes(16).toString('base64url'));
    const asked = await gateway.post(topUpJob, { body });
    expect([asked.status, asked.json.code]).toEqual([422, 'input_invalid']);
    expect(asked.json.details).toEqual([expect.stringMatching(words)]);
    const { account, payer: from } = await fundedWallet(chain);
    const payment = await quoteAndSign(gateway, topUpJob, 'x', { account, signed: { nonce: sha256(body) } });
    expect((await gateway.post(topUpJob, { body, headers: header(payment) })).status).toBe(422);
    expect(await chain.balance(from)).toBe(100_000_000n);
  });

  test('for an account that was closed is refused before money moves', async () => {
    const { gateway, order, accountId, userId } = await startWithUser();
    await laneOn(gateway.database).appendCredit({
      stream: `user:${userId}`,
      events: [{ type: 'user_erased', data: { user_id: userId, operator: 'grace' } }],
      credit: { op: 'close', accountId },
    });
    const { account, payer: from } = await fundedWallet(chain);
    const refused = await payWith(gateway, order.body, { nonce: order.nonce }, account);
    expect([refused.status, refused.json.reason]).toEqual([402, 'account_closed']);
    expect(await chain.balance(from)).toBe(100_000_000n);
  });

  test('may be paid by a contract wallet of any chain, since it names the account itself', async () => {
    const { gateway, order, accountId } = await startWithUser();
    const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
    await chain.mint(wallet, 100_000_000n);
    expect((await payWith(gateway, 'x', { from: wallet })).json.reason).toBe(
      'contract_wallet_of_another_chain',
    );
    const paid = await payWith(gateway, order.body, { from: wallet, nonce: order.nonce });
    expect(paid.status).toBe(202);
    await eventually(async () => {
      const [event] = await eventsOf(gateway.database, 'credit_topped_up');
      expect(event?.data).toMatchObject({ account_id: accountId, payer: wallet });
    });
  });
});
