import path from 'node:path';
import type { Bench } from './bench.ts';
import { readSettings, startLedger } from './ledger.ts';
import { measure, measureExchange, type Scenario, type Stage } from './measure.ts';
import { slow, startPaymentTargets } from './payment-targets.ts';
import { startProgram } from './processes.ts';
import { profilePayments, profileSettings } from './profile.ts';
import { circumstancesOf, tableOf } from './report.ts';
import { interleave } from './rounds.ts';

async function startStage(
  { keep, dir }: Bench,
  settings: Readonly<Record<string, string>>,
  stubArgs: readonly string[] = [],
): Promise<Stage> {
  const ledger = await keep(startLedger(path.join(dir, 'pg'), settings));
  const stub = await keep(startProgram('facilitator.ts', stubArgs));
  const load = await keep(startProgram('load.ts'));
  return { ledger, stub, load };
}

/** Paid jobs whose facilitator takes as long as a real one does: how many payments are under way at once decides. */
export const slowFacilitatorPart = {
  async compare(bench: Bench): Promise<string> {
    // two answers of each client, at least
    const secs = Math.max(bench.runSecs, (2 * (slow.verifyMs + slow.settleMs)) / 1_000);
    const scenarios: readonly Scenario[] = [512, 2_000].map((concurrency) => ({
      title: `Paid request, ${concurrency} at a time`,
      what: 'payments',
      concurrency,
      secs,
    }));
    const stubArgs = ['--verify-ms', String(slow.verifyMs), '--settle-ms', String(slow.settleMs)];
    const stage = await startStage(bench, {}, stubArgs);
    const all = await startPaymentTargets(bench, stage, true);
    const findings = await interleave(bench, {
      targets: all.filter(({ verifies }) => verifies),
      scenarios,
      isOf: () => true,
      measure: (target, scenario, count) => measure(stage, target, scenario, count),
    });
    return [
      tableOf(findings),
      '',
      circumstancesOf(bench, findings, await readSettings(stage.ledger)),
      `- The stub facilitator answers /verify after ${slow.verifyMs} ms and /settle after ${slow.settleMs} ms on average, evenly from half to one and a half of it.`,
      '- Every payment unique; every settlement, event and counter checked after each run.',
    ].join('\n');
  },

  async profile(bench: Bench): Promise<string> {
    return paymentPart.profile(bench);
  },
};

/** Paid jobs: Tollbook compared with the official x402 middlewares. */
export const paymentPart = {
  async compare(bench: Bench): Promise<string> {
    const { runSecs: secs } = bench;
    const scenarios: readonly Scenario[] = [
      { title: 'Paid request, 64 at a time', what: 'payments', concurrency: 64, secs },
      { title: 'Paid request, 256 at a time', what: 'payments', concurrency: 256, secs },
      { title: 'Answer 402, 64 at a time', what: 'unpaid', concurrency: 64, secs },
      { title: 'Paid request, one at a time', what: 'payments', concurrency: 1, secs: secs / 2 },
    ];
    const stage = await startStage(bench, {});
    const targets = await startPaymentTargets(bench, stage);
    const findings = await interleave(bench, {
      targets,
      scenarios,
      // a 402 involves no verification
      isOf: ({ what }, { verifies }) => what === 'payments' || verifies,
      measure: (target, scenario, count) => measure(stage, target, scenario, count),
    });
    const exchange = await measureExchange(stage);
    return [
      tableOf(findings),
      '',
      circumstancesOf(bench, findings, await readSettings(stage.ledger)),
      `- The stub facilitator answers in ${exchange.p50Ms.toFixed(2)} ms (p50, one at a time); every paid request asks it twice, with facilitator_verify = false once.`,
      '- Every payment unique; every settlement, event and counter checked after each run. ' +
        'The peers store nothing; Tollbook commits durably before it settles and again before it answers, and logs a line a request.',
    ].join('\n');
  },

  async profile(bench: Bench): Promise<string> {
    return profilePayments(await startStage(bench, profileSettings), bench);
  },
};
