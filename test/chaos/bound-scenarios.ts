import { setTimeout as sleep } from 'node:timers/promises';
import type { PrivateKeyAccount } from 'viem/accounts';
import { keccak256, stringToBytes } from 'viem/utils';
import { type Quote, quoteDigest, type SettlementOption } from '../../src/payments/rules/quote.ts';
import { quoteTokenParameter, writeQuoteToken } from '../../src/payments/rules/quote-token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { recordQuote } from '../../src/jobs/use-cases/quote-job.ts';
import { quoteTokenProof, receiptKeysOf } from '../../src/payments/use-cases/receipt-keys.ts';
import { readReceiptKey } from '../../src/ledger/store/secrets.ts';
import type { Offer } from '../support/payer.ts';
import { askForOffer, type JobRequest } from './client.ts';
import { payLater, payerOf, type RunningScenario, signThis } from './scenario-parts.ts';
import { withLedger } from './sql.ts';

const ttlSecs = 300;

/**
 * A quote for one payer and one body, from a program with a pricing service. The payer pays it for the body; at the same time
 * another payer does so, and the payer itself for another body.
 */
export async function payBoundQuote(running: RunningScenario): Promise<void> {
  const { random, request } = running;
  const account = payerOf(running);
  const issued = await issue(running, account);
  if (!issued) return;
  const { offer, path } = issued;
  const ofQuote = { ...running, request: { ...request, path } };
  const others = running.parts.environment.payers.filter((one) => one !== account);
  const another = { ...ofQuote.request, body: `${request.body} and more` };
  const [mine, changed, theirs] = await Promise.all([
    signThis(ofQuote, offer, account),
    signThis(ofQuote, offer, account),
    signThis(ofQuote, offer, random.pick(others)),
  ]);
  await Promise.all([
    payLater(ofQuote, theirs, 'another payer', 400),
    payLater({ ...ofQuote, request: another }, changed, 'another body', 400),
    payLater(ofQuote, mine, 'payer', 800),
  ]);
}

/** What the gateways offer at the address of the quote; undefined if none offers it in time. */
async function issue(
  { parts, random, request }: RunningScenario,
  account: PrivateKeyAccount,
): Promise<{ offer: Offer; path: string } | undefined> {
  const usual = await askForOffer(parts, random, request);
  if (!usual) return undefined;
  const salt = random.hex32();
  while (!parts.deadline.aborted) {
    const token = await record(parts.url(), usual, request, account, salt).catch(() => undefined);
    if (token === undefined) {
      // the server restarts, or another one takes over
      await sleep(100);
      continue;
    }
    const path = `${request.path}?${quoteTokenParameter}=${token.text}`;
    const offer = await askForOffer(parts, random, { ...request, path });
    // a quote that was lost with the ledger's last events, or that a wrong clock has ended, is not offered
    return offer?.accepts[0]?.extra['quoteDigest'] === token.digest ? { offer, path } : undefined;
  }
  return undefined;
}

/** Records the quote and makes its token, as the gateway in such a program does. Throws if the database is unreachable. */
async function record(
  url: string,
  { accepts }: Offer,
  { path, body }: JobRequest,
  account: PrivateKeyAccount,
  salt: Quote['salt'],
) {
  return withLedger(url, async ({ pool, lane, db }) => {
    const { rows } = await pool.query<{ now: number }>(
      'select extract(epoch from tollbook.clock())::int as now',
    );
    const issuedAt = rows[0]?.now ?? 0;
    const [serviceId = 0, jobIndex = 0] = path.split('/').slice(-2).map(Number);
    const quote: Quote = {
      serviceId,
      jobIndex,
      priceWei: 10n ** 15n,
      options: accepts.map(optionOf),
      requester: account.address.toLowerCase() as Address,
      inputsHash: keccak256(stringToBytes(body)),
      issuedAt,
      expiresAt: issuedAt + ttlSecs,
      salt,
      isSummarised: false,
      source: 'pricing',
    };
    const digest = quoteDigest(quote);
    await recordQuote({ lane }, quote, digest);
    const keys = receiptKeysOf(undefined, await readReceiptKey(db));
    return { digest, text: writeQuoteToken(quote, quoteTokenProof(keys, digest)) };
  });
}

function optionOf({ network, asset, amount, payTo, extra }: Offer['accepts'][number]): SettlementOption {
  const name = String(extra['name']);
  return {
    network: network as SettlementOption['network'],
    transferMethod: extra['assetTransferMethod'] === 'permit2' ? 'permit2' : 'eip3009',
    asset: asset.toLowerCase() as Address,
    symbol: name === 'Plain Dollar' ? 'PUSD' : name === 'USD Coin' ? 'USDC' : 'EURC',
    decimals: 6,
    amount: BigInt(amount),
    payTo: payTo.toLowerCase() as Address,
    eip712Name: name,
    eip712Version: String(extra['version']),
  };
}
