import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countByType, countersFrom } from '../../../src/ledger/rules/counters.ts';
import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { eventExamples } from './examples.ts';

/** The events that the contract counts under each name. */
const contract = {
  accepted: ['enqueued'],
  denied: ['auth_denied'],
  replay_denied: ['payment_replay_denied', 'nonce_replay_denied'],
  payment_replay_denied: ['payment_replay_denied'],
  nonce_replay_denied: ['nonce_replay_denied'],
  enqueue_failed: ['enqueue_failed'],
  dry_run: ['dry_run_allowed', 'dry_run_denied', 'dry_run_error'],
  quoted: ['quote_issued'],
  settled: ['payment_settled'],
  settlement_unknown: ['settlement_unknown'],
  settlement_failed: ['settlement_failed'],
  settlement_disproved: ['settlement_disproved'],
  settlement_reorged: ['settlement_reorged'],
  dry_run_allowed: ['dry_run_allowed'],
  dry_run_denied: ['dry_run_denied'],
  dry_run_error: ['dry_run_error'],
  delivered: ['delivered'],
  completed: ['completed'],
  dead_lettered: ['dead_lettered'],
  triggered: ['call_triggered'],
};
const countedTypes = [...new Set(Object.values(contract).flat())];

describe('the public counters', () => {
  test('are those of the contract, each zero in an empty ledger', () => {
    const zeros = Object.fromEntries(Object.keys(contract).map((name) => [name, 0]));
    expect(countersFrom(new Map())).toStrictEqual(zeros);
  });

  test.each(Object.entries(contract))('%s counts %j and nothing else', (name, types) => {
    const countWith = (type: string) => Reflect.get(countersFrom(new Map([[type, 3]])), name) as number;
    const moving = [...countedTypes, 'settlement_started', 'payment_rejected'].filter(countWith);
    expect(moving).toEqual(types);
    expect(moving.map(countWith)).toEqual(types.map(() => 3));
  });

  test('count every dry run once, however it ended, and never as denied', () => {
    const counters = countersFrom(
      new Map([
        ['dry_run_allowed', 1],
        ['dry_run_denied', 2],
        ['dry_run_error', 4],
      ]),
    );
    expect(counters).toMatchObject({ dry_run: 7, denied: 0, accepted: 0 });
  });

  test('count each quote once: by its event, or by the sum that it is in', () => {
    const { summarised, ...terms } = eventExamples.quote_issued;
    const recorded: LedgerEvent = { type: 'quote_issued', data: terms };
    const paid: LedgerEvent = { type: 'quote_issued', data: { ...terms, summarised } };
    const sum: LedgerEvent = { type: 'quotes_issued', data: eventExamples.quotes_issued };
    const counters = countersFrom(countByType([recorded, paid, sum, paid]));
    expect(counters.quoted).toBe(4);
  });

  test('are the numbers of events in any ledger', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...countedTypes, 'settlement_started')), (events) => {
        const countOf = new Map<string, number>();
        for (const type of events) countOf.set(type, (countOf.get(type) ?? 0) + 1);
        const folded = Object.entries(contract).map(([name, types]) => [
          name,
          events.filter((type) => types.includes(type)).length,
        ]);
        expect(countersFrom(countOf)).toEqual(Object.fromEntries(folded));
      }),
    );
  });
});
