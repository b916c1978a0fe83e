import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Balances, type Entry } from '../../../../src/base/values/entry.ts';
import type { EventData, LedgerEvent, RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { QuoteCheck } from '../../../../src/audit/rules/payment-check.ts';
import { Bookkeeper } from '../../../../src/audit/rules/bookkeeping/bookkeeper.ts';
import {
  anyPaymentEvents,
  booksStartMs,
  entriesOf,
  interleaved,
  balancesOf,
  paidQuote,
  recorded,
  type QuoteOutcome,
  type StreamEvent,
} from './support.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const chain = 'Assets:Chain:Eip155-84532:USDC:0x909090-909090 USDC-84532';
const unconfirmed = 'Assets:Unconfirmed:Eip155-84532:USDC:0x909090-909090 USDC-84532';
const treasuryAt = (address: string) => `Assets:Treasury:Eip155-84532:USDC:${address} USDC-84532`;
const undelivered = 'Liabilities:Undelivered USDC-84532';
const refundsDue = 'Liabilities:RefundsDue USDC-84532';
const refunds = 'Income:Refunds USDC-84532';

/** The balances after the events of one payment: 2000 atoms, job 1 of service 1. */
function after(apply: (quote: ReturnType<typeof paidQuote>) => void): Record<string, bigint> {
  const quote = paidQuote(1);
  quote.start();
  apply(quote);
  return balancesOf(entriesOf(recorded(quote.events)));
}

function dead(quote: ReturnType<typeof paidQuote>): void {
  quote.settle('chain');
  quote.enqueue();
  quote.deadLetter();
}

function granted(quote: ReturnType<typeof paidQuote>): void {
  quote.settle('chain');
  quote.enqueue();
  quote.complete();
  quote.grantRefund();
}

describe('a payment in the books', () => {
  test('is a liability until it is delivered, then income', () => {
    expect(after((q) => (q.settle('chain'), q.enqueue(), q.deliver()))).toEqual({
      [chain]: 2000n,
      [undelivered]: -2000n,
    });
    expect(after((q) => (q.settle('chain'), q.enqueue(), q.complete()))).toEqual({
      [chain]: 2000n,
      'Income:Jobs:1:1 USDC-84532': -2000n,
    });
  });

  test('that only a facilitator reported is unconfirmed income until the chain shows it', () => {
    expect(after((q) => (q.settle('facilitator'), q.enqueue(), q.complete()))).toEqual({
      [unconfirmed]: 2000n,
      'Income:Unconfirmed:1:1 USDC-84532': -2000n,
    });
    expect(after((q) => (q.settle('facilitator'), q.enqueue(), q.complete(), q.confirm()))).toEqual({
      [chain]: 2000n,
      'Income:Jobs:1:1 USDC-84532': -2000n,
    });
  });

  test('that was disproved leaves no balance, even if its job was completed', () => {
    expect(after((q) => (q.settle('facilitator'), q.enqueue(), q.disprove('withdrawn')))).toEqual({});
    expect(after((q) => (q.settle('facilitator'), q.enqueue(), q.complete(), q.disprove('kept')))).toEqual(
      {},
    );
  });

  test('that was reorged out and settled again is counted once', () => {
    expect(
      after((q) => (q.settle('chain'), q.enqueue(), q.complete(), q.reorg('kept'), q.settle('chain'))),
    ).toEqual({ [chain]: 2000n, 'Income:Jobs:1:1 USDC-84532': -2000n });
  });

  test('is due for a refund when its call is a dead letter, until it is refunded', () => {
    expect(after(dead)).toEqual({ [chain]: 2000n, [refundsDue]: -2000n });
    expect(after((q) => (dead(q), q.requeue()))).toEqual({ [chain]: 2000n, [undelivered]: -2000n });
    expect(after((q) => (dead(q), q.refund()))).toEqual({});
  });

  test('whose refund an operator granted after its delivery is due as long as it is not refunded, and no income', () => {
    expect(after(granted)).toEqual({ [chain]: 2000n, [refundsDue]: -2000n });
    expect(after((q) => (granted(q), q.refund()))).toEqual({});
    expect(after((q) => (dead(q), q.grantRefund()))).toEqual(after(dead));
  });

  test('of which a part was refunded owes the rest, and nothing once that was refunded too', () => {
    expect(after((q) => (dead(q), q.refund(q.terms.pay_to, '500')))).toEqual({
      [chain]: 1500n,
      [refundsDue]: -1500n,
    });
    const inParts = after((q) => {
      dead(q);
      q.refund(q.terms.pay_to, '500');
      q.refund(`0x${'77'.repeat(20)}`, '1500');
    });
    expect(inParts).toEqual({ [chain]: 1500n, [treasuryAt('0x777777-777777')]: -1500n });
  });

  test('of which a part was refunded after its delivery is income less that part', () => {
    expect(
      after((q) => (q.settle('chain'), q.enqueue(), q.complete(), q.refund(q.terms.pay_to, '500'))),
    ).toEqual({
      [chain]: 1500n,
      'Income:Jobs:1:1 USDC-84532': -2000n,
      [refunds]: 500n,
    });
  });

  test('that bought credit and was refunded in part has that part of the conversion undone', () => {
    const left = after((q) => {
      q.settle('chain');
      q.enqueue();
      q.topUp();
      q.complete();
      q.refund(q.terms.pay_to, '500');
      q.reversePart('500');
    });
    expect(left).toMatchObject({ [chain]: 1500n, 'Equity:Conversion USDC-84532': -1500n });
    expect(left).not.toHaveProperty([refunds]);
    expect(left).not.toHaveProperty([refundsDue]);
  });

  test('that was refunded from an address other than the payee leaves the tokens of the payee in place', () => {
    const otherAddress = `0x${'77'.repeat(20)}`;
    const left = after((q) => (q.settle('chain'), q.enqueue(), q.deadLetter(), q.refund(otherAddress)));
    expect(left).toEqual({ [chain]: 2000n, [treasuryAt('0x777777-777777')]: -2000n });
  });

  test('refunded after its delivery stays income, with the refund against it', () => {
    expect(after((q) => (q.settle('chain'), q.enqueue(), q.complete(), q.refund()))).toEqual({
      'Income:Jobs:1:1 USDC-84532': -2000n,
      [refunds]: 2000n,
    });
  });

  test('that is proven and closed may be confirmed again', () => {
    expect(after((q) => (q.settle('operator'), q.enqueue(), q.complete(), q.confirm()))).toEqual({
      [chain]: 2000n,
      'Income:Jobs:1:1 USDC-84532': -2000n,
    });
  });

  test('of a quote that was never issued is an error', () => {
    const quote = paidQuote(1);
    quote.start();
    quote.settle('chain');
    expect(() => entriesOf(recorded(quote.events.slice(1)))).toThrow(
      /event 2: settlement_started belongs to a quote/,
    );
  });
});

describe('a spend in the books', () => {
  const data = {
    chat_id: '00000000-0000-4000-8000-000000000001',
    network: 'eip155:84532',
    contract: `0x${'5c'.repeat(20)}`,
    commitment: `0x${'01'.repeat(32)}`,
    nonce: '1',
    auth_hash: `0x${'02'.repeat(32)}`,
    operator: `0x${'90'.repeat(20)}`,
    amount: '700',
  };
  const events = (type: string): StreamEvent =>
    ({ stream: `spend:${data.chat_id}`, event: { type, data } }) as StreamEvent;
  const tag = 'Eip155-84532:SPEND';

  test.each([
    ['spend_paid_out', `Assets:Chain:${tag}:0x909090-909090 SPEND-84532`],
    ['spend_failed', 'Expenses:LostSpends SPEND-84532'],
    ['spend_authorized', `Assets:Receivable:Spends:${tag}:0x909090-909090 SPEND-84532`],
  ])('is income from the moment it is earned, also after %s', (type, account) => {
    expect(balancesOf(entriesOf(recorded([events('spend_earned'), events(type)])))).toEqual({
      [account]: 700n,
      'Income:Chat:SpendAuthorizations SPEND-84532': -700n,
    });
  });
});

const sweepTo = (swept_to: string) =>
  ({
    stream: 'sweep:84532:0x01:0',
    event: {
      type: 'operator_sweep_recorded',
      data: {
        network: 'eip155:84532',
        asset: paidQuote(1).terms.asset,
        symbol: 'USDC',
        decimals: 6,
        pay_to: paidQuote(1).terms.pay_to,
        swept_to,
        amount: '1500',
        transaction: `0x${'01'.repeat(32)}`,
        block_number: '9',
        block_hash: `0x${'02'.repeat(32)}`,
        log_index: 0,
        operator: 'ann',
      },
    },
  }) as StreamEvent;

describe('a sweep in the books', () => {
  const vault = `0x${'88'.repeat(20)}`;
  const paid = paidQuote(1);
  paid.start();
  paid.settle('chain');

  test('moves tokens to an account of its recipient and is not a refund', () => {
    expect(balancesOf(entriesOf(recorded([...paid.events, sweepTo(vault)])))).toEqual({
      [chain]: 500n,
      [treasuryAt('0x888888-888888')]: 1500n,
      [undelivered]: -2000n,
    });
  });

  test('to another payee moves the balance to that payee, and refunds from that payee reduce its balance', () => {
    const other = `0x${'89'.repeat(20)}`;
    const otherChain = 'Assets:Chain:Eip155-84532:USDC:0x898989-898989 USDC-84532';
    const otherAddress = paidQuote(2, { pay_to: other });
    otherAddress.start();
    const events = [...otherAddress.events, ...paid.events, sweepTo(other)];
    expect(balancesOf(entriesOf(recorded(events)))).toEqual({
      [chain]: 500n,
      [otherChain]: 1500n,
      [undelivered]: -2000n,
    });
    const due = paidQuote(1);
    due.start();
    dead(due);
    due.refund(other);
    expect(balancesOf(entriesOf(recorded([...otherAddress.events, ...due.events])))).toEqual({
      [chain]: 2000n,
      [otherChain]: -2000n,
    });
  });
});

const anyLedger = fc
  .record({
    quotes: fc.uniqueArray(anyPaymentEvents, { selector: ({ n }) => n, minLength: 1, maxLength: 6 }),
    turns: fc.array(fc.nat(20), { minLength: 1, maxLength: 40 }),
  })
  .map(({ quotes, turns }) => ({
    quotes,
    events: recorded(
      interleaved(
        quotes.map(({ quote }) => quote.events),
        turns,
      ),
    ),
  }));

/** The liability that a quote leaves: nothing once it is completed or refunded. */
function owed({ basis, call, isRefunded }: QuoteOutcome): 'nothing' | 'undelivered' | 'due' {
  if (basis === 'none' || isRefunded || call === 'completed') return 'nothing';
  return call === 'dead' ? 'due' : 'undelivered';
}

const sum = (numbers: readonly bigint[]): bigint => numbers.reduce((all, one) => all + one, 0n);

describe('for any legal ledger', () => {
  test('the generated events pass the verifier', () => {
    fc.assert(
      fc.property(anyPaymentEvents, ({ quote }) => {
        const [first] = quote.events;
        if (first?.event.type !== 'quote_issued') throw new Error('the first event is not the quote');
        const issued = first.event.data as EventData<'quote_issued'>;
        const check = new QuoteCheck(issued, issued.options);
        const wrong = quote.events.slice(1).map(({ event }) => check.apply(event as LedgerEvent));
        expect(wrong.filter((words) => words !== undefined)).toEqual([]);
      }),
      propertyRuns(25),
    );
  });

  test('every entry adds up to 0 in each commodity, and no liability or unconfirmed amount is ever below 0', () => {
    fc.assert(
      fc.property(anyLedger, ({ events }) => {
        const balances = new Balances();
        for (const { moves } of entriesOf(events)) {
          for (const move of moves) {
            expect(move.atoms).toBeGreaterThan(0n);
            balances.post(move);
          }
          const list = balances.list();
          expect(sum(list.map(({ atoms }) => atoms))).toBe(0n);
          const of = (root: string) => list.filter(({ account }) => account.startsWith(root));
          expect(of('Liabilities:').filter(({ atoms }) => atoms > 0n)).toEqual([]);
          expect(of('Assets:Unconfirmed:').filter(({ atoms }) => atoms < 0n)).toEqual([]);
        }
      }),
      propertyRuns(25),
    );
  });

  test('the final liabilities equal the payments that were neither delivered nor refunded', () => {
    fc.assert(
      fc.property(anyLedger, ({ quotes, events }) => {
        const left = balancesOf(entriesOf(events));
        const due = (what: string) =>
          -sum(quotes.filter(({ at }) => owed(at) === what).map(({ quote }) => quote.amount));
        expect(left[undelivered] ?? 0n).toBe(due('undelivered'));
        expect(left[refundsDue] ?? 0n).toBe(due('due'));
      }),
      propertyRuns(25),
    );
  });

  test('the books are the same whether closed quotes are dropped from memory or kept', () => {
    fc.assert(
      fc.property(anyLedger, ({ events }) => {
        expect(entriesOf(events)).toEqual(entriesOf(events, () => true));
      }),
      propertyRuns(25),
    );
  });
});

test('only open quotes stay in memory: closed quotes and expired unpaid quotes are dropped', () => {
  const bookkeeper = new Bookkeeper(() => false);
  const post = (events: readonly RecordedEvent[]): void => {
    for (const event of events) bookkeeper.post(event);
  };
  for (let n = 0; n < 300; n++) {
    const quote = paidQuote(n);
    if (n % 3 > 0) quote.start();
    if (n % 3 === 1) {
      quote.settle('chain');
      quote.enqueue();
      quote.complete();
    }
    if (n % 3 === 2) quote.fail();
    post(recorded(quote.events));
  }
  // quotes can be paid again after a failure until they expire
  expect(bookkeeper.openQuotes).toBe(200);
  const later = recorded(paidQuote(301).events, booksStartMs + 12_600_000);
  post(later);
  expect(bookkeeper.openQuotes).toBe(1);
});

test('an entry has the time of its recording, and the time of a transfer only if that is known', () => {
  const quote = paidQuote(1);
  quote.start();
  quote.settle('chain');
  quote.enqueue();
  quote.complete();
  const [payment, delivery] = entriesOf(recorded(quote.events)) as [Entry, Entry];
  expect(payment).toMatchObject({
    category: 'payment',
    occurredAt: undefined,
    block: '77',
    quoteDigest: quote.stream,
  });
  expect(delivery).toMatchObject({ category: 'delivery', occurredAt: delivery.recordedAt });
});
