import type { PlantRow } from './plant.ts';

/** Bugs of refunds, of payments that share a transaction, and of payments whose nonce is used by others than the gateway. */
export const contestedPlants: readonly PlantRow[] = [
  {
    name: 'refund-started-before-its-payment-is-final',
    file: 'src/finance/use-cases/refunds/send-refund.ts',
    find: `  if (early)\n`,
    replace: `  if (early && early.code !== 'not_final')\n`,
    caughtBy: ['refunded_too_early', 'refunded_though_unpaid'],
    reachedBy: { kind: 'reluctant', scenarios: 16 },
  },
  {
    name: 'refund-started-whatever-was-recorded-since',
    file: 'src/finance/use-cases/refunds/send-refund.ts',
    find: `    stream: of.quoteDigest,
    expect: version,
    events: granted.events,`,
    replace: `    stream: of.quoteDigest,
    events: granted.events,`,
    also: [
      {
        // makes the operators meet often
        file: 'src/finance/use-cases/refunds/make-batch.ts',
        find: `    const started = await startDue(`,
        replace: `    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const started = await startDue(`,
      },
    ],
    caughtBy: ['illegal_transition', 'delivered_and_refunded'],
    reachedBy: { kind: 'reluctant', scenarios: 16, runs: 40 },
  },
  {
    name: 'refused-payment-that-landed-is-not-recorded',
    file: 'src/jobs/use-cases/answer-refusal.ts',
    find: `  const { outcome } = await context.lane.append(command, { urgent: true });
  if (outcome !== 'ok') return 'payment_unrecorded';`,
    replace: `  if (command.events.length === 0) return 'payment_unrecorded';`,
    caughtBy: ['transfer_without_call'],
    reachedBy: { kind: 'taken_quote', scenarios: 12 },
  },
  {
    name: 'failed-payment-is-not-looked-up-again',
    file: 'src/payments/use-cases/resolve-settlement.ts',
    find: `  if (!chain) return 'not_landed';`,
    replace: `  if (chain !== null) return 'not_landed';`,
    caughtBy: ['refused_though_paid'],
    reachedBy: { kind: 'long_landing', scenarios: 16, runs: 40 },
  },
  {
    name: 'permits-of-one-transaction-are-not-told-apart',
    file: 'src/payments/peers/chain/schemes/permit2/permits.ts',
    find: `  const transfer = transfers[permits.findIndex((one) => one.nonce === nonce && one.most === most)];`,
    replace: `  const at = permits.findIndex((one) => one.nonce === nonce && one.most === most);
  const transfer = transfers[Math.min(0, at)];`,
    also: [
      {
        file: 'src/payments/rules/settlement.ts',
        find: `    claims: proof ? [transferOf(payment, transaction, proof.logIndex)] : [],`,
        replace: `    claims: [],`,
      },
    ],
    caughtBy: ['wrong_evidence'],
    reachedBy: { kind: 'one_transaction', scenarios: 12 },
  },
  {
    name: 'permit-in-a-batch-is-not-read',
    file: 'src/payments/peers/chain/schemes/permit2/permits.ts',
    find: `if (at % 2 !== 0 || !isFound) continue;`,
    replace: `if (at !== 10 || !isFound) continue;`,
    caughtBy: ['transfer_without_call', 'refused_though_paid', 'never_answered', 'settlement_left_open'],
    reachedBy: { kind: 'one_transaction', scenarios: 12 },
  },
];
