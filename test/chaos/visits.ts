import { setTimeout as sleep } from 'node:timers/promises';
import { privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { mint } from '../../src/devnet/token.ts';
import type { Address } from '../../src/domain/values/primitives.ts';
import { callerHeaders } from '../support/caller.ts';
import { type Offer, signOffer } from '../support/payer.ts';
import type { Book, Presentation, SignedOnce } from './book.ts';
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
import { jobs, type Visit, type VisitKind } from './schedule.ts';
import type { World } from './world.ts';

export interface VisitParts extends ClientParts {
  readonly world: Pick<World, 'chain' | 'payers' | 'tokens'>;
  readonly book: Book;
  readonly frontRunner: FrontRunner;
  /** Whether the ledger knows that this payment was started. */
  readonly isStarted: (signed: SignedOnce) => Promise<boolean>;
}

/** One visit under way: what it asks for and how it signs. */
interface Visitor {
  readonly parts: VisitParts;
  readonly visit: Visit;
  readonly random: Random;
  readonly request: JobRequest;
}

/** Lets the clients of a visit come, and resolves when the last of them has left. */
export async function makeVisit(parts: VisitParts, visit: Visit, random: Random): Promise<void> {
  await sleep(visit.atMs, undefined, { signal: parts.deadline }).catch(() => {});
  const body = `${visit.id} ${random.hex32()} ${'x'.repeat(visit.bodyBytes)}`;
  const delegated = visit.job === 'delegated' ? await callerHeaders(body, { nonce: random.hex32() }) : {};
  const request = { path: jobs[visit.job].path, body, headers: delegated };
  await ways[visit.kind]({ parts, visit, random, request });
}

type Way = (visitor: Visitor) => Promise<unknown>;

const ways: Readonly<Record<VisitKind, Way>> = {
  honest: async (visitor) => {
    const signed = await sign(visitor, payerOf(visitor));
    return signed && pay(visitor, signed);
  },

  quitter: async (visitor) => {
    const signed = await sign(visitor, payerOf(visitor));
    return signed && leave(visitor, signed);
  },

  signs_again: async (visitor) => {
    for (let times = 0; times < 3; times++) {
      const signed = await sign(visitor, payerOf(visitor));
      if (!signed || (await pay(visitor, signed)) !== 'refused') return;
    }
  },

  twins: async (visitor) => {
    const signed = await sign(visitor, payerOf(visitor));
    if (!signed) return;
    const count = visitor.random.between(2, 3);
    await Promise.all(
      Array.from({ length: count }, (_, twin) => payLater(visitor, signed, `twin ${twin}`, 400)),
    );
  },

  impostor: async (visitor) => {
    const signed = await sign(visitor, payerOf(visitor));
    if (!signed) return;
    const request = { ...visitor.request, body: `${visitor.request.body} of an impostor` };
    await Promise.all([
      payLater(visitor, signed, 'payer', 200),
      payLater({ ...visitor, request }, signed, 'impostor', 200),
    ]);
  },

  nonce_rivals: async (visitor) => {
    const both = await Promise.all([sign(visitor, payerOf(visitor)), sign(visitor, payerOf(visitor))]);
    await Promise.all(
      both.map(async (signed, rival) => {
        if (signed) await payLater(visitor, signed, `rival ${rival}`, rival * 3_000);
      }),
    );
  },

  quote_rivals: async (visitor) => {
    const offer = await askForOffer(visitor.parts, visitor.random, visitor.request);
    if (!offer) return;
    const both = [0, 1].map(() => signThis(visitor, offer, payerOf(visitor)));
    await Promise.all(
      (await Promise.all(both)).map((signed, rival) =>
        payLater(visitor, signed, `rival ${rival}`, rival * 1_500),
      ),
    );
  },

  poor: async (visitor) => payTwiceWithMoneyForOne(visitor),

  exact: async (visitor) => {
    const payer = privateKeyToAccount(visitor.random.hex32());
    const signed = await sign(visitor, payer);
    if (!signed) return;
    await endow(visitor, payer.address, signed);
    await pay(visitor, signed);
  },

  late_landing: async (visitor) => {
    for (const { signed, end } of await payTwiceWithMoneyForOne(visitor)) {
      if (end !== 'refused' || !(await visitor.parts.isStarted(signed))) continue;
      await endow(visitor, signed.payer as Address, signed);
      visitor.parts.book.landedLate.add(signed.key);
      if (!(await visitor.parts.frontRunner.submit(signed.payment)))
        visitor.parts.book.landedLate.delete(signed.key);
    }
  },
};

async function payTwiceWithMoneyForOne(
  visitor: Visitor,
): Promise<{ signed: SignedOnce; end: Presentation['end'] }[]> {
  const payer = privateKeyToAccount(visitor.random.hex32());
  const both = await Promise.all([sign(visitor, payer), sign(visitor, payer)]);
  const [first, second] = both;
  if (!first || !second) return [];
  await endow(visitor, payer.address, first);
  return Promise.all([first, second].map(async (signed) => ({ signed, end: await pay(visitor, signed) })));
}

function payerOf({ parts, random }: Visitor): PrivateKeyAccount {
  return random.pick(parts.world.payers);
}

async function sign(visitor: Visitor, account: PrivateKeyAccount): Promise<SignedOnce | undefined> {
  const offer = await askForOffer(visitor.parts, visitor.random, visitor.request);
  return offer && signThis(visitor, offer, account);
}

async function signThis(
  { parts, visit, random }: Visitor,
  offer: Offer,
  account: PrivateKeyAccount,
): Promise<SignedOnce> {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const validity = isPoor(visit) ? { validBefore: String(nowSecs + poorValiditySecs) } : {};
  const signed = { nonce: random.hex32(), ...validity };
  const payment = await signOffer(offer, { account, option: visit.option, signed });
  if (visit.frontRun) parts.frontRunner.plan(payment, visit.frontRun);
  return parts.book.add(payment);
}

/** Some of what the poor sign can never be settled: it is over only when its time is. */
const poorValiditySecs = 10;

function isPoor({ kind }: Visit): boolean {
  return kind === 'poor' || kind === 'late_landing';
}

/** Gives a payer exactly what one payment takes. */
function endow({ parts }: Visitor, payer: Address, { payment }: SignedOnce): Promise<void> {
  return mint(parts.world.chain, payment.accepted.asset, payer, BigInt(payment.accepted.amount));
}

function open({ parts, visit, request }: Visitor, signed: SignedOnce): Presentation {
  const { path, body } = request;
  const of = { visit: visit.id, version: visit.version, signed, path, body };
  const presentation: Presentation = { ...of, attempts: [], end: 'unanswered' };
  parts.book.presentations.push(presentation);
  return presentation;
}

function withPayment({ request, visit }: Visitor, signed: SignedOnce): JobRequest {
  return { ...request, headers: { ...request.headers, ...paymentHeader(signed, visit.version) } };
}

function pay(visitor: Visitor, signed: SignedOnce, random = visitor.random): Promise<Presentation['end']> {
  return present(visitor.parts, random, withPayment(visitor, signed), open(visitor, signed));
}

async function payLater(visitor: Visitor, signed: SignedOnce, who: string, withinMs: number): Promise<void> {
  const random = visitor.random.fork(who);
  await sleep(random.between(0, withinMs), undefined, { signal: visitor.parts.deadline }).catch(() => {});
  await pay(visitor, signed, random);
}

/** Sends once, drops the connection early, and is never seen again. */
async function leave(visitor: Visitor, signed: SignedOnce): Promise<void> {
  const { parts, random } = visitor;
  const presentation = open(visitor, signed);
  const limit = timeLimit(random.between(5, 500), parts.deadline);
  presentation.attempts.push(await sendOnce(random.pick(parts.urls), withPayment(visitor, signed), limit));
  presentation.end = 'left';
}
