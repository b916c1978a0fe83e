import { payTo, stranger, units, vault } from '../chain.ts';
import { type Field, type Plant, transferRecorded } from './field.ts';

const firstToken = ({ world }: Field) => {
  const [token] = world.chain.tokens;
  if (!token) throw new Error('the chain has no token');
  return token;
};

/** What is recorded of transfers by who may append and does not use the commands. */
export const recorded: readonly Plant[] = [
  {
    name: 'one transfer is recorded as the refund of two payments',
    async plant(field) {
      const [first, second] = [field.sale(field.due), field.sale(field.due, 1)];
      const place = await field.placeOf(
        await field.transfer(first.token, payTo, first.payment.payer, first.booked.atoms),
      );
      await field.refund(first, place);
      await field.refund(second, place);
      return {
        items: [`refund ${first.digest}`, `duplicate_claim ${second.digest}`],
        gone: [`refund_due ${first.digest}`, `refund_due ${second.digest}`],
        fault: await field.seqOf(second.digest, 'refunded'),
        rows: ['claim'],
      };
    },
  },
  {
    name: 'a payment is refunded twice',
    async plant(field) {
      const sale = field.sale(field.due);
      const { token, payment, booked, digest } = sale;
      const places = [];
      for (let n = 0; n < 2; n++)
        places.push(await field.placeOf(await field.transfer(token, payTo, payment.payer, booked.atoms)));
      for (const place of places) await field.refund(sale, place);
      return {
        items: [`refund ${digest}`, `refund ${digest}`],
        gone: [`refund_due ${digest}`],
        fault: (await field.seqOf(digest, 'refunded')) + 1,
      };
    },
  },
  {
    name: 'a refund went to another address than is recorded',
    async plant(field) {
      const sale = field.sale(field.due);
      const place = await field.placeOf(await field.transfer(sale.token, payTo, stranger, sale.booked.atoms));
      await field.refund(sale, place);
      return { items: [`payee_mismatch ${sale.digest}`], gone: [`refund_due ${sale.digest}`] };
    },
  },
  {
    name: 'a refund is recorded that was never sent',
    async plant(field) {
      const sale = field.sale(field.due);
      await field.refund(sale, await field.noPlace());
      return { items: [`missing_on_chain ${sale.digest}`], gone: [`refund_due ${sale.digest}`] };
    },
  },
  {
    name: 'a refund of less than is recorded',
    async plant(field) {
      const sale = field.sale(field.due);
      const { token, payment, booked, digest } = sale;
      const place = await field.placeOf(await field.transfer(token, payTo, payment.payer, booked.atoms - 1n));
      await field.refund(sale, place);
      return { items: [`amount_mismatch ${digest}`], gone: [`refund_due ${digest}`] };
    },
  },
  {
    name: 'a sweep went to another address than is recorded',
    async plant(field) {
      const token = firstToken(field);
      const place = await field.placeOf(await field.transfer(token, payTo, stranger, 9n));
      await field.append(...field.swept(token, vault, 9n, place));
      return { items: [`payee_mismatch ${place.transaction}`] };
    },
  },
  {
    name: 'a sweep moved less than is recorded',
    async plant(field) {
      const token = firstToken(field);
      const place = await field.placeOf(await field.transfer(token, payTo, vault, 9n));
      await field.append(...field.swept(token, vault, 10n, place));
      return { items: [`amount_mismatch ${place.transaction}`] };
    },
  },
  {
    name: 'a sweep is recorded of a token that did not move',
    async plant(field) {
      const token = firstToken(field);
      const other = field.world.chain.tokens[1] ?? token;
      const place = await field.placeOf(await field.transfer(other, payTo, vault, 9n));
      await field.append(...field.swept(token, vault, 9n, place));
      return { items: [`asset_mismatch ${place.transaction}`] };
    },
  },
  {
    name: 'a sweep is recorded that was never sent',
    async plant(field) {
      const place = await field.noPlace();
      await field.append(...field.swept(firstToken(field), vault, 9n, place));
      return { items: [`missing_on_chain ${place.transaction}`] };
    },
  },
  {
    name: 'money in suspense is recorded that never came',
    async plant(field) {
      const [token, place] = [firstToken(field), await field.noPlace()];
      await field.append(...transferRecorded(token, stranger, units(token, 1n), place));
      return { items: [`missing_on_chain ${place.transaction}`] };
    },
  },
];
