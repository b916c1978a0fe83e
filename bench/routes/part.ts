import path from 'node:path';
import type { Bench } from '../bench.ts';
import { readSettings, startLedger } from '../ledger.ts';
import { measure, order, type Scenario } from '../measure.ts';
import { paymentGateway, slow } from '../payment-targets.ts';
import { startProgram } from '../processes.ts';
import { profileOne, profileSettings } from '../profile.ts';
import { circumstancesOf, tableOf } from '../report.ts';
import { interleave } from '../rounds.ts';
import { startTollbook } from '../tollbook.ts';
import { routeGateway, type RouteStage, startRouteTargets } from './targets.ts';
import { restAfterMs } from './terms.ts';

async function startStage(
  { keep, dir }: Bench,
  settings: Readonly<Record<string, string>>,
): Promise<RouteStage> {
  const ledger = await keep(startLedger(path.join(dir, 'pg'), settings));
  const stub = await keep(startProgram('facilitator.ts'));
  const load = await keep(startProgram('load.ts'));
  const upstream = await keep(startProgram('routes/upstream.ts'));
  return { ledger, stub, load, upstream };
}

/**
 * Both flows at 64 and 512 at a time, and a stream one at a time.
 * @param latencyMs of the facilitator, for one payment
 */
function scenariosOf(stub: string, secs: number, latencyMs: number): Scenario[] {
  const guess = (concurrency: number): Partial<Scenario> =>
    latencyMs > 0 ? { guessedPerSec: (1_000 * concurrency) / latencyMs } : {};
  const paid = (['authorization', 'upfront'] as const).flatMap((route) =>
    [64, 512].map((concurrency): Scenario => ({
      title: `${route}, ${concurrency} at a time, ${stub}`,
      what: 'payments',
      route,
      concurrency,
      secs,
      ...guess(concurrency),
    })),
  );
  const stream: Scenario = {
    title: `First byte of a stream, one at a time, ${stub}`,
    what: 'payments',
    route: 'stream',
    concurrency: 1,
    secs: 2 * secs,
    guessedPerSec: 4,
    ...guess(1),
  };
  return [...paid, stream];
}

/** Tollbook in front of an HTTP API, compared with the official x402 middlewares and the proxies that their users put behind them. */
export const routesPart = {
  async compare(bench: Bench): Promise<string> {
    const { runSecs } = bench;
    const quickStage = await startStage(bench, {});
    const { load, upstream, ledger } = quickStage;
    const compareOn = async (stage: RouteStage, name: string, scenarios: readonly Scenario[]) => {
      if (!scenarios.some(({ title }) => title.includes(bench.having))) return [];
      const targets = await startRouteTargets(bench, stage, name);
      return interleave(bench, {
        targets,
        scenarios,
        // the peers verify nothing where they settle first
        isOf: ({ route, what }, { verifies }) =>
          verifies || (what === 'payments' && route !== 'authorization'),
        measure: (target, scenario, count) => measure(stage, target, scenario, count),
      });
    };
    const findings = await compareOn(quickStage, 'quick', [
      ...scenariosOf('quick stub', runSecs, 0),
      { title: '402, 64 at a time', what: 'unpaid', route: 'authorization', concurrency: 64, secs: runSecs },
    ]);
    const alone = await order(load, {
      op: 'send',
      url: upstream.url,
      what: 'unpaid',
      count: 20,
      concurrency: 1,
      status: 200,
      route: 'stream',
    });
    const stubArgs = ['--verify-ms', String(slow.verifyMs), '--settle-ms', String(slow.settleMs)];
    const slowStage = { ...quickStage, stub: await bench.keep(startProgram('facilitator.ts', stubArgs)) };
    const latencyMs = slow.verifyMs + slow.settleMs;
    const slowly = await compareOn(slowStage, 'slow', scenariosOf('slow stub', runSecs, latencyMs));
    const all = [...findings, ...slowly];
    return [
      tableOf(all),
      '',
      circumstancesOf(bench, all, await readSettings(ledger)),
      `- The slow stub answers /verify after ${slow.verifyMs} ms and /settle after ${slow.settleMs} ms on average, evenly from half to one and a half of it, and exactly then one at a time.`,
      '- With `upfront` the peers ask the facilitator once, for the settlement, as Tollbook does with facilitator_verify = false.',
      `- A stream's first event comes at once, the others ${restAfterMs} ms later; the times are those to its first byte. Without a gateway: p50 ${alone.firstEvent.p50Ms.toFixed(2)} ms.`,
      '- Every payment unique; every settlement, event, counter and answer checked after each run, and the body of every answer.',
    ].join('\n');
  },

  async profile(bench: Bench): Promise<string> {
    const stage = await startStage(bench, profileSettings);
    const jobs = paymentGateway(stage, true, bench.dir);
    const quoting = await routeGateway(jobs, stage.upstream);
    await bench.keep(startTollbook(quoting.options));
    const parts: string[] = [];
    for (const route of ['authorization', 'upfront'] as const) {
      const { options, url } = await routeGateway(jobs, stage.upstream);
      const title = `route, ${route}, 512 at a time`;
      const part = await profileOne(stage, bench, title, options, ({ pid }, count) =>
        measure(
          stage,
          { name: 'Tollbook', isPeer: false, pid, url, offersUrl: quoting.url, verifies: true, signed: true },
          { what: 'payments', route, concurrency: 512 },
          Math.max(count, 2_048),
        ),
      );
      parts.push(part);
    }
    return parts.join('\n\n');
  },
};
