import { describe, expect, test } from 'vitest';
import { balancesOf, entriesOf, paidQuote, recorded, type StreamEvent } from './support.ts';

const chain = 'Assets:Chain:Eip155-84532:USDC:0x909090-909090 USDC-84532';
const treasury = 'Assets:Treasury:Eip155-84532:USDC:0x888888-888888 USDC-84532';

describe('money without a payment in the books', () => {
  const sender = `0x${'77'.repeat(20)}`;
  const vault = `0x${'88'.repeat(20)}`;
  const suspense = 'Liabilities:Suspense USDC-84532';
  const place = { transaction: `0x${'01'.repeat(32)}`, log_index: 3 };
  const block = { block_number: '9', block_hash: `0x${'02'.repeat(32)}` };
  const came = (as: string, change: object = {}): StreamEvent => {
    const { network, asset, pay_to } = paidQuote(1).terms;
    const terms = { network, asset, symbol: 'USDC', decimals: 6, pay_to, received_from: sender };
    const data = { as, ...terms, amount: '1500', ...place, ...block, operator: 'ann', ...change };
    return {
      stream: 'transfer:84532:0x01:3',
      event: { type: 'operator_transfer_recorded', data },
    } as StreamEvent;
  };
  const back = (from: string) => ({
    returned: { from, transaction: `0x${'03'.repeat(32)}`, ...block, log_index: 1 },
  });
  const reversed = {
    stream: 'transfer:84532:0x01:3',
    event: {
      type: 'operator_transfer_reversed',
      data: { network: 'eip155:84532', ...place, why: 'it was a payment', operator: 'ann' },
    },
  } as StreamEvent;
  const paid = paidQuote(1);
  paid.start();
  paid.settle('chain');
  const booked = (...events: StreamEvent[]) => balancesOf(entriesOf(recorded([...paid.events, ...events])));
  const before = booked();

  test('is a liability in suspense until it is kept or returned', () => {
    expect(booked(came('suspense'))).toEqual({ ...before, [chain]: 3500n, [suspense]: -1500n });
    const kept = { ...before, [chain]: 3500n, 'Income:Unattributed USDC-84532': -1500n };
    expect(booked(came('suspense'), came('income'))).toEqual(kept);
    expect(booked(came('income'))).toEqual(kept);
    const payee = paidQuote(1).terms.pay_to;
    expect(booked(came('suspense'), came('returned', back(payee)))).toEqual(before);
    expect(booked(came('suspense'), came('returned', back(vault)))).toEqual({
      ...before,
      [chain]: 3500n,
      [treasury]: -1500n,
    });
  });

  test("of the operator comes out of the treasury, and a payee's transfer to itself moves nothing", () => {
    const own = { ...before, [chain]: 3500n, [treasury]: -1500n };
    expect(booked(came('own', { received_from: vault }))).toEqual(own);
    expect(booked(came('own', { received_from: paidQuote(1).terms.pay_to }))).toEqual(before);
  });

  test('that came to a payee which was never paid is given back from that payee, and not from the treasury', () => {
    const events = recorded([came('suspense'), came('returned', back(paidQuote(1).terms.pay_to))]);
    const left = Object.values(balancesOf(entriesOf(events)));
    expect(left.filter((atoms) => atoms !== 0n)).toEqual([]);
  });

  test.each([
    [[came('suspense')]],
    [[came('suspense'), came('income')]],
    [[came('suspense'), came('returned', back(vault))]],
    [[came('own', { received_from: vault })]],
  ])('leaves no trace in the balances once its record is reversed', (events) => {
    expect(booked(...events, reversed)).toEqual(before);
  });

  test('is reversed as it was booked, also if its sender has become a payee since', () => {
    const other = paidQuote(2, { pay_to: vault });
    other.start();
    expect(booked(came('own', { received_from: vault }), ...other.events, reversed)).toEqual(before);
  });
});
