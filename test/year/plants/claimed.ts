import { claimKey } from '../../../src/ledger/store/claim-key.ts';
import { paymentClaim, transferClaim } from '../../../src/payments/store/claims.ts';
import { hex32Of } from '../../support/synthetic-ledger.ts';
import { network } from '../chain.ts';
import type { Sale } from '../world.ts';
import type { Field, Plant } from './field.ts';

const keyOfPayment = ({ payment }: Sale): Buffer => claimKey(paymentClaim(payment, ''));

/** Changes one claim, as an insider who owns the database. */
async function change(field: Field, statement: string, values: readonly unknown[]): Promise<void> {
  const changed = await field.world.ledger.asInsider(`${statement} returning key`, values);
  if (changed.length !== 1) throw new Error(`${changed.length} claims were changed, not one: ${statement}`);
}

/** What an insider changes of the claims, which let a payment and a transfer count once. */
export const claimed: readonly Plant[] = [
  {
    name: 'the claim of a payment is deleted, so that the payment could be used again',
    async plant(field) {
      const sale = field.sale(field.delivered);
      await change(field, 'delete from tollbook.claim where key = $1', [keyOfPayment(sale)]);
      return {
        rows: ['claim'],
        named: [
          `the row of kind payment, stream ${sale.digest}, key ${keyOfPayment(sale).toString('hex')} is missing`,
        ],
      };
    },
  },
  {
    name: 'the claim of the transfer of a payment is deleted, so that the transfer could be a second payment',
    async plant(field) {
      const { digest } = field.sale(field.delivered, 1);
      const [row] = await field.world.ledger.asOwner(
        `select data::json->>'transaction' as transaction, data::json->>'log_index' as log_index
           from tollbook.event where stream = tollbook.stream_key($1) and type = 'payment_settled'`,
        [digest],
      );
      const key = claimKey(
        transferClaim(network, String(row?.['transaction']), Number(row?.['log_index']), ''),
      );
      await change(field, 'delete from tollbook.claim where key = $1', [key]);
      return {
        rows: ['claim'],
        named: [`the row of kind transfer, stream ${digest}, key ${key.toString('hex')} is missing`],
      };
    },
  },
  {
    name: 'the claim of a payment is bound to another request, so that a repetition of it is a replay',
    async plant(field) {
      const [sale, other] = [field.sale(field.delivered), field.sale(field.delivered, 1)];
      await change(
        field,
        'update tollbook.claim set binding = (select o.binding from tollbook.claim o where o.key = $2) where key = $1',
        [keyOfPayment(sale), keyOfPayment(other)],
      );
      return {
        rows: ['claim'],
        named: [`kind payment, stream ${sale.digest}, key ${keyOfPayment(sale).toString('hex')}: binding is`],
      };
    },
  },
  {
    name: 'the claim of a payment is given to the stream of another payment',
    async plant(field) {
      const [sale, other] = [field.sale(field.delivered), field.sale(field.delivered, 1)];
      await change(field, 'update tollbook.claim set stream = tollbook.stream_key($2) where key = $1', [
        keyOfPayment(sale),
        other.digest,
      ]);
      return { rows: ['claim'], named: [`stream is "${other.digest}", by the events "${sale.digest}"`] };
    },
  },
  {
    name: 'a claim gets another key, so that its payment could be used again and another one is refused',
    async plant(field) {
      const [sale, unknown] = [field.sale(field.delivered), field.unknown()];
      await change(field, 'update tollbook.claim set key = $2 where key = $1', [
        keyOfPayment(sale),
        keyOfPayment(unknown),
      ]);
      return {
        rows: ['claim', 'claim'],
        named: [
          `key ${keyOfPayment(sale).toString('hex')} is missing`,
          `key ${keyOfPayment(unknown).toString('hex')} is of no event`,
        ],
      };
    },
  },
  {
    name: 'a claim of no event is added, so that a payment is refused as used',
    async plant(field) {
      const unknown = field.unknown();
      const stream = hex32Of('a stream without events');
      await change(
        field,
        `insert into tollbook.claim (key, binding, stream) select $1, binding, tollbook.stream_key($2) from tollbook.claim limit 1`,
        [keyOfPayment(unknown), stream],
      );
      return {
        rows: ['claim'],
        named: [`stream ${stream}, key ${keyOfPayment(unknown).toString('hex')} is of no event`],
      };
    },
  },
];
