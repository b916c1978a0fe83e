import { network, payTo, stranger } from '../chain.ts';
import type { Plant } from './field.ts';

/** What happens on the chain and is not in the ledger, or the other way round. */
export const onChain: readonly Plant[] = [
  {
    name: 'money came without a payment and was not recorded',
    async plant(field) {
      const [token] = field.world.chain.tokens;
      if (!token) return {};
      return { items: [`on_chain_without_event ${await field.transfer(token, stranger, payTo, 77n)}`] };
    },
  },
  {
    name: 'money left the payee and was not recorded',
    async plant(field) {
      const token = field.world.chain.tokens[1];
      if (!token) return {};
      return { items: [`foreign_use ${await field.transfer(token, payTo, stranger, 5n)}`] };
    },
  },
  {
    name: 'a refund was paid and not recorded',
    async plant(field) {
      const { token, booked, payment } = field.sale(field.due);
      return { items: [`foreign_use ${await field.transfer(token, payTo, payment.payer, booked.atoms)}`] };
    },
  },
  {
    name: 'a payment landed that the ledger has never seen',
    async plant(field) {
      const { payment } = field.unknown();
      await field.world.chain.submit([payment]);
      const { payments } = await field.mine();
      const [landed] = payments.values();
      return { items: [`on_chain_without_event ${landed?.transaction}`] };
    },
  },
  {
    name: 'the chain took back the block of a payment, and the gateway did not see it',
    async plant(field) {
      const sale = await field.start();
      const goBack = await field.world.chain.remember();
      await field.pay(sale);
      await goBack();
      await field.mine();
      return { items: [`missing_on_chain ${sale.digest}`] };
    },
  },
  {
    name: 'a payment is in a block that is not final',
    async plant(field) {
      await field.finish();
      const sale = await field.start();
      await field.pay(sale);
      return { items: [`not_final ${sale.digest}`], isUnfinished: true };
    },
  },
  {
    name: 'the outcome of a payment is unknown',
    async plant(field) {
      const sale = await field.start();
      await field.record(sale, { kind: 'unknown', reason: 'timeout' });
      return { items: [`unknown ${sale.digest}`] };
    },
  },
  {
    name: 'a payment that is recorded as failed has landed',
    async plant(field) {
      const sale = await field.start();
      await field.record(sale, { kind: 'failed', reason: 'facilitator_refused' });
      await field.world.chain.submit([sale.payment]);
      await field.mine();
      return { items: [`on_chain_without_event ${sale.digest}`] };
    },
  },
  {
    name: 'the configuration says other decimals than the contract of a token',
    async plant(field) {
      const [token] = field.world.chain.tokens;
      if (!token) return {};
      const { address: asset, symbol } = token;
      field.accepted.push({ network, asset, symbol, decimals: 8, payTo });
      return { items: [`token_decimals_differ ${asset}`] };
    },
  },
];
