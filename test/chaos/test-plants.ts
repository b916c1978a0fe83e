import { type Bug, type BugRow, withEdits } from '../support/planted-copy.ts';
import type { GuardingTest } from '../support/run-test.ts';

/** A bug that random schedules cannot show: it takes a large ledger, a database administrator, or hours. */
export interface TestPlant extends Bug {
  readonly caughtByTest: GuardingTest;
}

interface Row extends BugRow {
  readonly testFile: string;
  readonly testName: string;
}

const rows: readonly Row[] = [
  {
    name: 'call-id-as-idempotency-key',
    file: 'src/calls/store/calls.ts',
    find: `idempotencyKey: row.payment,`,
    replace: `idempotencyKey: '0x' + String(row.call_id).padStart(64, '0'),`,
    testFile: 'test/calls/workers/relay.test.ts',
    testName: 'two payments never share an idempotency key, also when the database gives a call id out again',
  },
  {
    name: 'unpaid-call-delivered-again',
    file: 'migrations/functions/append.sql',
    find: `else case call.status when 'unpaid' then 'pending' else 'ready' end end,`,
    replace: `else 'ready' end,`,
    testFile: 'test/payments/use-cases/confirm.test.ts',
    testName:
      'is not delivered again after the attempt that its runner has, and is as soon as its payment is settled',
  },
  {
    name: 'recovered-payment-delivered-without-a-new-signature',
    file: 'src/jobs/use-cases/redeliver.ts',
    find: `
    (await checkSignature(context, request, decoded, known)) ??`,
    replace: ``,
    also: [
      {
        // otherwise the event's schema refuses it
        file: 'src/jobs/use-cases/redeliver.ts',
        find: `(request.redeliverySignature ?? '')`,
        replace: `(request.redeliverySignature ?? '0x00')`,
      },
    ],
    testFile: 'test/finance/use-cases/recovery/redeliver.test.ts',
    testName:
      'a lost payment is never answered with 402, and is delivered only for a new signature of its payer',
  },
  {
    name: 'last-look-before-earlier-appends',
    file: 'src/jobs/use-cases/answer-refusal.ts',
    find: `if (!isAppended && (await append(context, nothing)).outcome === 'full')`,
    replace: `if (!isAppended && context.lane.state.halt)`,
    testFile: 'test/jobs/use-cases/late-starts.test.ts',
    testName: 'a payment whose start was decided in time and is committed late is never refused meanwhile',
  },
  {
    name: 'all-claims-are-read',
    file: 'src/payments/store/payment-lookup.ts',
    find: `      where claim.key >= asked.lowest and claim.key <= asked.highest`,
    replace: `      where substr(claim.key, 1, 16) = substr(asked.lowest, 1, 16) and claim.key <= asked.highest`,
    testFile: 'test/ledger/store/streams.test.ts',
    testName: 'a payment that leaves its asset open is found without reading other claims',
  },
  {
    name: 'void-because-its-log-was-not-found',
    file: 'src/payments/use-cases/find-settlement.ts',
    find: `return undecided('transfer_not_found');`,
    replace: `return { kind: 'void', reason: 'authorization_used_otherwise' };`,
    testFile: 'test/payments/use-cases/find-settlement.test.ts',
    testName: 'a payment whose nonce is used is not void while a node does not show the log of that use',
  },
  {
    name: 'last-result-of-a-lease-is-kept',
    file: 'migrations/functions/bodies.sql',
    find: `where kept.lease_id <> excluded.lease_id
    and exists`,
    replace: `where exists`,
    testFile: 'test/jobs/http/kept-results.test.ts',
    testName:
      'of completions of one lease that come together the first is kept, and it is the one that the ledger has',
  },
  {
    name: 'payouts-under-way-take-turns',
    file: 'migrations/functions/payouts.sql',
    find: `where status = 'open' and transaction is null and due_at <= clock()`,
    replace: `where status = 'open' and due_at <= clock()`,
    testFile: 'test/chat/use-cases/spend/pay-out-spend.test.ts',
    testName: 'payouts that wait for finality take no turn from new ones, however early they expire',
  },
  {
    name: 'appends-pass-all-rows-before',
    file: 'migrations/functions/batch.sql',
    find: `from lane where lane_id = p_lane order by batch desc limit 1;`,
    replace: `from lane where lane_id = p_lane order by batch + 0 desc limit 1;`,
    also: [
      {
        file: 'migrations/functions/batch.sql',
        find: `where lane_batch.sender_hash = p_sender
    order by batch_no desc limit 1;`,
        replace: `where lane_batch.sender_hash = p_sender
    order by batch_no + 0 desc limit 1;`,
      },
    ],
    testFile: 'test/ledger/store/snapshot.test.ts',
    testName: 'a snapshot that stays open does not make appends read more, however many there are',
  },
  {
    name: 'written-over-a-missing-version',
    file: 'migrations/functions/append_uncontended.sql',
    find: `  if is_stale then return null; end if;`,
    replace: ``,
    testFile: 'test/ledger/store/uncontended.test.ts',
    testName: 'a stream leaves out no version: a command that expects one that is not there is stale',
  },
  {
    name: 'key-admits-after-its-revocation',
    file: 'migrations/functions/chats_uncontended.sql',
    find: `      and api_key.revoked_at is null and`,
    replace: `      and`,
    testFile: 'test/ledger/store/uncontended-chats.test.ts',
    testName:
      'a completion that does not fit its limits or credit, alone or with others of its batch, is not written',
  },
  {
    name: 'cap-counts-one-hold-of-a-batch',
    file: 'migrations/functions/chats_uncontended.sql',
    find: `sum(hold) over (partition by key_id) as of_key`,
    replace: `hold as of_key`,
    testFile: 'test/ledger/store/uncontended-chats.test.ts',
    testName:
      'a completion that does not fit its limits or credit, alone or with others of its batch, is not written',
  },
  {
    name: 'limit-counts-one-request-of-a-batch',
    file: 'migrations/functions/chats_uncontended.sql',
    find: `row_number() over (partition by f[pos] order by n) - 1 as before`,
    replace: `0 as before`,
    testFile: 'test/ledger/store/uncontended-chats.test.ts',
    testName:
      'a completion that does not fit its limits or credit, alone or with others of its batch, is not written',
  },
  {
    name: 'failed-write-is-decided',
    file: 'src/ledger/store/flusher.ts',
    find: `(await connection.append(written))`,
    replace: `(await connection.append(written).catch(() => null))`,
    testFile: 'test/ledger/store/uncontended.test.ts',
    testName: 'an error of the database is not taken for contention: the batch is not decided after it',
  },
  {
    name: 'every-gap-is-taken-for-a-loss',
    file: 'src/ledger/store/flusher.ts',
    find: `return fate === 'lost' || foundSeq < seq ?`,
    replace: `return fate !== undefined || foundSeq < seq ?`,
    testFile: 'test/ledger/store/step-back.test.ts',
    testName:
      'a sender whose kept answer was pruned while it slept continues alone under another name, and no other notices',
  },
  {
    name: 'every-gap-is-taken-for-pruning',
    file: 'src/ledger/store/flusher.ts',
    find: `return fate === 'lost' || foundSeq < seq ?`,
    replace: `return foundSeq < seq ?`,
    testFile: 'test/ledger/store/step-back.test.ts',
    testName:
      'a restore halts every gateway also through a sender that slept, whose answers the restored ledger does not keep',
  },
  {
    name: 'batch-sent-again-under-a-new-number',
    file: 'src/ledger/store/flusher.ts',
    find: `const number = ++batchNo;`,
    replace: `let number = ++batchNo;`,
    also: [
      {
        file: 'src/ledger/store/flusher.ts',
        find: `await connection.pause(`,
        replace: `number = ++batchNo;
          await connection.pause(`,
      },
    ],
    testFile: 'test/ledger/store/uncontended.test.ts',
    testName: 'a batch whose answer was lost is sent again under its number, and is recorded once',
  },
  {
    name: 'migrations-with-a-time-limit',
    file: 'src/ledger/store/migrations.ts',
    find: `{ statement_timeout: '0', idle_in_transaction_session_timeout: '0' }`,
    replace: `{ idle_in_transaction_session_timeout: '0' }`,
    testFile: 'test/ledger/store/migrations.test.ts',
    testName:
      'migrations, functions and grants are one transaction without a limit of time: after a fault in any of them all is as before',
  },
  {
    name: 'quote-without-credit-buys-at-par',
    file: 'src/jobs/workers/top-ups.ts',
    find: `  const creditMicros = creditOf(state.quote, known.payment);`,
    replace: `  const creditMicros = creditOf(state.quote, known.payment) ?? BigInt(atoms);`,
    testFile: 'test/jobs/use-cases/top-ups/top-up-terms.test.ts',
    testName:
      'a quote without credit buys none: a gateway that sells credit refuses its payment before money moves',
  },
  {
    name: 'any-tree-head-is-recorded',
    file: 'migrations/functions/log.sql',
    find: `if p_root is distinct from root_of_edge(new_edge) then`,
    replace: `if p_root is null then`,
    testFile: 'test/audit/use-cases/log/seal.test.ts',
    testName: 'the writer role cannot record a tree head that the events do not have',
  },
];

export const testPlants: readonly TestPlant[] = rows.map((row) => {
  const { testFile: file, testName: name, ...bug } = withEdits(row);
  return { ...bug, caughtByTest: { file, name } };
});
