import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Pool } from 'undici';
import { freePort } from '../../src/devnet/ports.ts';
import { balanceOf, devnetTokens } from '../../src/devnet/token.ts';
import { accountOf, offerOf, signOffer } from '../../test/support/payer.ts';
import { signUpto } from '../../test/support/upto.ts';
import type { Bench } from '../bench.ts';
import { readSettings, startLedger } from '../ledger.ts';
import { costsOf, expectGrowth, type Measurement, type Scenario, type Target } from '../measure.ts';
import { slow, tokenTables } from '../payment-targets.ts';
import { quantiles } from '../quantiles.ts';
import { cpuSecs, machineBusySecs, type Program, startProgram } from '../processes.ts';
import { circumstancesOf, tableOf } from '../report.ts';
import { interleave } from '../rounds.ts';
import { terms } from '../terms.ts';
import { startTollbook } from '../tollbook.ts';
import type { BenchDevnet } from './devnet.ts';
import { type UptoRoute, uptoRoutes, uptoTerms } from './terms.ts';

/** A payer may have four requests under way that are answered before they are settled. */
const payers = 32;

interface UptoScenario extends Scenario {
  readonly scheme: UptoRoute;
}

type Stage = BenchDevnet & {
  readonly devnet: Program;
  readonly upstream: Program;
  readonly postmasterPid: number;
};

async function startStage({
  keep,
  dir,
}: Bench): Promise<Stage & { readonly databaseUrl: string; readonly settings: string }> {
  const ledger = await keep(startLedger(path.join(dir, 'pg'), {}));
  const delays = ['--verify-ms', String(slow.verifyMs), '--settle-ms', String(slow.settleMs)];
  const devnet = await keep(startProgram('upto/devnet.ts', ['--payers', String(payers), ...delays]));
  const upstream = await keep(startProgram('upto/upstream.ts'));
  const { postmasterPid, url: databaseUrl } = ledger;
  const settings = await readSettings(ledger);
  return { ...(await devnet.ask<BenchDevnet>({})), devnet, upstream, postmasterPid, databaseUrl, settings };
}

async function startTargets(
  { keep, dir }: Bench,
  stage: Awaited<ReturnType<typeof startStage>>,
): Promise<Target[]> {
  const port = await freePort();
  const keyFile = path.join(dir, 'quote-key');
  writeFileSync(keyFile, 'the-key-of-the-quotes-of-this-bench', { mode: 0o600 });
  const configText = (own: number) => gatewayText(stage, own, port, keyFile);
  const { databaseUrl } = stage;
  const gateway = await keep(startTollbook({ databaseUrl, configText, readyPath: '/x402/ready', dir }));
  const peer = await keep(startProgram('peers/upto.mjs', [stage.devnet.url, stage.token]));
  return [
    targetOf('Tollbook', false, gateway.pid, `http://127.0.0.1:${port}`),
    targetOf('@x402/express', true, peer.pid, peer.url),
  ];
}

function targetOf(name: string, isPeer: boolean, pid: number, url: string): Target {
  return { name, isPeer, pid, url, offersUrl: url, verifies: true, signed: true };
}

function gatewayText(
  { devnet, rpcUrl, token, upstream }: Stage,
  own: number,
  port: number,
  keyFile: string,
): string {
  const route = (scheme: UptoRoute, index: number, more: string) => `
[[routes]]
service_id = 7
job_index = ${index}
path = "/${scheme}"
upstream = "${upstream.url}"
${more}
`;
  return `
bind_address = "127.0.0.1:${own}"
facilitator_url = "${devnet.url}"
quote_key = "file:${keyFile}"
quote_ttl_secs = ${terms.maxTimeoutSecs}
max_timeout_secs = ${terms.maxTimeoutSecs}

[limits]
requests_per_minute = 0

${tokenTables(rpcUrl, { asset: token, eip712: devnetTokens[0] })}
peg = "USD"

[route_listener]
bind_address = "127.0.0.1:${port}"
${route('exact', 0, `price = "${uptoTerms.usedUsd}"`)}
${route('upto', 1, `price = "${uptoTerms.mostUsd}"\ncharge_header = "x-price"`)}`;
}

/** Signs `count` payments, sends them all, and looks whether the chain shows each. */
async function measure(
  stage: Stage,
  { name, isPeer, pid, url }: Target,
  { scheme, concurrency }: UptoScenario,
  count: number,
): Promise<Measurement> {
  const client = new Pool(url, { connections: concurrency, pipelining: 1 });
  try {
    const payments = await sign(stage, url, scheme, count, isPeer);
    const balance = () => balanceOf(stage.rpcUrl, stage.token, terms.payTo);
    const before = await balance();
    const cpu = () => ({
      server: cpuSecs(pid),
      database: cpuSecs(stage.postmasterPid, true),
      bench:
        cpuSecs(process.pid) +
        cpuSecs(stage.devnet.pid) +
        cpuSecs(stage.chainPid) +
        (isPeer ? 0 : cpuSecs(stage.upstream.pid)),
      machine: machineBusySecs(),
    });
    const cpuBefore = cpu();
    const startedMs = performance.now();
    const times: number[] = [];
    const left = payments.values();
    const drive = async (): Promise<void> => {
      for (const payment of left) {
        const sentMs = performance.now();
        const { statusCode, body } = await client.request({
          method: 'GET',
          path: `/${scheme}`,
          headers: { 'payment-signature': payment },
        });
        const text = await body.text();
        if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
        times.push(performance.now() - sentMs);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, drive));
    const seconds = (performance.now() - startedMs) / 1_000;
    const cpuAfter = cpu();
    expectGrowth('atoms', Number((await balance()) - before), count * Number(uptoTerms.used));
    return {
      perSec: count / seconds,
      ...quantiles(times),
      ...costsOf(cpuBefore, cpuAfter, { count, seconds, hasLedger: !isPeer }),
      batchSize: 0,
    };
  } catch (error) {
    throw new Error(`${name}: ${count} payments by ${scheme} at ${concurrency}`, { cause: error });
  } finally {
    await client.close();
  }
}

/** A payment to Tollbook names a quote, and a quote is paid once; a peer takes any number for one offer. */
async function sign(
  { payers: keys }: Stage,
  url: string,
  scheme: UptoRoute,
  count: number,
  isPeer: boolean,
): Promise<string[]> {
  const accounts = keys.map(accountOf);
  const ask = async () => {
    const response = await fetch(`${url}/${scheme}`);
    return offerOf({
      status: response.status,
      headers: response.headers,
      text: await response.text(),
      json: undefined,
    });
  };
  const known = isPeer ? await ask() : undefined;
  const payments: string[] = [];
  for (let at = 0; at < count; at++) {
    const options = { account: accounts[at % accounts.length]! };
    const offer = known ?? (await ask());
    const payment = scheme === 'upto' ? await signUpto(offer, options) : await signOffer(offer, options);
    payments.push(Buffer.from(JSON.stringify(payment)).toString('base64'));
  }
  return payments;
}

/** A price after the answer beside a fixed one, and beside the SDK's own server: with a real chain, and a facilitator that takes as long as a real one. */
export const uptoPart = {
  async compare(bench: Bench): Promise<string> {
    const latencyMs = slow.verifyMs + slow.settleMs;
    const secs = Math.max(bench.runSecs, (2 * latencyMs) / 1_000);
    const scenarios = [8, 32].flatMap((concurrency) =>
      uptoRoutes.map((scheme): UptoScenario => ({
        title: `${scheme}, ${concurrency} at a time`,
        what: 'payments',
        scheme,
        concurrency,
        secs,
        guessedPerSec: (1_000 * concurrency) / latencyMs,
      })),
    );
    const stage = await startStage(bench);
    const targets = await startTargets(bench, stage);
    const findings = await interleave(bench, {
      targets,
      scenarios,
      isOf: () => true,
      measure: (target, scenario, count) => measure(stage, target, scenario, count),
    });
    return [
      tableOf(findings),
      '',
      circumstancesOf(bench, findings, stage.settings),
      `- A real chain and facilitator; the facilitator's answers are delayed by ${slow.verifyMs} ms for /verify and ${slow.settleMs} ms for /settle on average, evenly from half to one and a half of it.`,
      `- Each request is worth ${uptoTerms.used} atoms; by upto ${uptoTerms.most} are signed. After each run the payee's balance on the chain has grown by exactly that.`,
      '- Tollbook waits until the chain shows how much was moved by upto; the peer takes the word of the facilitator for it, and stores nothing.',
    ].join('\n');
  },

  profile: (bench: Bench): Promise<string> => uptoPart.compare(bench),
};
