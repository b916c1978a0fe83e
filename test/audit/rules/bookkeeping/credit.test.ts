import { describe, expect, test } from 'vitest';
import { chatIncome } from '../../../../src/audit/rules/bookkeeping/account.ts';
import { currencyCommodity } from '../../../../src/audit/rules/bookkeeping/commodity.ts';
import { creditMoves } from '../../../../src/audit/rules/bookkeeping/credit.ts';
import { Balances } from '../../../../src/base/values/entry.ts';
import { CreditOrder, isParted } from '../../../../src/accounts/rules/credit/credit-parts.ts';
import { balancesOf, entriesOf, paidQuote, recorded, type StreamEvent } from './support.ts';

const chain = 'Assets:Chain:Eip155-84532:USDC:0x909090-909090 USDC-84532';
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

/** The balances after the events of one payment: 2000 atoms, job 1 of service 1. */
function after(apply: (quote: ReturnType<typeof paidQuote>) => void): Record<string, bigint> {
  const quote = paidQuote(1);
  quote.start();
  apply(quote);
  return balancesOf(entriesOf(recorded(quote.events)));
}

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
  test('that was granted is a liability until its use, and its use goes against its expense: it is not an income', () => {
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
