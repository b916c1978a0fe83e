import type { ViolationKind } from './checks/violation.ts';

/** One exact replacement in a file of the program. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A plausible bug. The harness puts it into a copy of the program and must find it. */
export interface Plant {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** The invariants of which at least one must report it. */
  readonly caughtBy: readonly ViolationKind[];
}

export const plants: readonly Plant[] = [
  {
    name: '402-on-settle-timeout',
    edits: [
      {
        file: 'src/jobs/take-payment.ts',
        find: `return settled.kind === 'unknown' ? pending : await answerOnRecord(context, job, started);`,
        replace: `if (settled.kind === 'unknown' && settled.reason === 'timeout')
      return await quoteJob(context, job, 'payment_invalid', settled.reason);
    return settled.kind === 'unknown' ? pending : await answerOnRecord(context, job, started);`,
      },
    ],
    caughtBy: ['refused_though_paid'],
  },
  {
    name: 'enqueued-before-the-append',
    edits: [
      {
        file: 'src/jobs/settle-payment.ts',
        find: `  const outcome = await askToSettle(context, started);`,
        replace: `  await context.lane.append(
    {
      stream: started.digest,
      events: [{ type: 'enqueued', data: { call_id: started.callId, payment_nonce: started.payment.nonce } }],
      call: { op: 'release', callId: started.callId },
    },
    { urgent: true },
  );
  context.onCallReleased();
  started = { ...started, callId: undefined, version: started.version + 1 };
  const outcome = await askToSettle(context, started);`,
      },
    ],
    caughtBy: ['illegal_transition', 'call_without_transfer'],
  },
  {
    name: 'nonce-released-on-unknown',
    edits: [
      {
        file: 'src/jobs/settlement-outcome.ts',
        find: `if (!settledPayer) return { ...base, events: [unknown] };`,
        replace: `if (!settledPayer && callId !== undefined)
        return { ...base, events: [unknown], call: { op: 'watch', callId } };
      if (!settledPayer) return { ...base, events: [unknown] };`,
      },
    ],
    caughtBy: ['nonce_used_twice'],
  },
  {
    name: 'one-log-proves-two-payments',
    edits: [
      {
        file: 'src/peers/chain/schemes/eip3009/authorization-logs.ts',
        find: `return log.topics[1] === addressWord(from) && log.topics[2] === nonce;`,
        replace: `return log.topics[1] === addressWord(from) && nonce !== undefined;`,
      },
      {
        file: 'src/jobs/settlement-outcome.ts',
        find: `        ? [transferClaim(payment.network, transaction, proof.logIndex, payment.nonce)]`,
        replace: `        ? []`,
      },
    ],
    caughtBy: ['call_without_transfer', 'wrong_evidence'],
  },
  {
    name: 'resolver-and-request-both-enqueue',
    edits: [
      {
        // makes resolver and request meet often
        file: 'src/jobs/take-payment.ts',
        find: `const firstLookMs = 5_000;`,
        replace: `const firstLookMs = 0;`,
      },
      {
        file: 'src/jobs/settlement-outcome.ts',
        find: `      if (!known || isDecided(known, outcome) || story.version === started.version)
        return { kind: 'superseded' };
      return recordOutcome(context, { ...started, version: story.version }, outcome);`,
        replace: `      if (!known || story.version === started.version) return { kind: 'superseded' };
      const { stream, events } = outcomeCommand(started, outcome);
      await context.lane.append({ stream, events }, { urgent: true });
      return outcome;`,
      },
    ],
    caughtBy: ['two_calls_for_one_transfer', 'illegal_transition'],
  },
];
