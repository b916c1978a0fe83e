import type { LedgerEvent } from '../../../src/ledger/rules/event.ts';
import type { Field, Plant } from './field.ts';

async function rewritten(field: Field, stream: string, type: LedgerEvent['type'], from: string, to: string) {
  const seq = await field.seqOf(stream, type);
  await field.rewrite(seq, from, to);
  return seq;
}

const more = (atoms: bigint): [string, string] => [`"amount":"${atoms}"`, `"amount":"${atoms + 1n}"`];

/** What an insider who owns the database changes in it. */
export const tampered: readonly Plant[] = [
  {
    name: 'the amount of a settlement is edited',
    async plant(field) {
      const { digest, booked } = field.sale(field.delivered);
      const fault = await rewritten(field, digest, 'payment_settled', ...more(booked.atoms));
      return { fault, items: [`amount_mismatch ${digest}`], checkpoint: true };
    },
  },
  {
    name: 'the amount that a payer signed is edited',
    async plant(field) {
      const { digest, booked } = field.sale(field.delivered, 1);
      const fault = await rewritten(field, digest, 'settlement_started', ...more(booked.atoms));
      return { fault, items: [`amount_mismatch ${digest}`], rows: ['payment'], checkpoint: true };
    },
  },
  {
    name: 'the price of a quote is edited',
    async plant(field) {
      const { digest, booked } = field.sale(field.delivered, 2);
      const fault = await rewritten(field, digest, 'quote_issued', ...more(booked.atoms));
      return { fault, items: [`quote_terms_differ ${digest}`], checkpoint: true };
    },
  },
  {
    name: 'credit is bought at a better rate than the quote says',
    async plant(field) {
      // the last one: after it no other top-up states a balance
      const [row] = await field.world.ledger.asOwner(
        `select seq::int as seq, data::json->>'quote_digest' as digest from tollbook.event
           where type = 'credit_topped_up' order by seq desc limit 1`,
      );
      const fault = Number(row?.['seq']);
      const { creditMicros } = field.sale(field.topUps.filter(({ digest }) => digest === row?.['digest']));
      const member = '"amount_micros":';
      await field.rewrite(fault, `${member}"${creditMicros}"`, `${member}"${2n * creditMicros}"`);
      return { fault, rows: ['account_credit', 'account', 'credit_request'], checkpoint: true };
    },
  },
  {
    name: 'an event is moved to another month',
    async plant(field) {
      const fault = await field.seqOf(field.sale(field.delivered).digest, 'payment_settled');
      await field.world.ledger.asInsider(
        `update tollbook.event set at = at - interval '40 days' where seq = $1`,
        [fault],
      );
      return {
        fault,
        items: [`timing ${field.sale(field.delivered).digest}`],
        rows: ['payment'],
        checkpoint: true,
      };
    },
  },
  {
    name: 'an event is deleted',
    async plant(field) {
      const { digest } = field.sale(field.delivered);
      const fault = await field.seqOf(digest, 'delivered');
      await field.world.ledger.asInsider('delete from tollbook.event where seq = $1', [fault]);
      return { fault, refused: 'ledger_too_short', revenue: undefined, checkpoint: true };
    },
  },
  {
    name: 'the last event is deleted, and all that counts it',
    async plant(field) {
      const { ledger } = field.world;
      await ledger.asInsider(
        'update tollbook.lane_counter set count = count - 1 where type = (select type from tollbook.event order by seq desc limit 1)',
      );
      await ledger.asInsider('update tollbook.lane set seq = seq - 1');
      const [row] = await ledger.asInsider(
        'delete from tollbook.event where seq = (select max(seq) from tollbook.event) returning seq::int as seq',
      );
      // the last event of the month moved credit
      const seen = {
        rows: ['account_credit', 'account'],
        checkpoint: true,
        refused: 'ledger_too_short',
      } as const;
      return { ...seen, fault: Number(row?.['seq']) - 1 };
    },
  },
  {
    name: 'a delivery is recorded again, so that a counter is higher',
    async plant(field) {
      const { digest } = field.sale(field.delivered);
      const [row] = await field.world.ledger.asOwner(
        `select data from tollbook.event where stream = tollbook.stream_key($1) and type = 'completed'`,
        [digest],
      );
      const data = JSON.parse(String(row?.['data'])) as Extract<LedgerEvent, { type: 'completed' }>['data'];
      await field.append(digest, { type: 'completed', data });
      return { fault: await field.lastSeq(), revenue: undefined };
    },
  },
  {
    name: 'a counter is edited',
    async plant(field) {
      await field.world.ledger.asInsider(
        `update tollbook.lane_counter set count = count + 1 where type = 'payment_settled'`,
      );
      return { fault: await field.lastSeq() };
    },
  },
  {
    name: 'the size of a body is edited, which nothing else is compared with',
    async plant(field) {
      const { digest } = field.sale(field.delivered);
      const seq = await field.seqOf(digest, 'settlement_started');
      await field.rewrite(seq, '"body_bytes":', '"body_bytes":9');
      return { fault: seq, checkpoint: true };
    },
  },
  {
    name: 'the payer of a row of the read model is edited, whose refund is due',
    async plant(field) {
      const { digest } = field.sale(field.due);
      const seq = await field.seqOf(digest, 'settlement_started');
      await field.world.ledger.asInsider(
        `update tollbook.payment set payer = decode(repeat('66', 20), 'hex') where seq = $1`,
        [seq],
      );
      return { rows: ['payment'], contradicted: seq };
    },
  },
  {
    name: 'a row of the read model is deleted',
    async plant(field) {
      const seq = await field.seqOf(field.sale(field.delivered).digest, 'settlement_started');
      await field.world.ledger.asInsider('delete from tollbook.payment where seq = $1', [seq]);
      return { rows: ['payment'] };
    },
  },
  {
    name: 'the credit of an account is edited in the read model',
    async plant(field) {
      await field.world.ledger.asInsider(
        'update tollbook.account_credit set granted = granted + 1 where account_id = (select min(account_id) from tollbook.account)',
      );
      return { rows: ['account_credit'] };
    },
  },
  {
    name: 'a refund that is due is hidden: its dead letter is made a delivery',
    async plant(field) {
      const { digest } = field.sale(field.due);
      const seq = await field.seqOf(digest, 'dead_lettered');
      await field.world.ledger.asInsider(
        `update tollbook.event set type = 'completed', data = replace(data, ',"reason":"http_400"', '') where seq = $1`,
        [seq],
      );
      const gone = [`refund_due ${digest}`];
      const contradicted = await field.seqOf(digest, 'settlement_started');
      return { fault: seq, gone, rows: ['payment', 'paid_call', 'call'], contradicted, checkpoint: true };
    },
  },
  {
    name: 'more credit is granted than was recorded',
    async plant(field) {
      const [row] = await field.world.ledger.asOwner(
        `select seq::int as seq from tollbook.event where type = 'credit_granted'`,
      );
      const fault = Number(row?.['seq']);
      await field.rewrite(fault, '"5000000"', '"9000000"');
      return { fault, rows: ['account_credit', 'account'], checkpoint: true };
    },
  },
  {
    name: 'the whole ledger is sealed anew with its own key after an event was edited',
    async plant(field) {
      await field.editAndSealAnew();
      // only who kept a checkpoint can tell
      return { checkpoint: true };
    },
  },
];
