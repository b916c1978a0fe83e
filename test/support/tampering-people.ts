import type { LedgerEvent } from '../../src/ledger/rules/event.ts';
import { customer } from './synthetic-people.ts';
import { paidJob, type StreamEvent } from './synthetic-ledger.ts';
import { retype, rewrite, type Tampering } from './tampering.ts';

/** Two customers, and two payments of one payer, each with a payment id: 35 + 35 + 14 events. */
export const peopleLedger: readonly StreamEvent[] = [
  ...customer(0),
  ...customer(1),
  ...identified(paidJob(1), 'pay_00000000000000001'),
  ...identified(paidJob(51), 'pay_00000000000000002'),
];

function identified(events: readonly StreamEvent[], id: string): StreamEvent[] {
  return events.map(({ stream, event: { type, data } }) => {
    const more = type === 'settlement_started' ? { payment_id: id } : {};
    return { stream, event: { type, data: { ...data, ...more } } as LedgerEvent };
  });
}

/** Ways to falsify events of credit, chats, keys, spends, people and payment identifiers. */
export const peopleTamperings: readonly Tampering[] = [
  {
    what: 'a grant is raised, consistently',
    words: /old\.ckpt: of the events 1 to 35 at least one is not as it was sealed/,
    independently: /old\.ckpt: the first 35 events are not those/,
    change: rewrite('seq = 11', '"amount_micros":"1000"', '"amount_micros":"9000"'),
  },
  {
    what: 'a grant is lowered below what was spent of it',
    words: /first at event 24: credit_held of chat:\S+: account 1 has -99 micros available/,
    independently: /first at event 24: credit_held: account 1 has -99 micros available/,
    change: rewrite('seq = 11', '"amount_micros":"1000"', '"amount_micros":"1"'),
  },
  {
    what: 'a completion costs more than its tokens at the price of its admission',
    words: /first at event 16: chat_completed of chat:\S+: its cost does not follow from its tokens/,
    independently: /first at event 16: its cost does not follow from its tokens/,
    change: rewrite('seq = 16', '"cost_micros":"200"', '"cost_micros":"201"'),
  },
  {
    what: 'the price of an admission is lowered',
    words: /first at event 16: chat_completed of chat:\S+: its cost does not follow from its tokens/,
    independently: /first at event 16: its cost does not follow from its tokens/,
    change: rewrite('seq = 14', '"output_nanos":"150000000000"', '"output_nanos":"100000000000"'),
  },
  {
    what: 'a completion captures more than was held for it',
    words:
      /first at event 17: credit_captured of chat:\S+: more credit is captured or released than was held/,
    independently: /first at event 17: credit_captured: (?:account 1|this chat) has -1 micros held/,
    change: rewrite('seq = 17', '"amount_micros":"200"', '"amount_micros":"301"'),
  },
  {
    what: 'a completion is charged to another account',
    words: /first at event 17: credit_captured of chat:\S+: account 2 has -200 micros held/,
    independently: /first at event 17: credit_captured: account 2 has -200 micros held/,
    change: rewrite('seq = 17', '"account_id":1', '"account_id":2'),
  },
  {
    what: 'a charge is moved to another chat',
    words: /first at event 17: credit_captured of chat:\S+: its data do not match the entity of its stream/,
    independently: /first at event 17: the data of credit_captured do not match the entity/,
    change: rewrite(
      'seq = 17',
      '"chat_id":"00000000-0000-4000-8000-3',
      '"chat_id":"00000000-0000-4000-8000-4',
    ),
  },
  {
    what: 'a correction returns more than was captured',
    words: /first at event 27: credit_corrected of chat:\S+: more credit is returned than was captured/,
    independently: /first at event 27: credit_corrected: this chat has -50 micros used/,
    change: rewrite('seq = 27', '"amount_micros":"150"', '"amount_micros":"450"'),
  },
  {
    what: 'more credit expires than is available',
    words: /first at event 33: credit_expired of account:1: account 1 has -\d+ micros available/,
    independently: /first at event 33: credit_expired: account 1 has -\d+ micros available/,
    change: rewrite('seq = 33', '"amount_micros":"50"', '"amount_micros":"5000"'),
  },
  {
    what: 'the admission of a served chat is changed into a refusal',
    words: /first at event 19: the data of chat_refused/,
    independently: /first at event 20: credit_held of a chat that is refused/,
    change: retype(19, 'chat_admitted', 'chat_refused'),
  },
  {
    what: 'a spend is paid out that was never earned',
    words: /first at event 31: spend_paid_out of spend:\S+: the spend is accepted/,
    independently: /first at event 31: spend_paid_out of a spend that is accepted/,
    change: retype(31, 'spend_earned', 'spend_paid_out'),
  },
  {
    what: 'a spend is accepted twice',
    words: /first at event 64: spend_accepted of spend:\S+: this spend was claimed before/,
    independently: /first at event 64: this spend was claimed before/,
    change: rewrite('seq between 36 and 70', '"nonce":"1"', '"nonce":"0"'),
  },
  {
    what: 'a session of another user ends',
    words: /first at event 35: session_ended of session:\S+: its data do not match the entity/,
    independently: /first at event 35: the data of session_ended do not match the entity/,
    change: rewrite(
      'seq = 35',
      '"session_id":"00000000-0000-4000-8000-20',
      '"session_id":"00000000-0000-4000-8000-21',
    ),
  },
  {
    what: 'the revocation of a key is changed into a second creation',
    words: /first at event 34: /,
    independently: /first at event 34: key_created of a key that is created/,
    change: retype(34, 'key_revoked', 'key_created'),
  },
  {
    what: 'a payment id is used for two payments',
    words: /first at event 80: settlement_started of 0x\w+: the payer's payment id was claimed before/,
    independently: /first at event 80: the payer's payment id was claimed before/,
    change: rewrite('seq > 70', 'pay_00000000000000002', 'pay_00000000000000001'),
  },
];
