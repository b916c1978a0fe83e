import { describe, expect, onTestFinished, test } from 'vitest';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { openDatabaseSource } from '../../../../src/finance/use-cases/books/source.ts';
import { grantCredit, openCreditAccount } from '../../../../src/accounts/use-cases/credit/credit.ts';
import { bookFormats, formatsEdition } from '../../../../src/base/values/format.ts';
import type { ReportJson } from '../../../../src/finance/rules/reconcile/report.ts';
import { closePeriod } from '../../../../src/finance/use-cases/periods/close-period.ts';
import { comparePeriod, compareReport } from '../../../../src/finance/use-cases/periods/compare-period.ts';
import { findPeriods, readPeriods } from '../../../../src/finance/use-cases/periods/read-periods.ts';
import { reopenPeriod, reviewPeriod } from '../../../../src/finance/use-cases/periods/move-period.ts';
import { hashOfText, reportHash } from '../../../../src/finance/use-cases/periods/pins.ts';
import { explainBreak } from '../../../../src/finance/use-cases/reconcile/explain-break.ts';
import { ledgerInDatabase } from '../../../../src/finance/use-cases/reconcile/ledger-source.ts';
import { reconcile } from '../../../../src/finance/use-cases/reconcile/reconcile.ts';
import { writerRole } from '../../../../src/ledger/store/database.ts';
import { openLane } from '../../../../src/ledger/store/lane.ts';
import { verifyDatabase } from '../../../../src/audit/use-cases/verify/verify-database.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';
import { sealAll, testSigner, testVerifier } from '../../../support/log.ts';
import { hex32Of } from '../../../support/synthetic-ledger.ts';
import { eventually } from '../../../support/wait.ts';

const hourMs = 3_600_000;

/** A reconciliation of a ledger that has only credit: no chain is needed. */
async function reportOf(
  database: TestDatabase,
  period: { fromMs: number; toMs: number },
): Promise<ReportJson> {
  await sealAll(database);
  return reconcile({
    period,
    source: await ledgerInDatabase(database.pool, testVerifier, undefined),
    chains: new Map(),
    accepted: [],
    pinned: new Map(),
    twice: false,
    resumeFile: undefined,
    onProgress: () => {},
  });
}

/** A ledger with two grants of credit in a period that is over, and its reconciliation. */
async function endedPeriod() {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close());
  const ledger = { ...database, lane };
  const accountId = await openCreditAccount(ledger, 'acme');
  await grantCredit(ledger, accountId, 5_000_000n);
  await grantCredit(ledger, accountId, 7n);
  const last = Date.parse((await allEvents(database.db)).at(-1)?.at ?? '');
  const period = { fromMs: last - hourMs, toMs: last + 1 };
  await eventually(async () => expect((await openDatabaseSource(database.pool)).nowMs).toBeGreaterThan(last));
  const report = await reportOf(database, period);
  const close = (change: Partial<ReportJson> = {}, despite?: string, operator = 'ada') =>
    closePeriod(ledger, { period, report: { ...report, ...change }, operator, despite });
  const source = () => openDatabaseSource(database.pool);
  const standing = async () => {
    const [closed] = (await readPeriods(database.pool)).periods.standing;
    if (!closed) throw new Error('no period is closed');
    return closed;
  };
  return { database, ledger, accountId, period, report, close, source, standing };
}

test('a close pins the report, the sealed head and the bytes of every export, and two persons are on record', async () => {
  const { database, ledger, period, report, close, source, standing } = await endedPeriod();
  const written = await Promise.all(
    bookFormats.map(async (format) => {
      const books = await openBooks(await source(), period);
      return [format, hashOfText(Buffer.concat(await Array.fromAsync(writeBooks(books, format))))] as const;
    }),
  );
  expect(await close()).toMatchObject({
    kind: 'closed',
    data: {
      from_ms: period.fromMs,
      to_ms: period.toMs,
      time_zone: 'UTC',
      head: { origin: testSigner.name, size: report.ledger.size, root: report.ledger.root },
      report_sha256: reportHash(report),
      exports: Object.fromEntries(written),
      formats_edition: formatsEdition,
      operator: 'ada',
    },
  });
  const closed = await standing();
  expect(await reviewPeriod(ledger, closed, { operator: 'Ada', reconciled: true })).toMatchObject({
    code: 'same_person',
  });
  expect(await reviewPeriod(ledger, closed, { operator: 'bob', reconciled: true })).toEqual({
    kind: 'recorded',
  });
  expect(await standing()).toMatchObject({ review: { data: { operator: 'bob', reconciled: true } } });
  expect((await findPeriods(await source())).standing).toEqual([await standing()]);
  await sealAll(database);
  expect((await verifyDatabase(database.pool, [], testVerifier)).isSound).toBe(true);
});

test('of two persons who close a period at the same moment one has closed it', async () => {
  const { close } = await endedPeriod();
  const results = await Promise.all([close({}, undefined, 'ada'), close({}, undefined, 'bob')]);
  expect(results.map(({ kind }) => kind).toSorted()).toEqual(['closed', 'refused']);
});

describe('a period is not closed with', () => {
  const fault = { seq: 3, words: 'the amount was changed' };
  test.each([
    ['a report of another period', { period: { from: 'x', to: 'y' } }, 'other_period'],
    ['a report of a ledger that is wrong', { fault }, 'ledger_wrong'],
    ['a report that no checkpoint covers', { checkpoint: null }, 'not_sealed'],
    [
      'a report of blocks that are not final',
      { networks: [{ network: 'eip155:1', is_covered: false }] },
      'not_final',
    ],
    ['breaks that nobody has explained', { breaks: 3, breaks_explained: 2 }, 'open_breaks'],
    ['an amount that no item explains', { accounts: [{ bridge: { not_explained: '5' } }] }, 'open_breaks'],
    ['a report of a shorter ledger', { size: 2 }, 'report_too_old'],
    ['a report of another ledger', { root: `${'A'.repeat(43)}=` }, 'other_ledger'],
  ])('%s', async (_, change, code) => {
    const { close, report, database } = await endedPeriod();
    const ofLedger = Object.keys(change).every((key) => key in report.ledger);
    const changed = ofLedger ? { ledger: { ...report.ledger, ...change } } : change;
    expect(await close(changed as Partial<ReportJson>)).toMatchObject({ kind: 'refused', code });
    expect((await readPeriods(database.pool)).periods.all).toEqual([]);
  });
});

test('open breaks are closed only with a reason, and all breaks explained without one', async () => {
  const { close, ledger, period } = await endedPeriod();
  expect(await close({ breaks: 2, breaks_explained: 2 })).toMatchObject({ kind: 'closed' });
  expect(await reopenPeriod(ledger, period, { operator: 'ada', reason: 'once more' })).toEqual({
    kind: 'recorded',
  });
  expect(await close({ breaks: 2 }, 'with the auditor')).toMatchObject({
    kind: 'closed',
    data: { despite: 'with the auditor', breaks: 2 },
  });
});

test('a period is not closed by a report that calls a break explained whose explanation was taken back, whatever the reason given', async () => {
  const { close, ledger, report } = await endedPeriod();
  const breakId = hex32Of('a break');
  const item = { of: 'transfer', network: 'eip155:84532', break_id: breakId } as const;
  const explain = (as: 'other' | 'open') =>
    explainBreak(
      ledger.lane,
      { kind: 'found', breakId, itemClass: 'foreign_use', item },
      { as, note: 'a note', operator: 'ada' },
    );
  const said = { as: 'other', note: 'a note', operator: 'ada', at: '2026-01-01T00:00:00.000Z' } as const;
  const items = [{ ...item, explained: said }];
  const foreign = { kind: 'break', count: 1, explained: 1, items, groups: [] } as const;
  const classes = { ...report.classes, foreign_use: foreign };
  const change = { breaks: 1, breaks_explained: 1, classes };
  expect(await close(change)).toMatchObject({ kind: 'refused', code: 'open_breaks' });
  await explain('other');
  await explain('open');
  expect(await close(change, 'in a hurry')).toMatchObject({
    kind: 'refused',
    code: 'open_breaks',
    message: expect.stringContaining('reconcile again'),
  });
  await explain('other');
  expect(await close(change)).toMatchObject({ kind: 'closed' });
});

describe('a later run compared with the close', () => {
  test('is the same, whatever was recorded since', async () => {
    const { database, ledger, accountId, period, close, source, standing } = await endedPeriod();
    await close();
    await grantCredit(ledger, accountId, 9n);
    const closed = await standing();
    const results = await comparePeriod(await source(), closed);
    expect(results.map(({ of, result }) => [of, result])).toEqual(
      ['head', ...bookFormats].map((of) => [of, 'same']),
    );
    const later = await reportOf(database, period);
    expect(later.ledger.size).toBeGreaterThan(closed.close.data.head.size);
    expect(compareReport(closed, later, undefined)).toEqual({ of: 'reconciliation', result: 'same' });
  });

  test('names the class of a reconciliation that differs', async () => {
    const { report, close, standing } = await endedPeriod();
    await close();
    const found = { kind: 'break', count: 2, items: [], groups: [] } as const;
    const later: ReportJson = { ...report, classes: { foreign_use: found }, breaks: 2, result: 'breaks' };
    expect(compareReport(await standing(), later, report)).toEqual({
      of: 'reconciliation',
      result: 'differs',
      words: 'class foreign_use: 0 then, 2 now',
    });
    const explained: ReportJson = { ...later, classes: { foreign_use: { ...found, explained: 2 } } };
    const closed = await standing();
    const { head } = closed.close.data;
    const pinned = { ...later, ledger: { ...later.ledger, size: head.size } };
    const data = { ...closed.close.data, report_sha256: reportHash(pinned) };
    expect(compareReport({ ...closed, close: { ...closed.close, data } }, explained, pinned)).toMatchObject({
      result: 'differs',
      words: 'class foreign_use: 2 as then, and what they are or how they are explained differs',
    });
  });

  test('names the head and every export that differ where an insider edits an event of the period', async () => {
    const { database, close, source, standing } = await endedPeriod();
    await close();
    await database.asOwner(async (owner) => {
      await owner.query('alter table tollbook.event disable trigger all');
      const { rowCount } = await owner.query(
        `update tollbook.event set data = replace(data, '"5000000"', '"6000000"') where data like '%"5000000"%'`,
      );
      expect(rowCount).toBe(1);
    });
    const results = await comparePeriod(await source(), await standing());
    expect(results.map(({ of, result }) => [of, result])).toEqual(
      ['head', ...bookFormats].map((of) => [of, 'differs']),
    );
  });
});
