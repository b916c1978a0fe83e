import { setTimeout as sleep } from 'node:timers/promises';
import type { PrivateKeyAccount } from 'viem/accounts';
import { paymentIdentifierKey } from '../../src/base/values/payment-identifier.ts';
import { mint } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { type Offer, signOffer } from '../support/payer.ts';
import type { Ambushes } from './ambushes.ts';
import type { ChainGate } from './chain-gate.ts';
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
import type { Prepared } from './prepare-credit.ts';
import type { Random } from './random.ts';
import type { Scenario } from './schedule.ts';
import type { Environment } from './environment.ts';

export interface ScenarioParts extends ClientParts {
  readonly environment: Pick<Environment, 'chain' | 'payers' | 'tokens'>;
  readonly records: Records;
  /** Of the ledger's database; it changes when another server takes over. */
  readonly ledgerUrl: () => string;
  readonly frontRunner: FrontRunner;
  readonly ambushes: Ambushes;
  readonly gate: ChainGate;
  /** By scenario. */
  readonly prepared: ReadonlyMap<string, Prepared>;
  /** Aborts when the faults have ended. */
  readonly quiet: AbortSignal;
  /** Whether the ledger holds this payment's claim. */
  readonly isStarted: (signed: SignedOnce) => Promise<boolean>;
}

/** A scenario in progress: its request and its source of randomness. */
export interface RunningScenario {
  readonly parts: ScenarioParts;
  readonly scenario: Scenario;
  readonly random: Random;
  readonly request: JobRequest;
  /** The payer's own id of all payments of this scenario. */
  readonly paymentId?: string;
}

export function payerOf({ parts, random }: RunningScenario): PrivateKeyAccount {
  return random.pick(parts.environment.payers);
}

export async function sign(
  running: RunningScenario,
  account: PrivateKeyAccount,
): Promise<SignedOnce | undefined> {
  const offer = await askForOffer(running.parts, running.random, running.request);
  return offer && signThis(running, offer, account);
}

export async function signThis(
  { parts, scenario, random, paymentId: id }: RunningScenario,
  offer: Offer,
  account: PrivateKeyAccount,
): Promise<SignedOnce> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const validity = isPoor(scenario) ? { validBefore: String(nowSecs + poorValiditySecs) } : {};
  const signed = { nonce: random.hex32(), ...validity };
  const signedOffer = await signOffer(offer, { account, option: scenario.option, signed });
  const payment = id
    ? { ...signedOffer, extensions: { [paymentIdentifierKey]: { info: { id } } } }
    : signedOffer;
  if (scenario.frontRun) parts.frontRunner.plan(payment, scenario.frontRun);
  return parts.records.add(payment);
}

/** A payment without balance ends only when its authorization expires, so it expires early. */
const poorValiditySecs = 10;

function isPoor({ kind }: Scenario): boolean {
  return kind === 'poor' || kind === 'late_landing';
}

/** Mints exactly the amount of one payment to its payer. */
export function fund({ parts }: RunningScenario, payer: Address, { payment }: SignedOnce): Promise<void> {
  const { asset, amount } = payment.accepted;
  return parts.gate.send(() => mint(parts.environment.chain, asset, payer, BigInt(amount)));
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

export function pay(
  running: RunningScenario,
  signed: SignedOnce,
  random = running.random,
): Promise<Presentation['end']> {
  return present(running.parts, random, withPayment(running, signed), open(running, signed));
}

export async function payLater(
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
export async function payAndDisconnect(running: RunningScenario, signed: SignedOnce): Promise<void> {
  const { parts, random } = running;
  const presentation = open(running, signed);
  const limit = timeLimit(random.between(5, 500), parts.deadline);
  presentation.attempts.push(await sendOnce(random.pick(parts.urls), withPayment(running, signed), limit));
  presentation.end = 'left';
}
