import type { PlantRow } from './plant.ts';

/** Bugs of credit and of spends on the chain. */
export const creditPlants: readonly PlantRow[] = [
  {
    name: 'top-up-credited-by-each-attempt',
    file: 'src/jobs/use-cases/top-ups/top-up.ts',
    find: `credit: { op: 'top_up', accountId, amountMicros, requestId: topUpId(paid.call_id) },`,
    replace: `credit: { op: 'top_up', accountId, amountMicros, requestId: topUpId(paid.call_id) + Date.now() },`,
    caughtBy: ['credited_twice'],
    reachedBy: { kind: 'credit_buyer', runs: 40 },
  },
  {
    name: 'hold-charged-before-its-answer-began',
    file: 'src/chat/use-cases/recover-chats.ts',
    find: `await recover(context, hold, silentSecs);`,
    replace: `await recover(context, { ...hold, isStarted: true }, silentSecs);`,
    caughtBy: ['charged_though_refused'],
    reachedBy: { kind: 'credit_rivals', runs: 40 },
  },
  {
    name: 'answer-passed-on-before-its-hold-is-marked',
    file: 'src/chat/use-cases/complete-chat.ts',
    find: `if (isHeld && !(await startHold(context, chat))) {`,
    replace: `if (isHeld && chat.holdMicros < 0n && !(await startHold(context, chat))) {`,
    caughtBy: ['answer_not_charged'],
    reachedBy: { kind: 'credit_rivals', runs: 40 },
  },
  {
    name: 'captured-credit-is-also-given-back',
    file: 'migrations/functions/chats_uncontended.sql',
    find: `balance = balance + each.released, used`,
    replace: `balance = balance + each.released + each.captured, used`,
    caughtBy: ['credit_wrong'],
    reachedBy: { kind: 'credit_buyer', runs: 40 },
  },
  {
    name: 'spend-freed-though-it-may-land',
    file: 'src/chat/use-cases/spend/record-spend.ts',
    find: `const release = isPublic
    ?`,
    replace: `const release = isPublic && reason === 'process_lost'
    ?`,
    caughtBy: ['refused_though_paid'],
    reachedBy: { having: 'credit', runs: 40 },
  },
  {
    name: 'payout-given-up-while-the-chain-is-away',
    file: 'src/chat/use-cases/spend/pay-out-spend.ts',
    find: `if (found.kind === 'unavailable') return unavailable;`,
    replace: `if (found.kind === 'unavailable') return failOrRetry(true, 'chain_unavailable');`,
    caughtBy: ['payout_wrong'],
    reachedBy: { kind: 'spender', runs: 40 },
  },
  {
    name: 'spend-of-a-client-that-left-is-earned',
    file: 'src/chat/peers/upstream/exchange.ts',
    find: `this.stop(this.#controller ? 'aborted' : 'not_sent', 'Aborted by the caller');`,
    replace: `this.stop('aborted', 'Aborted by the caller');`,
    caughtBy: ['charged_though_refused'],
    reachedBy: { kind: 'spender', runs: 40 },
  },
];
