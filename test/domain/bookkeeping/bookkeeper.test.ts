import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Balances, decimalText, type Entry } from '../../../src/domain/bookkeeping/entry.ts';
import { Commodities } from '../../../src/domain/bookkeeping/commodity.ts';
import { chatIncome } from '../../../src/domain/bookkeeping/account.ts';
import type { LedgerEvent, RecordedEvent } from '../../../src/domain/events/event.ts';
import { QuoteCheck } from '../../../src/domain/verify/payment-check.ts';
import { Bookkeeper } from '../../../src/domain/bookkeeping/bookkeeper.ts';
import {
  anyPaymentEvents,
  booksStartMs,
  entriesOf,
  interleaved,
  leftOn,
  paying,
  placed,
  type Standing,
  type StreamEvent,
} from './support.ts';
import { anyOption } from '../payments/support.ts';

const chain = 'Assets:Chain:Eip155-84532:USDC:0x909090-909090 USDC-84532';
const unconfirmed = 'Assets:Unconfirmed:Eip155-84532:USDC:0x909090-909090 USDC-84532';
const treasury = 'Assets:Treasury:Eip155-84532:USDC USDC-84532';
const undelivered = 'Liabilities:Undelivered USDC-84532';
const refundsDue = 'Liabilities:RefundsDue USDC-84532';
const refunds = 'Income:Refunds USDC-84532';

/** What is left after the first job's story: 2000 atoms, job 1 of service 1. */
function after(tell: (quote: ReturnType<typeof paying>) => void): Record<string, bigint> {
  const quote = paying(1);
  quote.start();
  tell(quote);
  return leftOn(entriesOf(placed(quote.told)));
}

function dead(quote: ReturnType<typeof paying>): void {
  quote.settle('chain');
  quote.enqueue();
  quote.die();
}

describe('a payment', () => {
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

  test('that was refunded from elsewhere leaves its tokens where they are', () => {
    const elsewhere = `0x${'77'.repeat(20)}`;
    const left = after((q) => (q.settle('chain'), q.enqueue(), q.die(), q.refund(elsewhere)));
    expect(left).toEqual({ [chain]: 2000n, [treasury]: -2000n });
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
      const late = q.told.length;
      q.start();
      q.settle('chain');
      q.enqueue();
      q.complete();
      // the first one lands after all
      const second = structuredClone(q.told[late - 1]!);
      const settled = structuredClone(q.told.find(({ event }) => event.type === 'payment_settled')!);
      const nonce = (second.event.data as { payment_nonce: string }).payment_nonce;
      (settled.event.data as { payment_nonce: string }).payment_nonce = nonce;
      q.told.push(settled);
    });
    expect(left).toEqual({ [chain]: 4000n, 'Income:Jobs:1:1 USDC-84532': -2000n, [refundsDue]: -2000n });
  });

  test('that is proven and closed may be confirmed once more', () => {
    expect(after((q) => (q.settle('operator'), q.enqueue(), q.complete(), q.confirm()))).toEqual({
      [chain]: 2000n,
      'Income:Jobs:1:1 USDC-84532': -2000n,
    });
  });

  test('of a quote that was never issued is an error', () => {
    const quote = paying(1);
    quote.start();
    quote.settle('chain');
    expect(() => entriesOf(placed(quote.told.slice(1)))).toThrow(
      /event 2: settlement_started belongs to a quote/,
    );
  });
});

describe('credit', () => {
  const of = { account_id: 7, chat_id: '00000000-0000-4000-8000-000000000001' };
  const granted: StreamEvent = {
    stream: 'account:7',
    event: { type: 'credit_granted', data: { account_id: 7, amount_micros: '9000000' } },
  };
  const chat = (type: string, data: object): StreamEvent =>
    ({ stream: `chat:${of.chat_id}`, event: { type, data } }) as StreamEvent;
  const completed = chat('chat_completed', { model: 'small', cost_micros: '400' });
  const captured = chat('credit_captured', { ...of, amount_micros: '400', is_estimate: false });

  test('is owed from when it is granted until it is used, and its use is income of the model', () => {
    const told = [granted, completed, captured];
    expect(leftOn(entriesOf(placed(told)))).toEqual({
      'Expenses:CreditGrants CREDIT': 9_000_000n,
      'Liabilities:PrepaidCredit CREDIT': -8_999_600n,
      [`${chatIncome('small')} CREDIT`]: -400n,
    });
  });

  test('that comes back is income no longer, and what expires is breakage', () => {
    const corrected = chat('credit_corrected', { ...of, amount_micros: '400' });
    const expired: StreamEvent = {
      stream: 'account:7',
      event: { type: 'credit_expired', data: { account_id: 7, amount_micros: '9000000' } },
    };
    expect(leftOn(entriesOf(placed([granted, completed, captured, completed, corrected, expired])))).toEqual({
      'Expenses:CreditGrants CREDIT': 9_000_000n,
      'Income:Breakage CREDIT': -9_000_000n,
    });
  });

  test.each(['before', 'after'])(
    'bought is owed in credit and no longer in tokens, told %s the call is done',
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
        'Liabilities:PrepaidCredit CREDIT': -5_000_000n,
      });
    },
  );

  test('whose payment did not stand is taken back, and what was used of it is lost', () => {
    const left = after(
      (q) => (
        q.settle('facilitator'),
        q.enqueue(),
        q.topUp(),
        q.complete(),
        q.disprove('kept'),
        q.takeBack()
      ),
    );
    expect(left).toEqual({
      'Liabilities:PrepaidCredit CREDIT': -3_000_000n,
      'Expenses:LostTopUps CREDIT': 3_000_000n,
    });
  });
});

describe('a spend', () => {
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
  const told = (type: string): StreamEvent =>
    ({ stream: `spend:${data.chat_id}`, event: { type, data } }) as StreamEvent;
  const tag = 'Eip155-84532:SPEND';

  test.each([
    ['spend_paid_out', `Assets:Chain:${tag}:0x909090-909090 SPEND-84532`],
    ['spend_failed', 'Expenses:LostSpends SPEND-84532'],
    ['spend_authorized', `Assets:Receivable:Spends:${tag}:0x909090-909090 SPEND-84532`],
  ])('is income once it is earned, and after %s', (type, account) => {
    expect(leftOn(entriesOf(placed([told('spend_earned'), told(type)])))).toEqual({
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
        asset: paying(1).terms.asset,
        symbol: 'USDC',
        decimals: 6,
        pay_to: paying(1).terms.pay_to,
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

describe('a sweep', () => {
  const vault = `0x${'88'.repeat(20)}`;
  const paid = paying(1);
  paid.start();
  paid.settle('chain');

  test('moves tokens to the treasury, and is no refund', () => {
    expect(leftOn(entriesOf(placed([...paid.told, sweepTo(vault)])))).toEqual({
      [chain]: 500n,
      [treasury]: 1500n,
      [undelivered]: -2000n,
    });
  });

  test('to another address that is paid to stays among what is on those, and refunds from there leave there', () => {
    const other = `0x${'89'.repeat(20)}`;
    const there = 'Assets:Chain:Eip155-84532:USDC:0x898989-898989 USDC-84532';
    const elsewhere = paying(2, { pay_to: other });
    elsewhere.start();
    const told = [...elsewhere.told, ...paid.told, sweepTo(other)];
    expect(leftOn(entriesOf(placed(told)))).toEqual({ [chain]: 500n, [there]: 1500n, [undelivered]: -2000n });
    const due = paying(1);
    due.start();
    dead(due);
    due.refund(other);
    expect(leftOn(entriesOf(placed([...elsewhere.told, ...due.told])))).toEqual({
      [chain]: 2000n,
      [there]: -2000n,
    });
  });
});

const anyLedger = fc
  .record({
    stories: fc.uniqueArray(anyPaymentEvents, { selector: ({ n }) => n, minLength: 1, maxLength: 6 }),
    turns: fc.array(fc.nat(20), { minLength: 1, maxLength: 40 }),
  })
  .map(({ stories, turns }) => ({
    stories,
    events: placed(
      interleaved(
        stories.map(({ quote }) => quote.told),
        turns,
      ),
    ),
  }));

/** What a quote leaves on the accounts of what is owed: nothing once it is done or paid back. */
function owed({ basis, call, isRefunded }: Standing): 'nothing' | 'undelivered' | 'due' {
  if (basis === 'none' || isRefunded || call === 'completed') return 'nothing';
  return call === 'dead' ? 'due' : 'undelivered';
}

const sum = (numbers: readonly bigint[]): bigint => numbers.reduce((all, one) => all + one, 0n);

describe('of any legal ledger', () => {
  test('the stories told here are legal', () => {
    fc.assert(
      fc.property(anyPaymentEvents, ({ quote }) => {
        const check = new QuoteCheck();
        const wrong = quote.told.slice(1).map(({ event }) => check.apply(event as LedgerEvent));
        expect(wrong.filter((words) => words !== undefined)).toEqual([]);
      }),
    );
  });

  test('every entry adds up to 0 in each commodity, and nothing owed or unconfirmed is ever below 0', () => {
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

  test('what is owed in the end is what was paid and neither delivered nor paid back', () => {
    fc.assert(
      fc.property(anyLedger, ({ stories, events }) => {
        const left = leftOn(entriesOf(events));
        const due = (what: string) =>
          -sum(stories.filter(({ at }) => owed(at) === what).map(({ quote }) => quote.amount));
        expect(left[undelivered] ?? 0n).toBe(due('undelivered'));
        expect(left[refundsDue] ?? 0n).toBe(due('due'));
      }),
    );
  });

  test('the books are the same whether they forget what is done or not, and they forget it', () => {
    fc.assert(
      fc.property(anyLedger, ({ events }) => {
        expect(entriesOf(events)).toEqual(entriesOf(events, () => true));
      }),
    );
  });
});

test('what is remembered is what is open: the rest is forgotten, and unpaid quotes when they have run out', () => {
  const bookkeeper = new Bookkeeper(() => false);
  const post = (events: readonly RecordedEvent[]): void => {
    for (const event of events) bookkeeper.post(event);
  };
  for (let n = 0; n < 300; n++) {
    const quote = paying(n);
    if (n % 3 > 0) quote.start();
    if (n % 3 === 1) {
      quote.settle('chain');
      quote.enqueue();
      quote.complete();
    }
    if (n % 3 === 2) quote.fail();
    post(placed(quote.told));
  }
  // quotes can be paid again after a failure while they last
  expect(bookkeeper.openQuotes).toBe(200);
  const later = placed(paying(301).told, booksStartMs + 12_600_000);
  post(later);
  expect(bookkeeper.openQuotes).toBe(1);
});

test('tokens never share a name, and names are such as beancount takes', () => {
  fc.assert(
    fc.property(fc.array(anyOption, { maxLength: 20 }), fc.boolean(), (options, areAlike) => {
      const commodities = new Commodities();
      const tokens = options.map((option) => ({
        ...option,
        ...(areAlike ? { symbol: 'usdc', network: 'eip155:8453' } : {}),
      }));
      const keys = new Set(tokens.map((token) => `${token.network}/${token.asset}/${token.decimals}`));
      const names = tokens.map((token) => commodities.token(token).name);
      expect(new Set(names).size).toBe(keys.size);
      for (const name of names) expect(name).toMatch(/^[A-Z][A-Z0-9'._-]{0,22}[A-Z0-9]$/);
    }),
  );
});

test('a token whose name is taken keeps apart, and the first keeps its name', () => {
  const commodities = new Commodities();
  const token = { network: 'eip155:8453', asset: `0x${'ab'.repeat(20)}`, symbol: 'USDC', decimals: 6 };
  const names = [token, { ...token, asset: `0x${'cd'.repeat(20)}` }, { ...token, decimals: 18 }, token].map(
    (one) => commodities.token(one).name,
  );
  expect(names).toEqual(['USDC-8453', 'USDC-CDCDCD-8453', 'USDC-ABABAB-8453', 'USDC-8453']);
});

test('amounts are exact decimal text, of any size', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 256n), max: 2n ** 256n }), fc.nat(36), (atoms, decimals) => {
      const text = decimalText(atoms, decimals);
      expect(text).toMatch(decimals === 0 ? /^-?\d+$/ : /^-?\d+\.\d+$/);
      expect(BigInt(text.replace('.', ''))).toBe(atoms);
    }),
  );
  expect([decimalText(5n, 6), decimalText(-1_500_000n, 6), decimalText(7n, 0)]).toEqual([
    '0.000005',
    '-1.500000',
    '7',
  ]);
});

test('models that are spelled alike have accounts of their own', () => {
  const models = ['gpt-4o', 'Gpt-4o', 'gpt/4o', 'openai/gpt-4o:free', '=cmd()', '"', ';'];
  const accounts = models.map((model) => chatIncome(model));
  expect(new Set(accounts).size).toBe(models.length);
  for (const account of accounts) expect(account).toMatch(/^Income:Chat:[A-Z0-9][A-Za-z0-9-]*$/);
});

test('an entry says when it was recorded, and of a transfer when it occurred only where that is known', () => {
  const quote = paying(1);
  quote.start();
  quote.settle('chain');
  quote.enqueue();
  quote.complete();
  const [payment, delivery] = entriesOf(placed(quote.told)) as [Entry, Entry];
  expect(payment).toMatchObject({
    category: 'payment',
    occurredAt: undefined,
    block: '77',
    quoteDigest: quote.stream,
  });
  expect(delivery).toMatchObject({ category: 'delivery', occurredAt: delivery.recordedAt });
});
