import { createHash } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import type { Random } from '../chaos/random.ts';
import { paymentKey } from '../chaos/records.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { type Offer, offerOf, type Payment, type SignOptions, signOffer } from '../support/payer.ts';
import type { FuzzAnswer } from './judge.ts';
import type { SignedAuthorization } from './paid-ledger.ts';
import { changeOnePart, encodePayment, type PaidDraft } from './payment-changes.ts';
import type { Traffic } from './traffic.ts';

/** Pays for jobs, with at most one part wrong, and keeps what was signed and answered. */
export interface Payer {
  /** One payment from its quote to its last use. */
  turn(random: Random): Promise<void>;
  readonly signed: ReadonlyMap<string, SignedAuthorization>;
}

interface Sent {
  readonly payment: Payment;
  readonly draft: PaidDraft;
}

const accounts = (['payer', 'permittedCaller', 'refusedCaller'] as const).map((role) =>
  privateKeyToAccount(devnetKeys[role]),
);
const withoutFunds = privateKeyToAccount(devnetKeys.thirdSpare);
const jobs = ['/x402/jobs/1/0', '/x402/jobs/1/0', '/x402/jobs/1/0', '/x402/jobs/1/1', '/x402/jobs/9/0'];
const keptForReplay = 30;

export function createPayer(traffic: Traffic): Payer {
  const signed = new Map<string, SignedAuthorization>();
  const earlier: Sent[] = [];

  const quote = async (path: string, body: Buffer, address: string): Promise<FuzzAnswer | undefined> => {
    const headers = { 'x-forwarded-for': address, 'content-type': 'text/plain' };
    return traffic.ask('quote', { method: 'POST', path, headers, body });
  };

  const pay = async (name: string, { payment, draft }: Sent, address: string): Promise<void> => {
    const { authorization } = payment.payload;
    const request = {
      method: 'POST',
      path: draft.path,
      headers: {
        'x-forwarded-for': address,
        'content-type': 'text/plain',
        [draft.x402Version === 1 ? 'x-payment' : 'payment-signature']: draft.encode(draft.payment),
        ...draft.headers,
      },
      body: draft.body,
    };
    const answer = await traffic.ask(name, request);
    const record = signed.get(paymentKey(payment.accepted.asset, authorization.from, authorization.nonce));
    record?.statuses.push(answer?.status ?? 0);
    if (answer?.status === 202) record?.accepted.add(requestName(draft));
    if (answer?.status === 402 && /payment-response/.test(JSON.stringify([...answer.headers])))
      traffic.note(`${name}: a 402 reports a settlement`, request);
  };

  return {
    signed,
    async turn(random) {
      const address = `198.19.${random.between(0, 255)}.${random.between(1, 254)}`;
      if (earlier.length > 0 && random.chance(0.15)) return reuse(random, address);
      const path = random.pick(jobs);
      const body = Buffer.from(random.pick(['a body', '', '{"a":1}', '\0\u{1f600}', random.hex32()]));
      const quoted = await quote(path, body, address);
      if (quoted?.status !== 402) return;
      const sent = await signedDraft(offerOf({ ...quoted, json: undefined }), random, path, body);
      const { asset } = sent.payment.accepted;
      const { from, nonce } = sent.payment.payload.authorization;
      const amount = BigInt(sent.payment.accepted.amount);
      signed.set(paymentKey(asset, from, nonce), { amount, accepted: new Set(), statuses: [] });
      const right = sent.draft;
      const changed = { ...right, headers: { ...right.headers } };
      if (random.chance(0.75)) changeOnePart(changed, random);
      await pay('payment', { ...sent, draft: changed }, address);
      await repeat(random, { ...sent, draft: changed }, { ...sent, draft: right }, address);
      earlier.unshift({ ...sent, draft: right });
      earlier.length = Math.min(earlier.length, keptForReplay);
    },
  };

  /** Sends it again: as it was, as it should have been, for another body, or several of these at once. */
  async function repeat(random: Random, changed: Sent, right: Sent, address: string): Promise<void> {
    const other = { ...right, draft: { ...right.draft, body: Buffer.from('another body') } };
    switch (random.between(0, 7)) {
      case 0:
        return pay('payment again', changed, address);
      case 1:
        return pay('payment again', right, address);
      case 2:
        return pay('payment for another body', other, address);
      case 3:
        await Promise.all([right, right, other, changed].map((one) => pay('payments at once', one, address)));
        return;
      default:
    }
  }

  /** A payment of an earlier turn, with one part changed. */
  async function reuse(random: Random, address: string): Promise<void> {
    const { payment, draft } = random.pick(earlier);
    const changed = { ...draft, headers: { ...draft.headers } };
    changeOnePart(changed, random);
    await pay('earlier payment', { payment, draft: changed }, address);
  }
}

/** The same for every spelling of one request: a percent-encoded path and a query change nothing. */
function requestName({ path, body }: PaidDraft): string {
  const [target = ''] = path.split('?', 1);
  return `${decodeURIComponent(target)} ${createHash('sha256').update(body).digest('hex')}`;
}

/** A payment of an offer as it should be, or one whose signed values differ from the offer's. */
async function signedDraft(offer: Offer, random: Random, path: string, body: Buffer): Promise<Sent> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const x402Version = random.chance(0.25) ? 1 : 2;
  const account = random.pick(accounts);
  const signedWrong: readonly (() => SignOptions)[] = [
    () => ({ account: withoutFunds }),
    () => ({ signed: { value: '1' } }),
    () => ({ signed: { value: '999999999' } }),
    () => ({ signed: { value: '0' } }),
    () => ({ signed: { to: withoutFunds.address } }),
    () => ({ signed: { validBefore: String(nowSecs - 1) } }),
    () => ({ signed: { validBefore: String(nowSecs + 7) } }),
    () => ({ signed: { validAfter: String(nowSecs + 1_000) } }),
    () => ({ signed: { validBefore: String(2n ** 255n) } }),
  ];
  const options = {
    account,
    option: x402Version === 1 ? 0 : random.between(0, offer.accepts.length - 1),
    ...(random.chance(0.1) && random.pick(signedWrong)()),
  };
  const nonce = random.hex32();
  const payment = await signOffer(offer, { ...options, signed: { nonce, ...options.signed } });
  const { payload } = payment;
  const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload };
  const draft: PaidDraft = {
    payment: x402Version === 1 ? v1 : payment,
    x402Version,
    encode: encodePayment,
    path,
    headers: {},
    body,
  };
  return { payment, draft };
}
