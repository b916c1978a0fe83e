import type { EventOf, RecordedEvent } from '../../../ledger/rules/event.ts';
import { type Period, periodName } from '../../../base/values/period.ts';
import { findTimeZone, utc } from '../../../base/values/time-zone.ts';

export type PeriodEvent = EventOf<
  'operator_period_closed' | 'operator_period_reviewed' | 'operator_period_reopened'
>;

export function isPeriodEvent(event: RecordedEvent): event is PeriodEvent {
  return event.stream === periodStream;
}

/** The stream of all of them. */
export const periodStream = 'period:books';

/** A period at its close, and the reviews and reopening since. */
export interface ClosedPeriod {
  readonly period: Period;
  readonly close: EventOf<'operator_period_closed'>;
  readonly review: EventOf<'operator_period_reviewed'> | undefined;
  /** It does not hold any more. */
  readonly reopening: EventOf<'operator_period_reopened'> | undefined;
}

export type PeriodRefusalCode =
  | 'closed_before'
  | 'gap'
  | 'overlap'
  | 'not_closed'
  | 'reviewed_before'
  | 'same_person'
  | 'later_closed';

/** Why something cannot be said of a period. The message is a sentence without its full stop. */
export interface PeriodRefusal {
  readonly code: PeriodRefusalCode;
  readonly message: string;
}

/** The periods of a ledger: closed periods follow each other without a gap. The fold of the events of their stream. */
export class Periods {
  #standing: readonly ClosedPeriod[] = [];
  #reopened: readonly ClosedPeriod[] = [];

  constructor(events: Iterable<PeriodEvent> = []) {
    for (const event of events) this.take(event);
  }

  /** Those that are closed, in order. */
  get standing(): readonly ClosedPeriod[] {
    return this.#standing;
  }

  /** Every close, also those that do not hold any more, in the order in which they were recorded. */
  get all(): readonly ClosedPeriod[] {
    return [...this.#standing, ...this.#reopened].toSorted((a, b) => a.close.seq - b.close.seq);
  }

  take(event: PeriodEvent): void {
    switch (event.type) {
      case 'operator_period_closed':
        this.#standing = [...this.#standing, closedBy(event)];
        return;
      case 'operator_period_reviewed':
        this.#standing = this.#standing.map((one) => (isOf(one, event) ? { ...one, review: event } : one));
        return;
      case 'operator_period_reopened': {
        const gone = this.#standing.filter((one) => isOf(one, event));
        this.#reopened = [...this.#reopened, ...gone.map((one) => ({ ...one, reopening: event }))];
        this.#standing = this.#standing.filter((one) => !isOf(one, event));
      }
    }
  }

  /** The close of a period that holds. */
  find({ fromMs, toMs }: Period): ClosedPeriod | undefined {
    return this.#standing.find(({ period }) => period.fromMs === fromMs && period.toMs === toMs);
  }

  /** Why it cannot be closed: periods are closed once, one after the other, without a gap. */
  refuseClose(period: Period): PeriodRefusal | undefined {
    const name = periodName(period);
    const last = this.#standing.at(-1);
    const closed = this.find(period);
    if (closed)
      return refusal(
        'closed_before',
        `${name} was closed by ${closed.close.data.operator} on ${closed.close.at}`,
      );
    if (!last || period.fromMs === last.period.toMs) return undefined;
    return period.fromMs > last.period.toMs
      ? refusal(
          'gap',
          `there is a gap: ${periodName(last.period)} is closed, so the next one begins where it ends`,
        )
      : refusal('overlap', `it is in what is closed already: the last one is ${periodName(last.period)}`);
  }

  /** Why this person cannot have reviewed it. */
  refuseReview(period: Period, operator: string): PeriodRefusal | undefined {
    const closed = this.find(period);
    if (!closed) return this.#notClosed(period);
    if (closed.review)
      return refusal(
        'reviewed_before',
        `${periodName(period)} was reviewed by ${closed.review.data.operator}`,
      );
    if (closed.close.data.operator.toLowerCase() === operator.toLowerCase())
      return refusal('same_person', `${operator} has closed it: another person reviews it`);
    return undefined;
  }

  /** Why it cannot be opened again. */
  refuseReopening(period: Period): PeriodRefusal | undefined {
    const closed = this.find(period);
    const last = this.#standing.at(-1);
    if (!closed) return this.#notClosed(period);
    return last && last !== closed
      ? refusal('later_closed', `${periodName(last.period)} is closed: open the later ones first`)
      : undefined;
  }

  #notClosed(period: Period): PeriodRefusal {
    const names = this.#standing.map((one) => periodName(one.period));
    const known = names.length > 0 ? `closed are: ${names.slice(-12).join(', ')}` : 'none is closed';
    return refusal('not_closed', `${periodName(period)} is not closed; ${known}`);
  }
}

function closedBy(close: EventOf<'operator_period_closed'>): ClosedPeriod {
  const { from_ms: fromMs, to_ms: toMs, time_zone } = close.data;
  const zone = findTimeZone(time_zone) ?? utc;
  return { period: { fromMs, toMs, zone }, close, review: undefined, reopening: undefined };
}

function isOf({ period }: ClosedPeriod, { data }: PeriodEvent): boolean {
  return period.fromMs === data.from_ms && period.toMs === data.to_ms;
}

function refusal(code: PeriodRefusalCode, message: string): PeriodRefusal {
  return { code, message };
}
