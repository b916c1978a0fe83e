import { expect, test } from 'vitest';
import { exitCodeOf } from '../../../src/finance/terminal/run-reconcile.ts';
import type { ReportJson } from '../../../src/finance/rules/reconcile/report.ts';

const clean = { result: 'clean', breaks: 0, breaks_explained: 0, accounts: [] } as const;
const leaving = (left: string | null) =>
  [{ bridge: { not_explained: left } }] as unknown as ReportJson['accounts'];

test.each([
  ['nothing', {}, 0],
  ['open items', { result: 'open_items' }, 0],
  ['a break without an explanation', { result: 'breaks', breaks: 2, breaks_explained: 1 }, 1],
  ['breaks that are all explained', { result: 'breaks', breaks: 2, breaks_explained: 2 }, 3],
  ['books that lead to the balance of the chain', { accounts: leaving('0') }, 0],
  ['a node without the state of one end', { accounts: leaving(null) }, 0],
  ['an amount that no item explains', { accounts: leaving('-5') }, 1],
  [
    'the same, beside breaks that are all explained',
    { result: 'breaks', breaks: 1, breaks_explained: 1, accounts: leaving('7') },
    1,
  ],
] as const)('the exit code of a report with %s', (_what, change, code) => {
  expect(exitCodeOf({ ...clean, ...change })).toBe(code);
});
