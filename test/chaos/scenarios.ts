import { setTimeout as sleep } from 'node:timers/promises';
import { privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { mint } from '../../src/devnet/token.ts';
import type { Address } from '../../src/domain/values/primitives.ts';
import { callerHeaders } from '../support/caller.ts';
import { type Offer, signOffer } from '../support/payer.ts';
import type { Records, Presentation, SignedOnce } from './records.ts';
import {
  askForOffer,
  type ClientParts,
  type JobRequest,
  paymentHeader,
  present,
  sendOnce,
  timeLimit,
} from './client.ts';
import type { FrontRunner } from './front-runner.ts';
import type { Random } from './random.ts';
import { jobs, type Scenario, type ScenarioKind } from './schedule.ts';
import type { Environment } from './environment.ts';

export interface ScenarioParts extends ClientParts {
  readonly environment: Pick<Environment, 'chain' | 'payers' | 'tokens'>;
  readonly records: Records;
  readonly frontRunner: FrontRunner;
  /** Whether the ledger holds this payment's claim. */
  readonly isStarted: (signed: SignedOnce) => Promise<boolean>;
}

/** A scenario in progress: its request and its source of randomness. */
interface RunningScenario {
  readonly parts: ScenarioParts;
  readonly scenario: Scenario;
  readonly random: Random;
  readonly request: JobRequest;
}

/** Runs the clients of a scenario, and resolves when all of them have finished. */
export async function runScenario(parts: ScenarioParts, scenario: Scenario, random: Random): Promise<void> {
  await sleep(scenario.atMs, undefined, { signal: parts.deadline }).catch(() => {});
  const body = `${scenario.id} ${random.hex32()} ${'x'.repeat(scenario.bodyBytes)}`;
  const delegated = scenario.job === 'delegated' ? await callerHeaders(body, { nonce: random.hex32() }) : {};
  const request = { path: jobs[scenario.job].path, body, headers: delegated };
  await scenarioSteps[scenario.kind]({ parts, scenario, random, request });
}

type ScenarioStep = (running: RunningScenario) => Promise<unknown>;

const scenarioSteps: Readonly<Record<ScenarioKind, ScenarioStep>> = {
  honest: async (running) => {
    const signed = await sign(running, payerOf(running));
    return signed && pay(running, signed);
  },

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
    const request = { ...running.request, body: `${running.request.body} of another client` };
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

  poor: async (running) => payTwiceWithMoneyForOne(running),

  exact: async (running) => {
    const payer = privateKeyToAccount(running.random.hex32());
    const signed = await sign(running, payer);
    if (!signed) return;
    await fund(running, payer.address, signed);
    await pay(running, signed);
  },

  late_landing: async (running) => {
    for (const { signed, end } of await payTwiceWithMoneyForOne(running)) {
      if (end !== 'refused' || !(await running.parts.isStarted(signed))) continue;
      await fund(running, signed.payer as Address, signed);
      running.parts.records.landedLate.add(signed.key);
      if (!(await running.parts.frontRunner.submit(signed.payment)))
        running.parts.records.landedLate.delete(signed.key);
    }
  },
};

async function payTwiceWithMoneyForOne(
  running: RunningScenario,
): Promise<{ signed: SignedOnce; end: Presentation['end'] }[]> {
  const payer = privateKeyToAccount(running.random.hex32());
  const both = await Promise.all([sign(running, payer), sign(running, payer)]);
  const [first, second] = both;
  if (!first || !second) return [];
  await fund(running, payer.address, first);
  return Promise.all([first, second].map(async (signed) => ({ signed, end: await pay(running, signed) })));
}

function payerOf({ parts, random }: RunningScenario): PrivateKeyAccount {
  return random.pick(parts.environment.payers);
}

async function sign(running: RunningScenario, account: PrivateKeyAccount): Promise<SignedOnce | undefined> {
  const offer = await askForOffer(running.parts, running.random, running.request);
  return offer && signThis(running, offer, account);
}

async function signThis(
  { parts, scenario, random }: RunningScenario,
  offer: Offer,
  account: PrivateKeyAccount,
): Promise<SignedOnce> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const validity = isPoor(scenario) ? { validBefore: String(nowSecs + poorValiditySecs) } : {};
  const signed = { nonce: random.hex32(), ...validity };
  const payment = await signOffer(offer, { account, option: scenario.option, signed });
  if (scenario.frontRun) parts.frontRunner.plan(payment, scenario.frontRun);
  return parts.records.add(payment);
}

/** A payment without balance ends only when its authorization expires, so it expires early. */
const poorValiditySecs = 10;

function isPoor({ kind }: Scenario): boolean {
  return kind === 'poor' || kind === 'late_landing';
}

/** Mints exactly the amount of one payment to its payer. */
function fund({ parts }: RunningScenario, payer: Address, { payment }: SignedOnce): Promise<void> {
  return mint(parts.environment.chain, payment.accepted.asset, payer, BigInt(payment.accepted.amount));
}

function open({ parts, scenario, request }: RunningScenario, signed: SignedOnce): Presentation {
  const { path, body } = request;
  const of = { scenario: scenario.id, version: scenario.version, signed, path, body };
  const presentation: Presentation = { ...of, attempts: [], end: 'unanswered' };
  parts.records.presentations.push(presentation);
  return presentation;
}

function withPayment({ request, scenario }: RunningScenario, signed: SignedOnce): JobRequest {
  return { ...request, headers: { ...request.headers, ...paymentHeader(signed, scenario.version) } };
}

function pay(
  running: RunningScenario,
  signed: SignedOnce,
  random = running.random,
): Promise<Presentation['end']> {
  return present(running.parts, random, withPayment(running, signed), open(running, signed));
}

async function payLater(
  running: RunningScenario,
  signed: SignedOnce,
  who: string,
  withinMs: number,
): Promise<void> {
  const random = running.random.fork(who);
  await sleep(random.between(0, withinMs), undefined, { signal: running.parts.deadline }).catch(() => {});
  await pay(running, signed, random);
}

/** Sends once, drops the connection early, and does not return. */
async function payAndDisconnect(running: RunningScenario, signed: SignedOnce): Promise<void> {
  const { parts, random } = running;
  const presentation = open(running, signed);
  const limit = timeLimit(random.between(5, 500), parts.deadline);
  presentation.attempts.push(await sendOnce(random.pick(parts.urls), withPayment(running, signed), limit));
  presentation.end = 'left';
}
