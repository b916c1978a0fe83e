import { operators } from '../world.ts';
import type { Plant } from './field.ts';

/** What is changed in a month that two persons have closed. */
export const closed: readonly Plant[] = [
  {
    name: 'an event of a closed month is edited, and the whole ledger is sealed anew with its own key',
    async plant(field) {
      await field.close();
      await field.editAndSealAnew();
      return { checkpoint: true, changed: ['head'] };
    },
  },
  {
    name: 'an event of a closed month is edited',
    async plant(field) {
      await field.close();
      const { digest, booked } = field.sale(field.delivered);
      const seq = await field.seqOf(digest, 'payment_settled');
      const [from, to] = [booked.atoms, booked.atoms + 1n].map((atoms) => `"amount":"${atoms}"`);
      await field.rewrite(seq, from ?? '', to ?? '');
      const changed = ['head', 'csv', 'parquet', 'beancount', 'hledger', 'summary', 'summary-page'];
      return { fault: seq, items: [`amount_mismatch ${digest}`], checkpoint: true, changed };
    },
  },
  {
    name: 'the person who closed a month is made the one who reviewed it',
    async plant(field) {
      await field.close();
      const [closer, reviewer] = operators;
      const seq = await field.seqOf('period:books', 'operator_period_reviewed');
      await field.rewrite(seq, `"operator":"${reviewer}"`, `"operator":"${closer}"`);
      return { fault: seq, changed: [] };
    },
  },
];
