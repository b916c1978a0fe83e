/**
 * `node bench/rates.ts [ROUNDS]`: prices, rates and offers per second. First what one process computes and what a round writes into a
 * durable PostgreSQL; then offers over HTTP of two gateways that take turns, one with a fixed rate and one whose rate is from a source.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { say } from '../src/base/terminal/terminal.ts';
import type { JobsConfig } from '../src/base/config/config.ts';
import { judgeRound, type SourceAnswer } from '../src/base/values/round.ts';
import { tokenAmount } from '../src/base/values/amount.ts';
import { parseRate } from '../src/base/values/rate.ts';
import type { AcceptedToken, Rate } from '../src/base/values/token.ts';
import { askRate } from '../src/jobs/use-cases/ask-rates.ts';
import { createCatalog } from '../src/jobs/use-cases/catalog.ts';
import { priceListOf } from '../src/jobs/use-cases/price-list.ts';
import { rateName } from '../src/jobs/use-cases/rates.ts';
import { createHttpPool } from '../src/base/peers/http/http.ts';
import { askHttpRate } from '../src/payments/peers/rates/http-rate.ts';
import { openLane } from '../src/ledger/store/lane.ts';
import { offerPrices } from '../src/payments/store/price-windows.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { paymentGateway } from './payment-targets.ts';
import { startProgram } from './processes.ts';
import { median, row, ruler, spread, whole } from './report.ts';
import { terms } from './terms.ts';
import { startTollbook } from './tollbook.ts';

const rounds = Number(process.argv[2] ?? 3);
const runMs = 1_000;
const atOnce = 32;
const timeoutMs = 10_000;
const dir = path.join(import.meta.dirname, '.tollbook', `rates-${process.pid}`);

let price = '3200.123456789012345678';
const market = createServer((_, answer) => void answer.end(`{"rate":${price}}`)).listen(0, '127.0.0.1');
await new Promise((resolve) => market.once('listening', resolve));
const marketUrl = `http://127.0.0.1:${(market.address() as AddressInfo).port}/`;

const source = {
  name: 'market',
  maxAgeSecs: 60,
  kind: 'http',
  url: marketUrl,
  pointer: '/rate',
  timePointer: undefined,
  inverse: false,
} as const;
const rateTerms = { maxAgeSecs: 60, maxDeviationBps: 100, bound: undefined };
const token: AcceptedToken = {
  network: terms.network,
  chainId: terms.chainId,
  asset: terms.asset,
  symbol: terms.symbol,
  decimals: terms.decimals,
  payTo: terms.payTo,
  transferMethod: 'eip3009',
  eip712Name: terms.eip712.name,
  eip712Version: terms.eip712.version,
  ratePerNativeUnit: undefined,
  markupBps: 200,
  rateTerms: { ...rateTerms, sources: [source], minSources: 1 },
  fixedRateMaxAgeSecs: undefined,
};

function rateOf(text: string): Rate {
  const rate = parseRate(text);
  if (!rate) throw new Error(`${text} is not a rate`);
  return rate;
}

const nowSecs = (): number => Date.now() / 1_000;

/** How often a step can be done in a second, one after the other, in each round. */
async function perSec(step: () => unknown, batch = 1): Promise<number[]> {
  const found: number[] = [];
  for (let round = -1; round < rounds; round++) {
    const beganMs = performance.now();
    let done = 0;
    for (; performance.now() - beganMs < runMs; done += batch)
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what is measured
      for (let left = batch; left > 0; left--) await step();
    if (round >= 0) found.push(done / ((performance.now() - beganMs) / 1_000));
  }
  return found;
}

async function ofOneProcess(ledger: Ledger): Promise<[string, number[]][]> {
  const rate = rateOf(price);
  const sources = Array.from({ length: 5 }, (_, index) => ({ ...source, name: `s${index}` }));
  const said = sources.map((_, index): SourceAnswer => ({
    kind: 'rate',
    rate: rateOf(`320${index}.5`),
    observedAtSecs: 1_000_000,
  }));
  const of = { ...rateTerms, sources, minSources: 3 };
  const jobPrices = new Map(
    Array.from({ length: 1_000 }, (_, index) => [`1/${index}`, 10n ** 15n + BigInt(index)]),
  );
  const settings = {
    jobPrices,
    jobPolicies: new Map(),
    defaultInvocationMode: 'public_paid',
    acceptedTokens: [token],
    discoverable: true,
  } as unknown as JobsConfig;
  const pricesAt = () => {
    const catalog = createCatalog(
      settings,
      { topUps: [], runners: [] },
      new Map([[`${token.network}/${token.asset}`, rate]]),
    );
    return priceListOf(catalog, [token], 300, new Set());
  };
  const { network, asset, terms: name } = rateName(token);
  const isDue = () =>
    ledger.pool.query(
      `update tollbook.task set due_at = taken_at where kind = 'rate' and queue = $1 and key = $2`,
      [`${network}/${asset}`, name.toString('hex')],
    );
  const lane = openLane({ url: ledger.url });
  const quiet = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} };
  const round = async (): Promise<void> => {
    await isDue();
    await askRate({ pool: ledger.pool, lane, log: quiet, rates: { nowSecs } }, token);
  };
  const found: [string, number[]][] = [
    [
      'prices computed (wei × rate × markup, 18 decimals)',
      await perSec(() => tokenAmount(10n ** 15n, rate, 6, 200), 1_000),
    ],
    ['rounds of five sources judged', await perSec(() => judgeRound(of, said, 1_000_001), 100)],
    ['an HTTP source on loopback asked', await perSec(() => askHttpRate(source, 0, timeoutMs))],
    ['whole rounds, the rate unchanged', await perSec(round)],
    [
      'whole rounds, each with another rate and its event',
      await perSec(async () => {
        price = `${3_200 + Math.random()}`;
        await round();
      }),
    ],
    ['price lists of 1,000 jobs computed', await perSec(pricesAt)],
    ['price lists of 1,000 jobs put in force', await perSec(() => offerPrices(ledger.pool, pricesAt()))],
  ];
  await lane.close();
  return found;
}

interface Gateway {
  readonly name: string;
  readonly url: string;
}

/** Requests per second, this many at a time. */
async function offersPerSec(
  { url }: Gateway,
  ask: { method: 'GET' | 'POST'; path: string },
  status: number,
): Promise<number> {
  const pool = createHttpPool(url, { connections: atOnce });
  const beganMs = performance.now();
  let done = 0;
  const drive = async (): Promise<void> => {
    while (performance.now() - beganMs < runMs) {
      // oxlint-disable-next-line no-await-in-loop -- one client asks one after the other
      const answer = await pool.request({ ...ask, timeoutMs, maxResponseBytes: 65_536 });
      if (answer.kind !== 'response' || answer.status !== status)
        throw new Error(`no ${status} of ${url}${ask.path}`);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, drive));
  const found = done / ((performance.now() - beganMs) / 1_000);
  await pool.close();
  return found;
}

async function startGateways(ledger: Ledger, stub: Awaited<ReturnType<typeof startProgram>>) {
  const stage = { ledger, stub, load: stub };
  const fixed = paymentGateway(stage, true, dir);
  const fromSource = `[[accepted_tokens.rates]]\nkind = "http"\nurl = "${marketUrl}"\npointer = "/rate"\n`;
  const sourced = {
    ...fixed,
    configText: (port: number) =>
      fixed
        .configText(port)
        .replace('[job_prices.1]', `${fromSource}\n[job_prices.1]`)
        .replace(/^rate_per.*$/m, ''),
  };
  return [
    { name: 'a fixed rate', ...(await startTollbook(fixed)) },
    { name: 'a rate from a source', ...(await startTollbook(sourced)) },
  ];
}

async function ofGateways(gateways: readonly Gateway[]): Promise<string[]> {
  const lines: string[] = [];
  for (const [what, ask, status] of [
    ['price endpoint', { method: 'GET', path: `${terms.path}/price` }, 200],
    ['answer 402', { method: 'POST', path: terms.path }, 402],
  ] as const) {
    const found = new Map<Gateway, number[]>(gateways.map((gateway) => [gateway, []]));
    for (let round = -1; round < rounds; round++)
      for (const [gateway, measured] of found) {
        const rate = await offersPerSec(gateway, ask, status);
        if (round >= 0) measured.push(rate);
      }
    const [first = Number.NaN] = [...found.values()].map(median);
    for (const [{ name }, measured] of found)
      lines.push(row([`${what}, ${name}`, spread(measured), (median(measured) / first).toFixed(2)]));
  }
  return lines;
}

mkdirSync(dir, { recursive: true });
const ledger = await startLedger(path.join(dir, 'pg'), {});
const stub = await startProgram('facilitator.ts');
let gateways: Awaited<ReturnType<typeof startGateways>> = [];
try {
  const columns = ['one after the other', 'per second (min–max)'];
  say([row(columns), ruler(columns)].join('\n'));
  for (const [what, measured] of await ofOneProcess(ledger)) say(row([what, spread(measured)]));
  gateways = await startGateways(ledger, stub);
  const offers = [`offers, ${atOnce} at a time`, 'requests/s (min–max)', '× fixed'];
  say(`\n${[row(offers), ruler(offers), ...(await ofGateways(gateways))].join('\n')}`);
  say(
    `\nload ${os.loadavg().map(whole).join(', ')} on ${os.cpus().length} cores; medians of ${rounds} rounds`,
  );
} finally {
  for (const gateway of gateways) await gateway.stop();
  await stub.stop();
  await ledger.stop();
  market.close();
  market.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
}
