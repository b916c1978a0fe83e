import { type Edit, withEdits } from '../support/planted-copy.ts';
import { contestedPlants } from './contested-plants.ts';
import { creditPlants } from './credit-plants.ts';
import type { Plant, PlantRow } from './plant.ts';
import { routePlants } from './route-plants.ts';

/** A payment that may still land frees its payer's id for it and its caller nonce. */
const freedAtWatch = (columns: string): Edit => ({
  file: 'migrations/functions/append.sql',
  find: `${columns}\n      where decided.outcome = 'ok' and decided.op = 'remove'`,
  replace: `${columns}\n      where decided.outcome = 'ok' and decided.op in ('watch', 'remove')`,
});
const freedPaymentId = freedAtWatch('binding text)');
const freedNonce = freedAtWatch('nonce_sha256 text)');

const rows: readonly PlantRow[] = [
  {
    name: '402-on-settle-timeout',
    file: 'src/jobs/use-cases/pay-job.ts',
    find: `    case 'unknown':
      return { kind: 'pending', digest, replayed: false };`,
    replace: `    case 'unknown':
      if (settled.reason === 'timeout') return offerRefusal(job, 'payment_invalid', settled.reason);
      return { kind: 'pending', digest, replayed: false };`,
    also: [
      {
        // the last look before a 402 would answer as pending after all
        file: 'src/jobs/use-cases/answer-refusal.ts',
        find: `if (paid && isSignedAnew) {`,
        replace: `if (paid && isSignedAnew && !('reason' in refusal && refusal.reason === 'timeout')) {`,
      },
    ],
    caughtBy: ['refused_though_paid'],
  },
  {
    name: 'started-after-its-end',
    file: 'src/jobs/use-cases/start-payment.ts',
    find: `    endsAt: endOf(context, request, checked),`,
    replace: `    endsAt: checked.landing.kind === 'landed' ? endOf(context, request, checked) : undefined,`,
    caughtBy: ['started_after_its_end', 'refused_though_paid'],
    reachedBy: { kind: 'last_moment', runs: 60 },
  },
  {
    name: 'enqueued-before-the-append',
    file: 'src/payments/use-cases/settle-payment.ts',
    find: `  const outcome = await requestSettlement(context, started, { source }, passedOn);`,
    replace: `  const { payment, call } = started.state;
  if (call.kind !== 'waiting') throw new Error('its call does not wait');
  const { callId } = call;
  await context.lane.append(
    {
      stream: started.digest,
      events: [{ type: 'enqueued', data: { call_id: callId, payment_nonce: payment.nonce } }],
      call: { op: 'release', callId },
    },
    { urgent: true },
  );
  context.onCallReleased();
  started = {
    ...started,
    version: started.version + 1,
    state: { ...started.state, call: { kind: 'with_runner' } },
  };
  const outcome = await requestSettlement(context, started, { source }, passedOn);`,
    caughtBy: ['illegal_transition', 'call_without_transfer'],
  },
  {
    name: 'nonce-released-on-unknown',
    file: 'src/payments/rules/settlement.ts',
    find: `  if (!settledPayer) return record([unknown]);`,
    replace: `  if (!settledPayer) return record([unknown], { call: waiting(state, 'watch') });`,
    also: [freedPaymentId, freedNonce],
    caughtBy: ['nonce_used_twice'],
  },
  {
    name: 'credentials-freed-while-the-payment-may-land',
    ...freedPaymentId,
    also: [freedNonce],
    caughtBy: ['nonce_used_twice', 'payment_id_used_twice'],
    reachedBy: { kind: 'spent_nonce', scenarios: 10 },
  },
  {
    name: 'rejected-while-its-use-is-unknown',
    file: 'src/jobs/use-cases/check-payment.ts',
    find: `return refusal(request, 'payment_use_unknown', { digest });`,
    replace: `return rejected;`,
    also: [
      {
        file: 'src/jobs/use-cases/answer-refusal.ts',
        find: `    case 'unsure':
      return 'payment_use_unknown';`,
        replace: `    case 'unsure':
      return undefined;`,
      },
    ],
    caughtBy: ['refused_though_paid'],
    reachedBy: { kind: 'exact', having: 'outages', runs: 200 },
  },
  {
    name: 'started-though-invalid',
    file: 'src/jobs/use-cases/check-payment.ts',
    find: `return refusal(request, 'payment_use_unknown', { digest });`,
    replace: `return verifiedBy('signature');`,
    caughtBy: ['started_though_invalid'],
    reachedBy: { having: 'siege', runs: 200 },
  },
  {
    name: 'required-believes-the-facilitator',
    file: 'src/payments/use-cases/settle-payment.ts',
    find: `      ? { kind: 'unknown', reason: 'not_on_chain', transaction }`,
    replace: `      ? { kind: 'settled', transaction, proof: undefined }`,
    caughtBy: ['call_without_transfer'],
    reachedBy: { runs: 200 },
  },
  {
    name: 'reorg-not-noticed',
    file: 'src/payments/workers/confirmer.ts',
    find: `        at.hash === settlement.blockHash ||`,
    replace: `        at.hash !== undefined ||`,
    caughtBy: ['call_without_transfer', 'wrong_evidence'],
    reachedBy: { having: 'reorgs', runs: 200 },
  },
  {
    name: 'settled-again-without-a-fence',
    file: 'src/payments/use-cases/resolve-settlement.ts',
    find: `  if (known.status === 'settling') {
    const recorded`,
    replace: `  if (known.status !== 'settling' && known.status !== 'settlement_unknown') {
    const recorded`,
    caughtBy: ['refused_though_paid'],
    reachedBy: { runs: 60 },
  },
  {
    name: 'one-log-proves-two-payments',
    file: 'src/payments/peers/chain/schemes/eip3009/authorization-logs.ts',
    find: `isUse(log) && log.topics[2] === expected.nonce`,
    replace: `isUse(log) && log.topics[2] !== undefined`,
    also: [
      {
        file: 'src/payments/rules/settlement.ts',
        find: `    claims: proof ? [transferOf(payment, transaction, proof.logIndex)] : [],`,
        replace: `    claims: [],`,
      },
    ],
    caughtBy: ['call_without_transfer', 'wrong_evidence'],
  },
  {
    name: 'resolver-and-request-both-enqueue',
    // makes resolver and request meet often
    file: 'src/jobs/use-cases/start-payment.ts',
    find: `const firstLookMs = 5_000;`,
    replace: `const firstLookMs = 0;`,
    also: [
      {
        file: 'src/payments/use-cases/record-settlement.ts',
        find: `      if (current.version === started.version && !isLeaseRefused) return { kind: 'superseded' };
      return recordOutcome(context, current, isLeaseRefused ? { ...outcome, lease: undefined } : outcome);`,
        replace: `      if (current.version === started.version && !isLeaseRefused) return { kind: 'superseded' };
      const decision = decide(started.state, outcome);
      if (decision.kind === 'record')
        await context.lane.append({ stream: started.digest, events: decision.events }, { urgent: true });
      return outcome;`,
      },
    ],
    caughtBy: ['two_calls_for_one_transfer', 'illegal_transition'],
  },
  {
    name: 'due-times-by-the-stamp',
    file: 'migrations/functions/append.sql',
    find: `  stamp := greatest(moment, head.at);`,
    replace: `  stamp := greatest(moment, head.at);
  moment := stamp;`,
    also: [
      {
        file: 'migrations/functions/append_uncontended.sql',
        find: `  stamp := greatest(moment, head.at);`,
        replace: `  stamp := greatest(moment, head.at);
  moment := stamp;`,
      },
      {
        // otherwise such times are pulled back within a minute
        file: 'migrations/functions/due_times.sql',
        find: `clock() + interval '15 minutes' as longest`,
        replace: `clock() + interval '15 years' as longest`,
      },
    ],
    caughtBy: ['call_not_finished', 'settlement_left_open', 'never_answered'],
    reachedBy: { having: 'clocks', runs: 200 },
  },
  {
    name: 'one-client-opens-the-circuit',
    file: 'src/payments/peers/facilitator/circuit-breaker.ts',
    find: `(provokedBy === undefined || areIndependent())`,
    replace: `(provokedBy === undefined || areIndependent() || isOpen === false)`,
    caughtBy: ['sales_stopped'],
    reachedBy: { having: 'siege', runs: 60 },
  },
  {
    name: 'client-addresses-without-a-budget',
    file: 'src/jobs/use-cases/job-request.ts',
    find: `  charge.take(client);\n`,
    replace: ``,
    caughtBy: ['flood_served'],
    reachedBy: { having: 'siege', runs: 60 },
  },
  {
    name: 'runner-token-checked-after-the-body',
    file: 'src/jobs/http/runner-auth.ts',
    find: `app.addHook('onRequest',`,
    replace: `app.addHook('preHandler',`,
    caughtBy: ['body_awaited'],
    reachedBy: { having: 'siege', runs: 60 },
  },
  {
    name: 'lost-payment-offered-again',
    file: 'src/jobs/use-cases/answer-refusal.ts',
    find: `    if (charged) return { kind: 'refused', code: charged };\n`,
    replace: ``,
    also: [
      {
        // a quote that authenticates itself is known though the ledger lost it
        file: 'src/jobs/use-cases/check-payment.ts',
        find: `        ? verifiedBy('chain', { name: undefined }, landing)`,
        replace: `        ? rejected`,
      },
    ],
    caughtBy: ['refused_though_paid'],
    reachedBy: { having: 'loss', runs: 200 },
  },
  {
    name: 'quote-binding-not-checked',
    file: 'src/jobs/use-cases/match-quote.ts',
    find: `  if (binding.kind === 'broken') return rejectedPayment(job, { ...named, reason: binding.reason });\n`,
    replace: ``,
    caughtBy: ['binding_broken'],
    reachedBy: { kind: 'bound_rivals', scenarios: 10 },
  },
  {
    name: 'lost-appends-ignored',
    file: 'src/ledger/store/flusher.ts',
    find: `appendStatement(laneId, flusherId, number, acknowledged.batchNo, commands)`,
    replace: `appendStatement(laneId, flusherId, number, 0, commands)`,
    also: [
      {
        file: 'src/ledger/store/flusher.ts',
        find: `uncontendedStatement(laneId, flusherId, number, acknowledged.batchNo, commands)`,
        replace: `uncontendedStatement(laneId, flusherId, number, 0, commands)`,
      },
      {
        file: 'src/ledger/store/flusher.ts',
        find: `if (answer.seq < acknowledged.seq)`,
        replace: `if (answer.seq < 0)`,
      },
    ],
    caughtBy: ['loss_not_noticed', 'charged_after_halt', 'transfer_without_call', 'wrong_work'],
    reachedBy: { having: 'loss', runs: 60 },
  },
  {
    name: 'halt-not-shared',
    file: 'migrations/functions/batch.sql',
    find: `if head.halt_reason is not null and is_recovery is not true then`,
    replace: `if false then`,
    caughtBy: ['loss_not_noticed', 'charged_after_halt', 'transfer_without_call', 'wrong_work'],
    reachedBy: { having: 'loss', runs: 60 },
  },
  ...contestedPlants,
  ...creditPlants,
  ...routePlants,
];

export const plants: readonly Plant[] = rows.map(withEdits);
