/**
 * `node bench/hands.ts [--payments 300]` measures how long a call takes from its client's 202 to its runner's handler, pushed and leased:
 * one payment at a time, on a gateway that has nothing else to do. A call that its runner has before the client has the 202 took 0 ms.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { say } from '../src/base/terminal/terminal.ts';
import { freePort } from '../src/devnet/ports.ts';
import { createRunner, job } from '../src/runner/index.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { paymentGateway } from './payment-targets.ts';
import { firstOffer, payFor } from './payments.ts';
import { type Program, startProgram } from './processes.ts';
import { terms } from './terms.ts';
import { startTollbook } from './tollbook.ts';

const { values: flags } = parseArgs({ options: { payments: { type: 'string', default: '300' } } });
const payments = Number(flags.payments);
const warmUp = 50;
const token = 'a-token-of-the-bench-that-is-long-enough';
const pauseMs = 20;
const dir = path.join(import.meta.dirname, '.tollbook', `hands-${process.pid}`);

type Mode = 'push' | 'lease';

/** When the handler got each call, whether it is asked for before or afterwards. */
function arrivals(): (callId: number) => PromiseWithResolvers<number> {
  const all = new Map<number, PromiseWithResolvers<number>>();
  return (callId) => {
    const one = all.get(callId) ?? Promise.withResolvers<number>();
    all.set(callId, one);
    return one;
  };
}

async function pay(url: string): Promise<{ callId: number; at: number }> {
  const body = JSON.stringify({ prompt: 'what a client sends with its job, a hundred bytes or so' });
  const post = (headers: Record<string, string>): Promise<Response> =>
    fetch(url + terms.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
  const offered = await post({});
  await offered.arrayBuffer();
  const offer = firstOffer(offered.headers.get('payment-required') ?? '');
  const paid = await post({ 'payment-signature': payFor(offer, true) });
  const at = performance.now();
  const answer = (await paid.json()) as { call_id: number };
  if (paid.status !== 202) throw new Error(`${paid.status} instead of 202`);
  return { callId: answer.call_id, at };
}

/** Milliseconds from the 202 to the handler, of each payment. */
async function measure(mode: Mode, ledger: Ledger, stub: Program): Promise<number[]> {
  const arrived = arrivals();
  const work = job({
    serviceId: 1,
    jobIndex: 0,
    on: {
      x402({ callId }) {
        arrived(callId).resolve(performance.now());
        return 'done';
      },
    },
  });
  const runner = createRunner({ jobs: [work] });
  const port = await freePort();
  const secret = path.join(dir, 'secret');
  writeFileSync(secret, token, { mode: 0o600 });
  const address = mode === 'push' ? `url = "http://127.0.0.1:${port}"\n` : '';
  const table = `\n[[runners]]\nservices = [1]\nmode = "${mode}"\n${address}token = "file:${secret}"\n`;
  const options = paymentGateway({ ledger, stub, load: stub }, true, dir, undefined, table);
  const configText = (gatewayPort: number): string =>
    `receipt_key = "file:${secret}"\n${options.configText(gatewayPort)}`;
  if (mode === 'push') await runner.listen({ port, secret: token });
  const gateway = await startTollbook({ ...options, configText });
  const polling = mode === 'lease' ? runner.poll({ gatewayUrl: gateway.url, token }) : Promise.resolve();
  try {
    const times: number[] = [];
    for (let payment = 0; payment < warmUp + payments; payment++) {
      const { callId, at } = await pay(gateway.url);
      const handedAt = await arrived(callId).promise;
      if (payment >= warmUp) times.push(Math.max(0, handedAt - at));
      // its completion is recorded meanwhile, and the runner asks for the next one
      await sleep(pauseMs);
    }
    return times;
  } finally {
    await runner.stop();
    await polling;
    await gateway.stop();
  }
}

mkdirSync(dir, { recursive: true });
const ledger = await startLedger(path.join(dir, 'pg'), {});
const stub = await startProgram('facilitator.ts');
try {
  say('| from the 202 to the handler | p10 ms | p50 ms | p95 ms |');
  say('| --- | --: | --: | --: |');
  for (const mode of ['push', 'lease'] as const) {
    const times = (await measure(mode, ledger, stub)).toSorted((a, b) => a - b);
    const at = (share: number): string => (times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(1);
    say(`| ${mode} | ${at(0.1)} | ${at(0.5)} | ${at(0.95)} |`);
  }
  say(`load average ${loadavg()[0]?.toFixed(1)}`);
} finally {
  await stub.stop();
  await ledger.stop();
  rmSync(dir, { recursive: true, force: true });
}
