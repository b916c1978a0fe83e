import type { Records } from '../records.ts';
import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { RecordedPayment } from './payments.ts';
import type { Violation } from './violation.ts';

/** While only hostile clients are active, honest clients get an offer, and their payments are accepted at once. */
export function* salesViolations(records: Records, mustSell: readonly string[]): Generator<Violation> {
  for (const scenario of mustSell) {
    const presentation = records.presentations.find((one) => one.scenario === scenario);
    if (!presentation) {
      yield { kind: 'sales_stopped', words: `${scenario} got no offer` };
      continue;
    }
    const refused = presentation.attempts.find(({ status }) => status !== undefined && status !== 202);
    if (refused) {
      const { status, code = '', reason = '' } = refused;
      yield { kind: 'sales_stopped', words: `${scenario} was answered ${status} ${code} ${reason}` };
    } else if (presentation.end !== 'accepted') {
      yield { kind: 'sales_stopped', words: `${scenario} got no answer to its payment` };
    }
  }
}

export interface SiegeLimits {
  /** How many events may belong to no payment. */
  readonly otherEvents: number;
  /** How many requests of a flood may get an offer. */
  readonly floodOffers: number;
}

/** Above the budget of its address a flood gets no offer. */
export function* floodViolations({ floodStatuses }: Records, limit: number): Generator<Violation> {
  const offers = floodStatuses.filter((status) => status === 402).length;
  if (offers > limit)
    yield { kind: 'flood_served', words: `a flood got ${offers} offers, at most ${limit} were expected` };
}

/**
 * What a flood leaves in the ledger: events of streams that no payment uses. Above the budget of a client address refusals are
 * summed, and quotes are not issued.
 */
export function* growthViolations(
  events: readonly RecordedEvent[],
  payments: ReadonlyMap<string, RecordedPayment>,
  limit: number,
): Generator<Violation> {
  const paid = new Set([...payments.values()].map(({ stream }) => stream));
  const other = events.filter(({ stream }) => !paid.has(stream)).length;
  if (other > limit)
    yield { kind: 'ledger_flooded', words: `${other} events belong to no payment, ${limit} were expected` };
}
