import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AppendOutcome, Claim, LaneCommand } from '../../../src/ledger/store/append-batch.ts';
import { claimKey } from '../../../src/ledger/store/claim-key.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { createDatabase } from '../../support/database.ts';
import { refused, replayDenied } from '../../support/events.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { propertyRuns } from '../../support/property-runs.ts';

/** Few streams, few claims: so that commands meet. */
interface Step {
  readonly stream: number;
  readonly expect: number | undefined;
  readonly events: number;
  readonly claims: readonly { readonly key: number; readonly binding: number }[];
  readonly frees: boolean;
  readonly recordsLoss: boolean;
  /** Where a loss is recorded: a stream that others write as well, so that they meet. */
  readonly lostStream: number;
  readonly urgent: boolean;
  readonly lane: 0 | 1;
  readonly killBefore: boolean;
  /** Can never be recorded. */
  readonly isPoison: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  stream: fc.integer({ min: 0, max: 5 }),
  expect: fc.option(fc.integer({ min: 0, max: 6 }), { nil: undefined }),
  events: fc.integer({ min: 1, max: 4 }),
  claims: fc.uniqueArray(
    fc.record({ key: fc.integer({ min: 0, max: 7 }), binding: fc.integer({ min: 0, max: 1 }) }),
    {
      maxLength: 3,
      selector: ({ key }) => key,
    },
  ),
  frees: fc.boolean(),
  recordsLoss: fc.boolean(),
  lostStream: fc.integer({ min: 0, max: 8 }),
  urgent: fc.boolean(),
  lane: fc.constantFrom(0, 1),
  killBefore: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  isPoison: fc.integer({ min: 0, max: 29 }).map((n) => n === 0),
});

const claim = ({ key, binding }: { key: number; binding: number }): Claim => ({
  kind: 'payment',
  owner: '0xpayer',
  scope: 'chain/asset',
  key: `k${key}`,
  binding: `b${binding}`,
});

const poison = (): { readonly outcome: 'poison' } => ({ outcome: 'poison' });

function toCommand(one: Step): LaneCommand {
  return {
    stream: one.isPoison ? 'a stream with blanks' : `s${one.stream}`,
    expect: one.expect,
    events: Array.from({ length: one.events }, () => refused()),
    // freeing and claiming the same keys in one command would say two things at once
    ...(one.frees ? { freed: one.claims.map(claim) } : { claims: one.claims.map(claim) }),
    ...(one.recordsLoss
      ? { lost: { stream: `s${one.lostStream}`, events: { payment: [replayDenied()] } } }
      : {}),
  };
}

test('any sequence of commands, with conflicts, stale versions, poison and killed connections, leaves a sound ledger', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
      const database = await createDatabase();
      const lanes = [0, 1].map(() => openLane({ url: database.url, role: writerRole, maxBatch: 8 }));
      const kill = () =>
        database.asOwner((owner) =>
          owner.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and query like 'select tollbook.append%'`,
          ),
        );
      const running: Promise<AppendOutcome | { readonly outcome: 'poison' }>[] = [];
      for (const one of steps) {
        if (one.killBefore) await kill();
        const appended = lanes[one.lane]!.append(toCommand(one), { urgent: one.urgent });
        running.push(one.isPoison ? appended.catch(poison) : appended);
      }
      const outcomes = await Promise.all(running);
      // neither a lost connection nor a refused batch is taken for a lost append
      expect(lanes.map((lane) => lane.state.halt)).toEqual([undefined, undefined]);
      await Promise.all(lanes.map((lane) => lane.close()));
      await database.asOwner(async (owner) => {
        const events = await expectSoundLedger(database.db, owner);
        const expected = steps.reduce((sum, one, i) => {
          const { outcome } = outcomes[i]!;
          return sum + (outcome === 'ok' ? one.events : outcome === 'lost' && one.recordsLoss ? 1 : 0);
        }, 0);
        expect(events).toHaveLength(expected);
        // a claim is held by a stream that was told so, and by nobody else
        const { rows } = await owner.query<{ key: string; stream: string }>(
          `select encode(key, 'hex') as key, tollbook.stream_name(stream) as stream from tollbook.claim`,
        );
        for (const { key, stream } of rows) {
          const winners = steps.filter(
            (one, i) =>
              outcomes[i]!.outcome === 'ok' &&
              !one.frees &&
              `s${one.stream}` === stream &&
              one.claims.some((c) => claimKey(claim(c)).toString('hex') === key),
          );
          expect(winners.length).toBeGreaterThan(0);
        }
        expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
      });
    }),
    propertyRuns(12),
  );
});
