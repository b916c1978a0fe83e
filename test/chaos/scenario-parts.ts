import type { PrivateKeyAccount } from 'viem/accounts';
import { paymentIdentifierKey } from '../../src/base/values/payment-identifier.ts';
import { approvePermit2, mint } from '../../src/devnet/token.ts';
import { type Offer } from '../support/payer.ts';
import { isPermit, signOption } from '../support/permit2.ts';
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
import type { RunParts } from './run-parts.ts';
import type { Scenario } from './schedule.ts';
import type { Environment } from './environment.ts';
import { pause } from './until.ts';

/** What a client needs to pay. */
export interface PayingParts extends ClientParts {
  readonly environment: Pick<Environment, 'payers'>;
  readonly records: Records;
  readonly frontRunner?: FrontRunner;
  /** Aborts when no further payment is begun; left out, the run's end. */
  readonly asking?: AbortSignal;
}

export interface ScenarioParts extends RunParts, ClientParts {
  /** Where routes are sold. */
  readonly routeUrls: readonly string[];
  /** By scenario. */
  readonly prepared: ReadonlyMap<string, Prepared>;
  /** Whether the ledger holds this payment's claim. */
  readonly isStarted: (signed: SignedOnce) => Promise<boolean>;
}

/** A scenario in progress: its request and its source of randomness. */
export interface RunningScenario extends Paying {
  readonly parts: ScenarioParts;
  readonly scenario: Scenario;
}

/** A client that pays for a request. */
export interface Paying {
  readonly parts: PayingParts;
  readonly scenario: Pick<Scenario, 'id' | 'kind' | 'option' | 'version'> &
    Partial<Pick<Scenario, 'frontRun' | 'job'>>;
  readonly random: Random;
  readonly request: JobRequest;
  /** The payer's own id of all payments of this scenario. */
  readonly paymentId?: string;
}

export function payerOf({ parts, random }: Paying): PrivateKeyAccount {
  return random.pick(parts.environment.payers);
}

export async function sign(running: Paying, account: PrivateKeyAccount): Promise<SignedOnce | undefined> {
  const { urls, deadline, asking = deadline } = running.parts;
  const offer = await askForOffer({ urls, deadline: asking }, running.random, running.request);
  return offer && signThis(running, offer, account);
}

export async function signThis(
  { parts, scenario, random, paymentId: id }: Paying,
  offer: Offer,
  account: PrivateKeyAccount,
): Promise<SignedOnce> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const validitySecs = validitySecsOf(scenario);
  const validity = validitySecs === undefined ? {} : { validBefore: BigInt(nowSecs + validitySecs) };
  const signed = { account, nonce: random.hex32(), ...validity };
  const signedOffer = await signOption(offer, scenario.option, signed);
  const payment = id
    ? { ...signedOffer, extensions: { [paymentIdentifierKey]: { info: { id } } } }
    : signedOffer;
  if (scenario.frontRun) parts.frontRunner?.plan(payment, scenario.frontRun);
  return parts.records.add(payment);
}

const poorValiditySecs = 10;
/** An upstream that answers first takes its time. */
const askedFirstValiditySecs = 20;

/** A payment without balance ends only when its authorization expires, so it expires early; so does one whose client leaves its upstream unanswered. */
function validitySecsOf({ kind, job }: Paying['scenario']): number | undefined {
  const isPoor = kind === 'poor' || kind === 'late_landing';
  if ((job === 'file' || job === 'metered') && (isPoor || kind === 'quitter')) return askedFirstValiditySecs;
  return isPoor ? poorValiditySecs : undefined;
}

/** Mints exactly the amount of one payment to its payer, who approves Permit2 if it takes that. */
export function fund(
  { parts: { environment, gate } }: RunningScenario,
  payer: PrivateKeyAccount,
  { payment }: SignedOnce,
): Promise<void> {
  const { asset, amount } = payment.accepted;
  return gate.send(async () => {
    if (isPermit(payment)) await approvePermit2(environment.chain, asset, payer);
    await mint(environment.chain, asset, payer.address, BigInt(amount));
  });
}

function open({ parts, scenario, request }: Paying, signed: SignedOnce): Presentation {
  const { method = 'POST', path, body } = request;
  const of = { scenario: scenario.id, version: scenario.version, signed, method, path, body };
  const presentation: Presentation = { ...of, attempts: [], end: 'unanswered' };
  parts.records.presentations.push(presentation);
  return presentation;
}

function withPayment({ request, scenario }: Paying, signed: SignedOnce): JobRequest {
  return { ...request, headers: { ...request.headers, ...paymentHeader(signed, scenario.version) } };
}

export function pay(
  running: Paying,
  signed: SignedOnce,
  random = running.random,
  leaves = 0,
): Promise<Presentation['end']> {
  return present(running.parts, random, withPayment(running, signed), open(running, signed), leaves);
}

export async function payLater(
  running: Paying,
  signed: SignedOnce,
  who: string,
  withinMs: number,
): Promise<void> {
  const random = running.random.fork(who);
  await pause(random.between(0, withinMs), running.parts.deadline);
  await pay(running, signed, random);
}

/** Pays once: the request is repeated until its answer is definite. */
export async function payOnce(paying: Paying): Promise<Presentation['end'] | undefined> {
  const signed = await sign(paying, payerOf(paying));
  return signed && pay(paying, signed);
}

/** Sends once, drops the connection early, and does not return. */
export async function payAndDisconnect(running: Paying, signed: SignedOnce): Promise<void> {
  const { parts, random } = running;
  const presentation = open(running, signed);
  const limit = timeLimit(random.between(5, 500), parts.deadline);
  presentation.attempts.push(await sendOnce(random.pick(parts.urls), withPayment(running, signed), limit));
  presentation.end = 'left';
}
