import { expect, test } from 'vitest';
import { reconcileCsv } from '../../../src/finance/terminal/reconcile-csv.ts';
import { reconcileLines } from '../../../src/finance/terminal/reconcile-table.ts';
import type { ReportJson } from '../../../src/finance/rules/reconcile/report.ts';
import { readCsv } from '../use-cases/books/support.ts';

const [network, asset] = ['eip155:84532', `0x${'5f'.repeat(20)}`];

test('the CSV of a reconciliation has a line for each item, with its class, amounts and explanation', () => {
  const explained = { as: 'theft', note: 'a, "b"', operator: 'ada', at: '2026-11-01T00:00:00.000Z' };
  const transfer = { of: 'transfer', network, asset, chain_amount: '5000001', transaction: '0x01' };
  const owed = {
    of: 'payment',
    network,
    asset,
    ledger_amount: '7',
    refunded_amount: '5',
    seq: 3,
    carried: true,
  };
  const report = {
    accounts: [{ network, asset, symbol: 'USDC', decimals: 6 }],
    classes: {
      foreign_use: {
        kind: 'break',
        count: 1,
        items: [{ ...transfer, break_id: '0x02', explained }],
        groups: [],
      },
      refund_due: { kind: 'open', count: 1, items: [owed], groups: [] },
    },
  } as unknown as ReportJson;
  expect(readCsv(reconcileCsv(report))).toMatchObject([
    {
      class: 'refund_due',
      kind: 'open',
      ledger_amount: '0.000007',
      ledger_atoms: '7',
      refunded_amount: '0.000005',
      refunded_atoms: '5',
      carried: 'carried',
      token: 'USDC',
    },
    {
      class: 'foreign_use',
      kind: 'break',
      chain_amount: '5.000001',
      chain_atoms: '5000001',
      break_id: '0x02',
      explained_as: 'theft',
      explained_by: 'ada',
      note: 'a, "b"',
    },
  ]);
});

test('a due refund is shown with the paid amount and the amount refunded before', () => {
  const owed = { of: 'payment', network, asset, ledger_amount: '7', chain_amount: '7', refunded_amount: '5' };
  const report = {
    period: { from: '2026-10-01T00:00:00.000Z', to: '2026-11-01T00:00:00.000Z' },
    ledger: { size: 9, root: '', checkpoint: null },
    result: 'open_items',
    breaks: 0,
    breaks_explained: 0,
    open_items: 1,
    networks: [],
    accounts: [],
    classes: { refund_due: { kind: 'open', count: 1, items: [owed], groups: [] } },
  } as unknown as ReportJson;
  expect(reconcileLines(report)).toContain(
    `  payment ledger 7 ${asset}, chain 7 ${asset}, refunded 5 ${asset}`,
  );
});
