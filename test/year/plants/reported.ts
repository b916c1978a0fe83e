import { payTo, stranger } from '../chain.ts';
import { hex32Of } from '../../support/synthetic-ledger.ts';
import type { Plant } from './field.ts';

/** What a facilitator reports and the gateway records without asking the chain. */
export const reported: readonly Plant[] = [
  {
    name: 'a facilitator reports a transaction that does not exist',
    async plant(field) {
      const sale = await field.start();
      await field.believe(sale, hex32Of('nowhere'));
      return { items: [`missing_on_chain ${sale.digest}`] };
    },
  },
  {
    name: 'a facilitator reports a transaction that was reverted',
    async plant(field) {
      const sale = await field.start();
      const [token] = field.world.chain.tokens;
      if (!token) return {};
      const transaction = await field.world.chain.send(token, payTo, stranger, 10n ** 30n);
      await field.mine();
      await field.believe(sale, transaction);
      return { items: [`missing_on_chain ${sale.digest}`] };
    },
  },
  {
    name: 'a facilitator reports a transfer of too little',
    async plant(field) {
      const sale = await field.start();
      const { token, booked, payment } = sale;
      await field.believe(sale, await field.transfer(token, payment.payer, payTo, booked.atoms - 1n));
      return { items: [`amount_mismatch ${sale.digest}`] };
    },
  },
  {
    name: 'a facilitator reports a transfer of another token',
    async plant(field) {
      // two tokens of the same decimals, so that the payer has so many atoms of both
      const [token, other] = field.world.chain.tokens;
      if (!token || !other) return {};
      const sale = await field.start({ token });
      const { booked, payment } = sale;
      await field.believe(sale, await field.transfer(other, payment.payer, payTo, booked.atoms));
      return { items: [`asset_mismatch ${sale.digest}`] };
    },
  },
  {
    name: 'a facilitator reports a transfer to somebody else',
    async plant(field) {
      const sale = await field.start();
      const { token, booked, payment } = sale;
      await field.believe(sale, await field.transfer(token, payment.payer, stranger, booked.atoms));
      return { items: [`payee_mismatch ${sale.digest}`] };
    },
  },
  {
    name: 'a facilitator reports one transfer for two payments',
    async plant(field) {
      const first = await field.start();
      const { token, booked, payment } = first;
      const second = await field.start({ token, atoms: booked.atoms, payer: payment.payer });
      await field.pay(first);
      await field.believe(second, await field.transactionOf(first));
      return { items: [`duplicate_claim ${second.digest}`] };
    },
  },
];
