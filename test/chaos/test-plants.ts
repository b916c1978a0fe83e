import type { Bug } from '../support/planted-copy.ts';
import type { GuardingTest } from '../support/run-test.ts';

/** A bug that random schedules cannot show: it takes a large ledger, a database administrator, or hours. */
export interface TestPlant extends Bug {
  readonly caughtByTest: GuardingTest;
}

export const testPlants: readonly TestPlant[] = [
  {
    name: 'call-id-as-idempotency-key',
    edits: [
      {
        file: 'src/calls/store/calls.ts',
        find: `idempotencyKey: row.payment,`,
        replace: `idempotencyKey: '0x' + String(row.call_id).padStart(64, '0'),`,
      },
    ],
    caughtByTest: {
      file: 'test/calls/workers/relay.test.ts',
      name: 'two payments never share an idempotency key, also when the database gives a call id out again',
    },
  },
  {
    name: 'last-look-before-earlier-appends',
    edits: [
      {
        file: 'src/jobs/use-cases/answer-refusal.ts',
        find: `if (!isAppended && (await append(context, nothing)).outcome === 'full')`,
        replace: `if (!isAppended && context.lane.state.halt)`,
      },
    ],
    caughtByTest: {
      file: 'test/jobs/use-cases/late-starts.test.ts',
      name: 'a payment whose start was decided in time and is committed late is never refused meanwhile',
    },
  },
  {
    name: 'all-claims-are-read',
    edits: [
      {
        file: 'src/payments/store/payment-lookup.ts',
        find: `      where claim.key >= asked.lowest and claim.key <= asked.highest`,
        replace: `      where substr(claim.key, 1, 16) = substr(asked.lowest, 1, 16) and claim.key <= asked.highest`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/streams.test.ts',
      name: 'a payment that leaves its asset open is found without reading other claims',
    },
  },
  {
    name: 'void-because-its-log-was-not-found',
    edits: [
      {
        file: 'src/payments/use-cases/find-settlement.ts',
        find: `return undecided('transfer_not_found');`,
        replace: `return { kind: 'void', reason: 'authorization_used_otherwise' };`,
      },
    ],
    caughtByTest: {
      file: 'test/payments/use-cases/find-settlement.test.ts',
      name: 'a payment whose nonce is used is not void while a node does not show the log of that use',
    },
  },
  {
    name: 'last-result-of-a-lease-is-kept',
    edits: [
      {
        file: 'migrations/functions/bodies.sql',
        find: `where kept.lease_id <> excluded.lease_id
    and exists`,
        replace: `where exists`,
      },
    ],
    caughtByTest: {
      file: 'test/jobs/http/kept-results.test.ts',
      name: 'of completions of one lease that come together the first is kept, and it is the one that the ledger has',
    },
  },
  {
    name: 'payouts-under-way-take-turns',
    edits: [
      {
        file: 'migrations/functions/payouts.sql',
        find: `where status = 'open' and transaction is null and due_at <= clock()`,
        replace: `where status = 'open' and due_at <= clock()`,
      },
    ],
    caughtByTest: {
      file: 'test/chat/use-cases/spend/pay-out-spend.test.ts',
      name: 'payouts that wait for finality take no turn from new ones, however early they expire',
    },
  },
  {
    name: 'appends-pass-all-rows-before',
    edits: [
      {
        file: 'migrations/functions/batch.sql',
        find: `from lane where lane_id = p_lane order by batch desc limit 1;`,
        replace: `from lane where lane_id = p_lane order by batch + 0 desc limit 1;`,
      },
      {
        file: 'migrations/functions/batch.sql',
        find: `where lane_batch.sender_hash = p_sender
    order by batch_no desc limit 1;`,
        replace: `where lane_batch.sender_hash = p_sender
    order by batch_no + 0 desc limit 1;`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/snapshot.test.ts',
      name: 'a snapshot that stays open does not make appends read more, however many there are',
    },
  },
  {
    name: 'written-over-a-missing-version',
    edits: [
      {
        file: 'migrations/functions/append_uncontended.sql',
        find: `  if is_stale then return null; end if;`,
        replace: ``,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/uncontended.test.ts',
      name: 'a stream leaves out no version: a command that expects one that is not there is stale',
    },
  },
  {
    name: 'key-admits-after-its-revocation',
    edits: [
      {
        file: 'migrations/functions/chats_uncontended.sql',
        find: `      and api_key.revoked_at is null and`,
        replace: `      and`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/uncontended-chats.test.ts',
      name: 'a completion that does not fit its limits or credit, alone or with others of its batch, is not written',
    },
  },
  {
    name: 'cap-counts-one-hold-of-a-batch',
    edits: [
      {
        file: 'migrations/functions/chats_uncontended.sql',
        find: `sum(f[5]::bigint) over (partition by f[4]) as of_key`,
        replace: `f[5]::bigint as of_key`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/uncontended-chats.test.ts',
      name: 'a completion that does not fit its limits or credit, alone or with others of its batch, is not written',
    },
  },
  {
    name: 'limit-counts-one-request-of-a-batch',
    edits: [
      {
        file: 'migrations/functions/chats_uncontended.sql',
        find: `row_number() over (partition by f[pos] order by n) - 1 as before`,
        replace: `0 as before`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/uncontended-chats.test.ts',
      name: 'a completion that does not fit its limits or credit, alone or with others of its batch, is not written',
    },
  },
  {
    name: 'failed-write-is-decided',
    edits: [
      {
        file: 'src/ledger/store/flusher.ts',
        find: `(await connection.append(written))`,
        replace: `(await connection.append(written).catch(() => null))`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/uncontended.test.ts',
      name: 'an error of the database is not taken for contention: the batch is not decided after it',
    },
  },
  {
    name: 'every-gap-is-taken-for-a-loss',
    edits: [
      {
        file: 'src/ledger/store/flusher.ts',
        find: `return fate === 'lost' || foundSeq < seq ?`,
        replace: `return fate !== undefined || foundSeq < seq ?`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/step-back.test.ts',
      name: 'a sender whose kept answer was pruned while it slept continues alone under another name, and no other notices',
    },
  },
  {
    name: 'every-gap-is-taken-for-pruning',
    edits: [
      {
        file: 'src/ledger/store/flusher.ts',
        find: `return fate === 'lost' || foundSeq < seq ?`,
        replace: `return foundSeq < seq ?`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/step-back.test.ts',
      name: 'a restore halts every gateway also through a sender that slept, whose answers the restored ledger does not keep',
    },
  },
  {
    name: 'batch-sent-again-under-a-new-number',
    edits: [
      {
        file: 'src/ledger/store/flusher.ts',
        find: `const number = ++batchNo;`,
        replace: `let number = ++batchNo;`,
      },
      {
        file: 'src/ledger/store/flusher.ts',
        find: `await connection.pause(`,
        replace: `number = ++batchNo;
          await connection.pause(`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/uncontended.test.ts',
      name: 'a batch whose answer was lost is sent again under its number, and is recorded once',
    },
  },
  {
    name: 'migrations-with-a-time-limit',
    edits: [
      {
        file: 'src/ledger/store/migrations.ts',
        find: `{ statement_timeout: '0', idle_in_transaction_session_timeout: '0' }`,
        replace: `{ idle_in_transaction_session_timeout: '0' }`,
      },
    ],
    caughtByTest: {
      file: 'test/ledger/store/migrations.test.ts',
      name: 'each migration is committed by itself and has no limit of time, and a run after a failed one continues there',
    },
  },
  {
    name: 'quote-without-credit-buys-at-par',
    edits: [
      {
        file: 'src/jobs/workers/top-ups.ts',
        find: `  const creditMicros = creditOf(state.quote, known.payment);`,
        replace: `  const creditMicros = creditOf(state.quote, known.payment) ?? BigInt(atoms);`,
      },
    ],
    caughtByTest: {
      file: 'test/jobs/use-cases/top-ups/top-up-terms.test.ts',
      name: 'a quote without credit buys none: a gateway that sells credit refuses its payment before money moves',
    },
  },
  {
    name: 'any-tree-head-is-recorded',
    edits: [
      {
        file: 'migrations/functions/log.sql',
        find: `if p_root is distinct from root_of_edge(new_edge) then`,
        replace: `if p_root is null then`,
      },
    ],
    caughtByTest: {
      file: 'test/audit/use-cases/log/seal.test.ts',
      name: 'the writer role cannot record a tree head that the events do not have',
    },
  },
];
