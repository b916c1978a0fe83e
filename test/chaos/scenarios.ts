import { payBoundQuote } from './bound-scenarios.ts';
import {
  landInLongTransaction,
  payTakenQuote,
  sendLandedTogether,
  useNonceOtherwise,
} from './contested-scenarios.ts';
import { askAtOnce, buyCreditAndAsk } from './credit-scenarios.ts';
import { spendAtOnce, spendForTwo, spendFrontRun, spendOneAfterAnother } from './spend-scenarios.ts';
import { privateKeyToAccount } from 'viem/accounts';
import { callerHeaders } from '../support/caller.ts';
import type { Presentation, SignedOnce } from './records.ts';
import { askForOffer } from './client.ts';
import { leaveAndReturn, otherRouteRequest, routeRequest } from './route-scenarios.ts';
import { flood, payWithoutMoney, provokeFacilitator } from './hostile-scenarios.ts';
import {
  landLate,
  payAtTheLastMoment,
  payWithSpentCredentials,
  payWithStalledFailure,
} from './late-scenarios.ts';
import type { Random } from './random.ts';
import {
  fund,
  pay,
  payAndDisconnect,
  payerOf,
  payLater,
  payOnce,
  type RunningScenario,
  type ScenarioParts,
  sign,
  signThis,
} from './scenario-parts.ts';
import { isOfRoute, jobs, type Scenario, type ScenarioKind } from './schedule.ts';
import { pause } from './until.ts';

/** Runs the clients of a scenario, and resolves when all of them have finished. */
export async function runScenario(parts: ScenarioParts, scenario: Scenario, random: Random): Promise<void> {
  await pause(scenario.atMs, parts.deadline);
  const refused = scenario.kind === 'reluctant' ? `refuse ${random.between(1, 2)} times ` : '';
  const body = `${refused}${scenario.id} ${random.hex32()} ${'x'.repeat(scenario.bodyBytes)}`;
  const delegated = scenario.job === 'delegated' ? await callerHeaders(body, { nonce: random.hex32() }) : {};
  const { path } = jobs[scenario.job];
  const isRouted = isOfRoute({ path: `${path}/` });
  const request = isRouted ? routeRequest(scenario, body, random) : { path, body, headers: delegated };
  const id = scenario.kind === 'spent_id' ? { paymentId: random.hex32() } : {};
  const urls = isRouted ? parts.routeUrls : parts.urls;
  await scenarioSteps[scenario.kind]({ parts: { ...parts, urls }, scenario, random, request, ...id });
}

type ScenarioStep = (running: RunningScenario) => Promise<unknown>;

const scenarioSteps: Readonly<Record<ScenarioKind, ScenarioStep>> = {
  honest: payOnce,
  reluctant: payOnce,
  taken_quote: payTakenQuote,
  long_landing: landInLongTransaction,
  void_nonce: useNonceOtherwise,
  one_transaction: sendLandedTogether,

  quitter: async (running) => {
    const signed = await sign(running, payerOf(running));
    return signed && payAndDisconnect(running, signed);
  },

  signs_again: async (running) => {
    for (let times = 0; times < 3; times++) {
      const signed = await sign(running, payerOf(running));
      if (!signed || (await pay(running, signed)) !== 'refused') return;
    }
  },

  twins: async (running) => {
    const signed = await sign(running, payerOf(running));
    if (!signed) return;
    const count = running.random.between(2, 3);
    await Promise.all(
      Array.from({ length: count }, (_, twin) => payLater(running, signed, `twin ${twin}`, 400)),
    );
  },

  impostor: async (running) => {
    const signed = await sign(running, payerOf(running));
    if (!signed) return;
    const request = isOfRoute(running.request)
      ? otherRouteRequest(running.request, running.random)
      : { ...running.request, body: `${running.request.body} of another client` };
    await Promise.all([
      payLater(running, signed, 'payer', 200),
      payLater({ ...running, request }, signed, 'impostor', 200),
    ]);
  },

  nonce_rivals: async (running) => {
    const both = await Promise.all([sign(running, payerOf(running)), sign(running, payerOf(running))]);
    await Promise.all(
      both.map(async (signed, rival) => {
        if (signed) await payLater(running, signed, `rival ${rival}`, rival * 3_000);
      }),
    );
  },

  quote_rivals: async (running) => {
    const offer = await askForOffer(running.parts, running.random, running.request);
    if (!offer) return;
    const both = [0, 1].map(() => signThis(running, offer, payerOf(running)));
    await Promise.all(
      (await Promise.all(both)).map((signed, rival) =>
        payLater(running, signed, `rival ${rival}`, rival * 1_500),
      ),
    );
  },

  bound_rivals: payBoundQuote,
  leaver: leaveAndReturn,
  metered: (running) =>
    scenarioSteps[running.random.pick(['honest', 'leaver', 'twins', 'quitter'] as const)](running),

  poor: async (running) => payTwiceWithMoneyForOne(running),

  exact: async (running) => {
    const payer = privateKeyToAccount(running.random.hex32());
    const signed = await sign(running, payer);
    if (!signed) return;
    await fund(running, payer, signed);
    await pay(running, signed);
  },

  late_landing: async (running) => {
    const payer = privateKeyToAccount(running.random.hex32());
    for (const { signed, end } of await payTwiceWithMoneyForOne(running, payer)) {
      if (end !== 'refused' || !(await running.parts.isStarted(signed))) continue;
      await fund(running, payer, signed);
      await landLate(running, signed);
    }
  },

  spent_nonce: payWithSpentCredentials,
  spent_id: payWithSpentCredentials,
  stalled_failure: payWithStalledFailure,
  last_moment: payAtTheLastMoment,
  unfunded: payWithoutMoney,
  provoker: provokeFacilitator,
  flooder: flood,
  credit_buyer: buyCreditAndAsk,
  credit_rivals: askAtOnce,
  spender: spendOneAfterAnother,
  spend_twins: spendAtOnce,
  spend_impostor: spendForTwo,
  spend_front_run: spendFrontRun,
};

export const scenarioKinds = Object.keys(scenarioSteps) as readonly ScenarioKind[];

async function payTwiceWithMoneyForOne(
  running: RunningScenario,
  payer = privateKeyToAccount(running.random.hex32()),
): Promise<{ signed: SignedOnce; end: Presentation['end'] }[]> {
  const both = await Promise.all([sign(running, payer), sign(running, payer)]);
  const [first, second] = both;
  if (!first || !second) return [];
  await fund(running, payer, first);
  return Promise.all([first, second].map(async (signed) => ({ signed, end: await pay(running, signed) })));
}
