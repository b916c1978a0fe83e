/**
 * `node bench/stages.ts`: the processor time of each step that the gateway itself takes for a payment, without server, database and
 * facilitator. The lowest of many short runs, which other programs on the machine hardly change: to compare two texts, run it in both.
 */
import { setPriority } from 'node:os';
import { say } from '../src/base/terminal/terminal.ts';
import { decodePayment } from '../src/payments/rules/decode-payment.ts';
import { checkPayment, isSignedByPayer } from '../src/payments/rules/payment.ts';
import { authenticQuote, quoteKeysOf, writeQuoteEcho } from '../src/payments/rules/quote-echo.ts';
import { quoteDigest, type SettlementOption } from '../src/payments/rules/quote.ts';
import { offersV2Text, offerTextsV2 } from '../src/payments/rules/x402.ts';
import { newQuote } from '../src/jobs/use-cases/quote-job.ts';
import { offerSecret, receiptKeysOf } from '../src/payments/use-cases/receipt-keys.ts';
import { encodeCommand } from '../src/ledger/store/append-batch.ts';
import { payment as appendsOfPayment } from './append/payment.ts';
import { firstOffer, payFor } from './payments.ts';
import { row, ruler } from './report.ts';
import { terms } from './terms.ts';

const rounds = 500;
const warmRounds = 60;
/** Short enough to run between two other programs. */
const perRound = 64;

const option: SettlementOption = {
  network: terms.network,
  transferMethod: 'eip3009',
  asset: terms.asset,
  symbol: terms.symbol,
  decimals: terms.decimals,
  amount: BigInt(terms.amount),
  payTo: terms.payTo,
  eip712Name: terms.eip712.name,
  eip712Version: terms.eip712.version,
};
const job = { serviceId: 1, jobIndex: 0, priceWei: BigInt(terms.priceWei), options: [option] };
const realm = { ledgerId: 'bench', generation: 1, lane: 1, origin: 'http://127.0.0.1' };
const quoteKeys = quoteKeysOf(['0'.repeat(64)]);
const receiptKeys = receiptKeysOf(undefined, Buffer.alloc(32, 1));
const nowSecs = Math.floor(Date.now() / 1_000);
const window = { nowSecs, maxTimeoutSecs: terms.maxTimeoutSecs, settleMarginSecs: 16 };

function issueQuote() {
  const quote = newQuote({ ...job, isSummarised: true }, nowSecs, terms.maxTimeoutSecs);
  const digest = quoteDigest(quote);
  const echoes = quote.options.map((one) => writeQuoteEcho(quoteKeys, realm, quote, digest, one));
  return { digest, secret: offerSecret(receiptKeys, digest), echoes };
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a payment of this bench is not taken');
  return value;
}

function decode(header: string) {
  const decoded = decodePayment(header, 2);
  if (typeof decoded === 'string') throw new Error(decoded);
  return decoded;
}

/** A payment as the steps meet it, one after the other. */
function samplePayment() {
  const accepts = offersV2Text(offerTextsV2([option], terms.maxTimeoutSecs), issueQuote());
  const header = payFor(firstOffer(Buffer.from(`{"accepts":${accepts}}`).toString('base64')), true);
  const decoded = decode(header);
  const { network, transferMethod } = decoded;
  const named = present(decoded.terms);
  const [digest, echo] = [present(named.quoteDigest), present(named.echo)];
  const echoed = { ...named, network, transferMethod, quoteDigest: digest, echo };
  const signed = checkPayment(decoded, option, window);
  if ('invalid' in signed) throw new Error(signed.invalid);
  return { header, decoded, echoed, signed, appends: appendsOfPayment() };
}

type Sample = ReturnType<typeof samplePayment>;

const steps: Readonly<Record<string, (sample: Sample) => unknown>> = {
  'a quote issued, with its MAC': issueQuote,
  'a payment header decoded': ({ header }) => decode(header),
  'its quote authenticated': ({ echoed }) => present(authenticQuote(quoteKeys, realm, job, echoed)),
  'the payment compared with its option': ({ decoded }) => checkPayment(decoded, option, window),
  'its signature recovered': ({ signed }) => isSignedByPayer(signed),
  'its quote encoded, which its start records': ({ appends }) => encodeCommand(appends.quote),
  'its start encoded': ({ appends }) => encodeCommand(appends.start),
  'its settlement encoded': ({ appends }) => encodeCommand(appends.settle(1)),
};

setPriority(-15);
const samples = Array.from({ length: perRound }, samplePayment);
const lowestUs = new Map<string, number>();
for (let round = 0; round < warmRounds + rounds; round++) {
  for (const [name, step] of Object.entries(steps)) {
    const startedMs = performance.now();
    for (const sample of samples) step(sample);
    const us = ((performance.now() - startedMs) * 1_000) / perRound;
    if (round >= warmRounds) lowestUs.set(name, Math.min(us, lowestUs.get(name) ?? Infinity));
  }
}
const columns = ['step', 'µs'];
say([row(columns), ruler(columns)].join('\n'));
for (const [name, us] of lowestUs) say(row([name, us.toFixed(1)]));
