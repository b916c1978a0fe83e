import type { Mutation } from './mutation.ts';

/** Of src/jobs to src/workers. */
export const fromJobsToWorkers: readonly Mutation[] = [
  {
    name: 'triggered-call-needs-a-payment',
    edits: [
      {
        file: 'src/calls/use-cases/requeue-call.ts',
        find: `if (isTriggeredStream(stream))
    return { kind: 'possible', stream, version, events: [{ type: 'operator_requeued', data }] };`,
        replace: '',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/jobs/use-cases/triggers/trigger-call.test.ts',
      name: 'becomes a dead letter without a refund where its runner refuses it, and can be requeued and given up',
    },
  },
  {
    name: 'published-anchor-is-not-scheduled',
    edits: [
      {
        file: 'src/audit/use-cases/log/anchors.ts',
        find: 'await scheduleAnchor(pool, signer.name, anchor.name, 0);',
        replace: '',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/audit/use-cases/log/anchors.test.ts',
      name: 'a gateway that stops seals the last events and publishes the checkpoint before the interval ends',
    },
  },
  {
    name: 'resolved-by-operator-is-not-counted',
    edits: [
      {
        file: 'src/ledger/metrics/settlement-outcomes.ts',
        find: `settlement_reorged: 'reorged',
  operator_settlement_resolved: 'resolved_by_operator',`,
        replace: `settlement_reorged: 'reorged',`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/app/http/metrics.test.ts',
      name: 'a scrape with the token shows requests by route, settlements, appends, peers and the process, and names no wallet or payment',
    },
  },
  {
    name: 'one-item-of-a-form-is-left-out',
    edits: [
      {
        file: 'src/web/pages/jobs/form-values.ts',
        find: `if (lines.length === 0) return isRequired ? '[]' : undefined;`,
        replace: `if (lines.length === 1) return isRequired ? '[]' : undefined;`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/web/pages/job-form.test.ts',
      name: 'is left out where nothing was typed, and an object that is needed stays',
    },
  },
  {
    name: 'provider-has-no-label',
    edits: [
      {
        file: 'src/web/pages/sign-in/ways.ts',
        find: `Continue with \${providerLabel(name)}`,
        replace: `Continue with \${name}`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/web/pages/providers.test.ts',
      name: 'the button of a provider names it as people do where it is well known, else as the operator does',
    },
  },
  {
    name: 'no-ipv6-address-is-public',
    edits: [
      {
        file: 'src/base/peers/http/public-address.ts',
        find: `publicIpv6.addSubnet('2000::', 3, 'ipv6');`,
        replace: '',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/base/peers/http/public-address.test.ts',
      name: 'the address 2606:2800:21f:cb07:6820:80da:af6b:8b2c is of the public internet: true',
    },
  },
  {
    name: 'reason-of-a-close-is-lost',
    edits: [
      {
        file: 'src/finance/use-cases/periods/close-period.ts',
        find: '...(despite !== undefined && { despite }),',
        replace: '...(despite === undefined && { despite }),',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/finance/use-cases/periods/periods.test.ts',
      name: 'open breaks are closed with a reason alone, and all breaks explained without one',
    },
  },
  {
    name: 'quote-expires-before-it-is-issued',
    edits: [
      {
        file: 'src/app/pricing/pricing-engine.ts',
        find: 'const times = { issuedAt, expiresAt: issuedAt + quoteTtlSecs };',
        replace: 'const times = { issuedAt, expiresAt: issuedAt - quoteTtlSecs };',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/app/pricing/pricing-server.test.ts',
      name: 'a client of another implementation gets a quote that the operator signed, without a word of x402',
    },
  },
  {
    name: 'failed-completion-is-not-counted',
    edits: [
      {
        file: 'src/audit/use-cases/projections/usage-model.ts',
        find: `if (end?.type === 'chat_failed') return { ...nothing, failed: 1n };`,
        replace: `if (end?.type === 'chat_failed') return { ...nothing };`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/audit/use-cases/projections/project.test.ts',
      name: 'the read models are the fold of the ledger, step by step and rebuilt, for any order of events and any length of steps',
    },
  },
  {
    name: 'scan-state-is-not-kept',
    edits: [
      {
        file: 'src/finance/use-cases/reconcile/scan-state.ts',
        find: `await appendFile(file, \`\${canonicalJson(line)}\\n\`);`,
        replace: '',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/finance/use-cases/reconcile/scan-transfers.test.ts',
      name: 'continues where it stopped, and finds the same',
    },
  },
  {
    name: 'lost-payments-are-not-recorded',
    edits: [
      {
        file: 'src/finance/use-cases/recovery/recover.ts',
        find: '((await recordLostPayment(lane, payment, generation)) ? recorded : repeated).push(payment);',
        replace: ';',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/finance/use-cases/recovery/recover.test.ts',
      name: 'a payment that a restored database has lost is found on the chain and recorded once',
    },
  },
  {
    name: 'other-transfer-holds-an-unexplained-one',
    edits: [
      {
        file: 'src/finance/use-cases/refunds/record-unexplained-transfer.ts',
        find: 'holder === transferStream({ network, transaction, log_index: transfer.logIndex })',
        replace: 'holder !== transferStream({ network, transaction, log_index: transfer.logIndex })',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/finance/use-cases/refunds/transfers.test.ts',
      name: 'is not a payment, sweep or refund: each transfer counts once',
    },
  },
  {
    name: 'timeout-above-the-timer-limit',
    edits: [
      {
        file: 'src/runner/job.ts',
        find: `requireWhole('timeoutMs', timeoutMs, 1, 2 ** 31 - 1);`,
        replace: `requireWhole('timeoutMs', timeoutMs, 1, 2 ** 31 + 1);`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/runner/handler.test.ts',
      name: 'with a time limit out of range throws a TypeError',
    },
  },
  {
    name: 'secret-that-is-no-text-is-taken',
    edits: [
      {
        file: 'src/runner/runner.ts',
        find: `if (typeof secret !== 'string' || secret === '') throw new TypeError('the secret is empty');`,
        replace: `if (typeof secret === 'string' || secret === '') throw new TypeError('the secret is empty');`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/runner/handler.test.ts',
      name: 'receives all metadata of a call, and its body unchanged',
    },
  },
  {
    name: 'outage-is-a-second-longer',
    edits: [
      {
        file: 'src/base/runtime/outages.ts',
        find: 'return { away_secs: Math.ceil((lastMs - beganMs) / 1_000), left_out_lines: leftOut };',
        replace: 'return { away_secs: Math.ceil((lastMs - beganMs) / 999), left_out_lines: leftOut };',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/base/runtime/outages.test.ts',
      name: 'the failures of one outage are one line, and its end says how long it was and how many lines were left out',
    },
  },
  {
    name: 'error-of-a-lost-spend-is-not-logged',
    edits: [
      {
        file: 'src/chat/use-cases/spend/authorize-spend.ts',
        find: 'return { kind: answer.kind, cause: answer.cause, err: answer.error };',
        replace: 'return { kind: answer.kind, cause: answer.cause };',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/chat/use-cases/spend/spend-refusals.test.ts',
      name: 'the log names the request whose spend did not land, with the words of the node',
    },
  },
  {
    name: 'append-after-a-release',
    edits: [
      {
        file: 'src/chat/use-cases/spend/spend.ts',
        find: 'if (isReleased) return false;',
        replace: '',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/chat/use-cases/spend/record-spend.test.ts',
      name: 'a spend that its own gateway has released is not earned: nothing follows its release',
    },
  },
  {
    name: 'database-error-is-no-answer',
    edits: [
      {
        file: 'src/ledger/store/database-identity.ts',
        find: 'if (error instanceof pg.DatabaseError && !isDatabaseLoss(error)) return undefined;',
        replace: '',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/ledger/store/database-identity.test.ts',
      name: 'where a provider keeps the system identifier of its server to itself, a database is known by the rest',
    },
  },
  {
    name: 'rate-is-valid-for-longer',
    edits: [
      {
        file: 'src/payments/store/rate-rounds.ts',
        find: 'validUntilSecs: valid_until,',
        replace: 'validUntilSecs: valid_until && (valid_until * 1_000) / 999,',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/jobs/use-cases/rates.test.ts',
      name: 'a rate ends by the clock of the database, whatever the clock of the machine does',
    },
  },
  {
    name: 'top-up-takes-more-than-the-balance',
    edits: [
      {
        file: 'src/jobs/use-cases/top-ups/top-up.ts',
        find: 'const taken = balance < micros ? balance : micros;',
        replace: 'const taken = balance >= micros ? balance : micros;',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/jobs/use-cases/top-ups/top-up-reversal.test.ts',
      name: 'credit whose payment did not last goes back once: what is left of it where some was spent',
    },
  },
  {
    name: 'numbers-have-the-wrong-type-in-traces',
    edits: [
      {
        file: 'src/base/traces/otlp-json.ts',
        find: 'return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };',
        replace:
          'return !Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/base/traces/otlp-json.test.ts',
      name: 'an attribute is sent in the type that OTLP has for it: whole numbers as text, which loses no digit, others as a double',
    },
  },
  {
    name: 'logs-fire-only-when-stopping',
    edits: [
      {
        file: 'src/jobs/use-cases/triggers/follow-chain.ts',
        find: `if (isStopping()) return 'stopped';`,
        replace: `if (!isStopping()) return 'stopped';`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/jobs/use-cases/triggers/follow-chain.test.ts',
      name: 'each event after the first sight fires once and in order, when its block is final, with what the event says',
    },
  },
  {
    name: 'verifier-leaves-its-thread',
    edits: [{ file: 'src/audit/use-cases/verify/verify-file.ts', find: 'await worker.stop();', replace: '' }],
    caughtBy: {
      tier: 'tests',
      file: 'test/audit/use-cases/verify/verify-file.test.ts',
      name: 'verifying what cannot be read fails and leaves no thread behind, which would keep its process from ending',
    },
  },
  {
    name: 'uncovered-events-begin-too-early',
    edits: [
      {
        file: 'src/audit/use-cases/verify/verify.ts',
        find: `: \`\${events - covered} events are not yet covered by a checkpoint that holds: events \${covered + 1} to \${events}\`;`,
        replace: `: \`\${events - covered} events are not yet covered by a checkpoint that holds: events \${covered - 1} to \${events}\`;`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/audit/use-cases/verify/tampering.test.ts',
      name: 'from the shell: an export in pieces, verified offline, exit 0, 1 or 2',
    },
  },
  {
    name: 'alerter-never-pauses',
    edits: [
      {
        file: 'src/jobs/workers/alerter.ts',
        find: 'return isMore.includes(true);',
        replace: 'return isMore.includes(false);',
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/app/workers/idle.test.ts',
      name: 'the workers of a gateway that has nothing to do pause: its database gets fewer than 60 transactions a second',
    },
  },
  {
    name: 'callback-of-an-open-call-says-completed',
    edits: [
      {
        file: 'src/calls/rules/callback.ts',
        find: `if (payment.call?.status === 'completed') return`,
        replace: `if (payment.call?.status !== 'completed') return`,
      },
    ],
    caughtBy: {
      tier: 'tests',
      file: 'test/calls/rules/callback.test.ts',
      name: 'a message says what ended, and has neither the result nor the payer',
    },
  },
];
