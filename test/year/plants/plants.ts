import { claimKey } from '../../../src/ledger/store/claim-key.ts';
import { paymentClaim } from '../../../src/payments/store/claims.ts';
import { payTo, stranger } from '../chain.ts';
import type { Plant } from './field.ts';

/**
 * One break for each check of a month-end. Which breaks there are, and how each check classifies them, is tested where the check is: the
 * classes of a reconciliation in `test/finance/rules/reconcile/`, the faults of events in `test/audit/rules/`, wrong rows in
 * `test/audit/use-cases/verify/`, closed periods in `test/finance/use-cases/periods/`.
 */
export const plants: readonly Plant[] = [
  {
    name: 'money came without a payment and was not recorded',
    async plant(field) {
      const [token] = field.world.chain.tokens;
      if (!token) return {};
      return { items: [`on_chain_without_event ${await field.transfer(token, stranger, payTo, 77n)}`] };
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
    name: 'a facilitator reports a transfer of too little, and the gateway records it without asking the chain',
    async plant(field) {
      const sale = await field.start();
      const { token, booked, payment } = sale;
      await field.believe(sale, await field.transfer(token, payment.payer, payTo, booked.atoms - 1n));
      return { items: [`amount_mismatch ${sale.digest}`] };
    },
  },
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
    name: 'the amount of a settlement is edited',
    async plant(field) {
      const { digest, booked } = field.sale(field.delivered);
      const fault = await field.seqOf(digest, 'payment_settled');
      await field.rewrite(fault, `"amount":"${booked.atoms}"`, `"amount":"${booked.atoms + 1n}"`);
      return {
        fault,
        items: [`amount_mismatch ${digest}`],
        rows: ['payment', 'posting', 'posting', 'open_item'],
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
      return { fault, refused: 'ledger_too_short', checkpoint: true };
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
    name: 'the claim of a payment is deleted, so that the payment could be used again',
    async plant(field) {
      const { payment, digest } = field.sale(field.delivered);
      const key = claimKey(paymentClaim(payment, ''));
      await field.world.ledger.asInsider('delete from tollbook.claim where key = $1', [key]);
      const named = `the row of kind payment, stream ${digest}, key ${key.toString('hex')} is missing`;
      return { rows: ['claim'], named: [named] };
    },
  },
  {
    name: 'an event of a closed month is edited, and the whole ledger is sealed anew with its own key',
    async plant(field) {
      await field.close();
      await field.editAndSealAnew();
      // only who kept a checkpoint can tell
      return { checkpoint: true, changed: ['head'] };
    },
  },
];
