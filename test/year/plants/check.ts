import type { NoteVerifier } from '../../../src/base/values/log/checkpoint.ts';
import type { Period } from '../../../src/base/values/period.ts';
import { checkRows, type WrongRowInWords } from '../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { projectToHead } from '../../../src/audit/use-cases/projections/project.ts';
import { listRefundsDue } from '../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { ReconcileError } from '../../../src/finance/use-cases/reconcile/reconcile-error.ts';
import { readHead } from '../../../src/audit/store/log.ts';
import type { GivenCheckpoint } from '../../../src/audit/use-cases/verify/verify.ts';
import { verifyDatabase } from '../../../src/audit/use-cases/verify/verify-database.ts';
import { exceptionsIn } from '../../support/report-items.ts';
import { reconcilePeriod } from '../close.ts';
import { requireSame } from '../compare.ts';
import { differencesSince } from '../periods.ts';
import type { Sale, World } from '../world.ts';
import { type Expected, Field } from './field.ts';
import { plants } from './plants.ts';

/** All that the checks of a month-end find. */
interface Found {
  readonly items: readonly string[];
  readonly fault: number | undefined;
  readonly rows: readonly WrongRowInWords[];
  readonly checkpoint: boolean;
  readonly contradicted: readonly number[];
}

const mostDue = 10_000;

/**
 * Plants each break alone into a copy of a sound ledger, and compares what the month-end finds with what it must find. Returns the
 * differences, with the name of the plant.
 */
export async function findPlants(
  world: World,
  period: Period,
  sales: readonly Sale[],
  say: (line: string) => void,
): Promise<string[]> {
  const sound = world.ledger;
  const verifier = await sound.seal();
  await projectToHead(sound);
  const head = await readHead(sound.pool, verifier.name);
  const kept = { source: 'kept', note: head?.note ?? '' };
  const before = await find(world, { period, verifier, kept });
  const { nowMs, blockMs } = world;
  const failures: string[] = [];
  for (const { name, plant } of plants) {
    const goBack = await world.chain.remember();
    world.ledger = await sound.copy();
    try {
      const field = new Field(world, period, sales);
      const expected = await plant(field);
      if (!expected.isUnfinished) await field.finish();
      await world.ledger.seal();
      const found = await find(world, { period, verifier, kept });
      requireFound(name, before, expected, found);
      if (expected.changed)
        requireSame(
          `${name}: what changed since the close`,
          await differencesSince(world.ledger, period),
          expected.changed,
        );
      say(`found, and nothing besides: ${name}`);
    } catch (error) {
      failures.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
      say(`NOT FOUND, or not alone: ${name}`);
    } finally {
      await world.ledger.drop();
      Object.assign(world, { ledger: sound, nowMs, blockMs, reported: [] });
      world.open.clear();
      await goBack();
    }
  }
  return failures;
}

interface MonthEnd {
  readonly period: Period;
  readonly verifier: NoteVerifier;
  readonly kept: GivenCheckpoint;
}

async function find(world: World, monthEnd: MonthEnd): Promise<Found> {
  const { pool } = world.ledger;
  const verdict = await verifyDatabase(pool, [monthEnd.kept], monthEnd.verifier);
  const wrongRows = await checkRows(pool);
  await projectToHead(world.ledger);
  const { contradicted } = await listRefundsDue(pool, 0, mostDue);
  return {
    fault: verdict.fault?.seq,
    checkpoint: verdict.checkpoints.every(({ words }) => words === undefined),
    rows: wrongRows,
    contradicted,
    items: await itemsOf(world, monthEnd),
  };
}

/** A ledger that is shorter than its tree head is not reconciled. */
async function itemsOf(world: World, { period, verifier }: MonthEnd): Promise<readonly string[]> {
  try {
    const report = await reconcilePeriod(world, period, verifier);
    return exceptionsIn(report);
  } catch (error) {
    if (!(error instanceof ReconcileError)) throw error;
    return [`refused ${error.code}`];
  }
}

function requireFound(name: string, before: Found, expected: Expected, found: Found): void {
  const { items = [], gone = [], fault, rows = [], named = [], contradicted, refused } = expected;
  const left = gone.reduce((list, one) => without(list, one), before.items);
  const listed = refused === undefined ? [...left, ...items].toSorted() : [`refused ${refused}`];
  requireSame(`${name}: the items`, found.items.toSorted(), listed);
  requireSame(`${name}: the event that is wrong`, found.fault, fault);
  requireSame(
    `${name}: the rows that are wrong`,
    found.rows.map(({ table }) => table),
    rows,
  );
  for (const [at, words] of named.entries())
    if (found.rows[at]?.words.includes(words) !== true)
      throw new Error(
        `${name}: of the row that is wrong is said: ${found.rows[at]?.words}, and not: ${words}`,
      );
  requireSame(`${name}: whether the kept checkpoint holds`, found.checkpoint, !expected.checkpoint);
  requireSame(
    `${name}: the refunds that the events contradict`,
    found.contradicted,
    contradicted === undefined ? [] : [contradicted],
  );
}

function without(list: readonly string[], one: string): readonly string[] {
  const at = list.indexOf(one);
  if (at === -1) throw new Error(`${one} was not there before`);
  return list.toSpliced(at, 1);
}
