import type { EventData } from '../../src/ledger/rules/event.ts';
import type { SignedPayment } from '../../src/payments/rules/payment.ts';
import type { Address, Hex } from '../../src/base/values/primitives.ts';
import type { StartedPayment } from '../../src/payments/use-cases/record-settlement.ts';
import type { Chain } from '../../src/payments/peers/chain/chain.ts';
import type { Random } from '../chaos/random.ts';
import type { Landed, YearChain, YearToken } from './chain.ts';
import type { YearLedger } from './ledger.ts';
import type { ModelPayment, YearModel } from './model.ts';

export interface YearOptions {
  readonly payments: number;
  readonly months: number;
  readonly seed: string;
}

export interface Payer {
  readonly key: Hex;
  readonly address: Address;
}

/** What becomes of a sale after it was paid. */
export type Fate = 'delivered' | 'dead_letter' | 'goodwill' | 'top_up';

export interface Sale {
  readonly n: number;
  readonly token: YearToken;
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly fate: Fate;
  /** Only the facilitator reports it at first. */
  readonly isReported: boolean;
  readonly creditMicros: bigint;
  readonly digest: Hex;
  readonly quote: EventData<'quote_issued'>;
  readonly payment: SignedPayment;
  readonly data: EventData<'settlement_started'>;
  started: StartedPayment | undefined;
  readonly booked: ModelPayment;
}

/** Something that an operator does some steps later. */
export interface Task {
  readonly step: number;
  run(): Promise<void>;
}

/** All that a year is made with. */
export interface World {
  readonly options: YearOptions;
  readonly random: Random;
  readonly chain: YearChain;
  /** As the refund and sweep commands read it. */
  readonly chains: ReadonlyMap<string, Chain>;
  readonly model: YearModel;
  readonly payers: readonly Payer[];
  /** Replaced by the restore. */
  ledger: YearLedger;
  /** What the ledger's clock says. */
  nowMs: number;
  /** The time of the newest block. */
  blockMs: number;
  /** The number of blocks so far that a step has made. */
  step: number;
  tasks: Task[];
  /** Called once the next block of a step is mined. */
  onMined: (() => void)[];
  /** Sales that are not delivered, by the quote's digest. */
  readonly open: Map<string, Sale>;
  /** Sales that only the facilitator has reported. */
  reported: { readonly sale: Sale; readonly landed: Landed }[];
  /** By account id, in micros. */
  readonly credit: Map<number, bigint>;
  /** What of it was granted; the rest was bought. */
  readonly granted: Map<number, bigint>;
  /** What happened, by name, for the figures at the end. */
  readonly counts: Map<string, number>;
}

export const operators = ['ada', 'ben'] as const;

export async function setClock(world: World, atMs: number): Promise<void> {
  world.nowMs = atMs;
  await world.ledger.setClock(atMs);
}

/** After this many steps a block is final, and an operator records what is in it. */
export const stepsToFinal = 3;

export function later(world: World, steps: number, run: () => Promise<void>): void {
  world.tasks.push({ step: world.step + steps, run });
}

export function count(world: World, name: string, by = 1): void {
  world.counts.set(name, (world.counts.get(name) ?? 0) + by);
}

export async function inTurns<T>(
  list: readonly T[],
  atOnce: number,
  use: (one: T) => Promise<void>,
): Promise<void> {
  const left = list.values();
  const work = async (): Promise<void> => {
    for (const one of left) await use(one);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
