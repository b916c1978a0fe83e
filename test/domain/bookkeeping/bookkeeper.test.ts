import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Balances, type Entry } from '../../../src/domain/bookkeeping/entry.ts';
import { creditMoves } from '../../../src/domain/bookkeeping/credit.ts';
import { currencyCommodity } from '../../../src/domain/bookkeeping/commodity.ts';
import { CreditOrder, isParted } from '../../../src/domain/credit/credit-parts.ts';
import { chatIncome } from '../../../src/domain/bookkeeping/account.ts';
import type { EventData, LedgerEvent, RecordedEvent } from '../../../src/domain/events/event.ts';
import { QuoteCheck } from '../../../src/domain/verify/payment-check.ts';
import { Bookkeeper } from '../../../src/domain/bookkeeping/bookkeeper.ts';
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

  test('that was disproved leaves no balance, even where its job was completed', () => {
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

  test('of a quote that another payment has paid is due for a refund at once', () => {
    const left = after((q) => {
      q.fail();
      const late = q.events.length;
      q.start();
      q.settle('chain');
      q.enqueue();
      q.complete();
      // the first payment lands although it was recorded as failed
      const second = structuredClone(q.events[late - 1]!);
      const settled = structuredClone(q.events.find(({ event }) => event.type === 'payment_settled')!);
      const nonce = (second.event.data as { payment_nonce: string }).payment_nonce;
      (settled.event.data as { payment_nonce: string }).payment_nonce = nonce;
      q.events.push(settled);
    });
    expect(left).toEqual({ [chain]: 4000n, 'Income:Jobs:1:1 USDC-84532': -2000n, [refundsDue]: -2000n });
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

/** The balances in the currency after moves of credit; the payments of top-ups are left out. */
function movesOfCredit(events: readonly StreamEvent[]): Record<string, bigint> {
  const [order, balances, currency] = [new CreditOrder(), new Balances(), currencyCommodity('USD')];
  let recoveredChat = '';
  let model = '';
  for (const event of recorded(events)) {
    if (event.type === 'chat_completed') [recoveredChat, model] = [event.stream, event.data.model];
    if (!isParted(event)) continue;
    const parts = order.apply(event, event.stream === recoveredChat);
    for (const move of creditMoves(event, parts, model, currency)) balances.post(move);
  }
  return Object.fromEntries(
    balances.list().flatMap(({ account, atoms }) => (atoms === 0n ? [] : [[account, atoms]])),
  );
}

describe('prepaid credit in the books', () => {
  const of = { account_id: 7, chat_id: '00000000-0000-4000-8000-000000000001' };
  const granted: StreamEvent = {
    stream: 'account:7',
    event: { type: 'credit_granted', data: { account_id: 7, amount_micros: '9000000' } },
  };
  const chat = (type: string, data: object): StreamEvent =>
    ({ stream: `chat:${of.chat_id}`, event: { type, data } }) as StreamEvent;
  const completed = chat('chat_completed', { model: 'small', cost_micros: '400', ending: 'recovered' });
  const captured = chat('credit_captured', { ...of, amount_micros: '400', is_estimate: false });

  const bought = (micros: string): StreamEvent => ({
    stream: 'account:7',
    event: { type: 'credit_topped_up', data: { account_id: 7, amount_micros: micros } } as never,
  });
  const expired = (micros: string): StreamEvent => ({
    stream: 'account:7',
    event: { type: 'credit_expired', data: { account_id: 7, amount_micros: micros } },
  });
  const capturedMuch = chat('credit_captured', { ...of, amount_micros: '9000400', is_estimate: true });

  test('that was granted is a liability until its use, and its use goes against its expense: it is no income', () => {
    const events = [granted, completed, captured];
    expect(balancesOf(entriesOf(recorded(events)))).toEqual({
      'Expenses:CreditGrants:Given CREDIT': 9_000_000n,
      'Expenses:CreditGrants:Used CREDIT': -400n,
      'Liabilities:PrepaidCredit:Granted CREDIT': -8_999_600n,
    });
  });

  test('that was granted is used first, then what was bought, whose use is income of the model', () => {
    const moved = movesOfCredit([granted, bought('5000000'), completed, capturedMuch]);
    expect(moved).toEqual({
      'Liabilities:PrepaidCredit:Bought': -4_999_600n,
      'Equity:Conversion': 5_000_000n,
      'Expenses:CreditGrants:Given': 9_000_000n,
      'Expenses:CreditGrants:Used': -9_000_000n,
      [chatIncome('small')]: -400n,
    });
  });

  test('that is returned is what was used last: bought credit before granted', () => {
    const corrected = chat('credit_corrected', { ...of, amount_micros: '1000' });
    expect(
      movesOfCredit([granted, bought('5000000'), completed, capturedMuch, completed, corrected]),
    ).toMatchObject({
      'Liabilities:PrepaidCredit:Bought': -5_000_000n,
      'Liabilities:PrepaidCredit:Granted': -600n,
      'Expenses:CreditGrants:Used': -8_999_400n,
    });
  });

  test('that was granted expires first and against its expense; bought credit that expires is breakage', () => {
    expect(movesOfCredit([granted, bought('5000000'), expired('9000001')])).toEqual({
      'Liabilities:PrepaidCredit:Bought': -4_999_999n,
      'Equity:Conversion': 5_000_000n,
      'Income:Breakage': -1n,
    });
  });

  test('that is returned is no longer used, and expires as what it was', () => {
    const corrected = chat('credit_corrected', { ...of, amount_micros: '400' });
    const all = [granted, completed, captured, completed, corrected, expired('9000000')];
    expect(balancesOf(entriesOf(recorded(all)))).toEqual({});
  });

  test.each(['before', 'after'])(
    'bought %s its call is completed is owed in credit and no longer in tokens',
    (when) => {
      const left = after((q) => {
        q.settle('chain');
        q.enqueue();
        if (when === 'before') q.topUp();
        q.complete();
        if (when === 'after') q.topUp();
      });
      expect(left).toEqual({
        [chain]: 2000n,
        'Equity:Conversion USDC-84532': -2000n,
        'Equity:Conversion CREDIT': 5_000_000n,
        'Liabilities:PrepaidCredit:Bought CREDIT': -5_000_000n,
      });
    },
  );

  test('is reversed when its payment is disproved, and the used part is a loss', () => {
    const left = after(
      (q) => (
        q.settle('facilitator'),
        q.enqueue(),
        q.topUp(),
        q.complete(),
        q.disprove('kept'),
        q.reverseTopUp()
      ),
    );
    expect(left).toEqual({
      'Liabilities:PrepaidCredit:Bought CREDIT': -3_000_000n,
      'Expenses:LostTopUps CREDIT': 3_000_000n,
    });
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
    );
  });

  test('the books are the same whether closed quotes are dropped from memory or kept', () => {
    fc.assert(
      fc.property(anyLedger, ({ events }) => {
        expect(entriesOf(events)).toEqual(entriesOf(events, () => true));
      }),
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

test('an entry has the time of its recording, and the time of a transfer only where that is known', () => {
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
