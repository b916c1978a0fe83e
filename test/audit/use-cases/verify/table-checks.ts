/** What `tollbook verify` compares of one table. Every table of the schema has its entry; a test fails for one that is missing. */
export type TableCheck =
  | {
      /** What its rows follow from. */
      readonly follows: string;
      /** Columns that nothing determines, each with the reason. */
      readonly notCompared?: Readonly<Record<string, string>>;
      /** Why a row that was removed is not named; undefined: it is. */
      readonly removed?: string;
      /** Why a row that was added is not named; undefined: it is. */
      readonly added?: string;
    }
  /** Why nothing of it is compared. */
  | { readonly notFollowing: string };

const byClock = 'a time by the clock, which may be set back';
const inNoEvent = 'no event has it';
const attempts = 'no event has number and times of the attempts';
const shortLived = 'a state of the moment: gateways write it anew all the time';
const ofPeople = 'people and their sign-ins, of which the ledger has ids alone';
const ofConfiguration = 'from the configuration, not from events';
const readModel = { follows: 'the events up to the cursor of the read models' } as const;
const pruned = 'rows are deleted after their time';

function notFollowing(why: string, ...tables: readonly string[]): Record<string, TableCheck> {
  return Object.fromEntries(tables.map((table) => [table, { notFollowing: why }]));
}

export const tableChecks: Readonly<Record<string, TableCheck>> = {
  'tollbook.event': {
    follows:
      'every column is a part of its leaf: checked against all events before it, the log and the checkpoints',
  },
  'tollbook.lane': {
    follows: 'the number of events, and the calls of the outbox',
    notCompared: {
      batch: 'a number of each append',
      at: 'the time of the last append, which may have recorded nothing; never before the last event',
      halt_reason: 'no event has the halts of the ledger',
      halt_known_seq: 'as halt_reason',
      halt_found_seq: 'as halt_reason',
      halted_at: 'as halt_reason',
    },
  },
  'tollbook.lane_counter': {
    follows: 'the events, counted by type: the sum of the rows of a type',
    notCompared: { batch: 'a number of the append that counted' },
  },
  'tollbook.lane_lock': { follows: 'one row for the one lane' },
  'tollbook.claim': {
    follows: 'the events of the payments, refunds, sweeps, spends and triggers that hold them',
  },
  'tollbook.caller_nonce': {
    follows: 'the events of the payments that hold them',
    notCompared: { used_at: byClock },
  },
  'tollbook.call': {
    follows:
      'the events of its payment or trigger: its state, its job, its token, its idempotency key and its claims',
    notCompared: {
      created_at: byClock,
      traceparent: 'only for tracing',
      last_error: "no event has a runner's text",
      last_reason: attempts,
      last_runner: attempts,
      lease_id: shortLived,
      attempt: 'a lease has its effect before its event',
      failures: attempts,
      refusals: attempts,
      due_at: attempts,
      enqueued_at: byClock,
      order_key: ofConfiguration,
      key_limit: ofConfiguration,
      key_slot: ofConfiguration,
      key_turn: ofConfiguration,
      keeps_key: ofConfiguration,
      waits: ofConfiguration,
      key_failures: ofConfiguration,
      call_id: 'of a call that was not enqueued yet: no event names it before. Others are compared',
    },
    removed: 'only of a failed payment: its call is dropped without an event once the payment can never land',
  },
  'tollbook.call_body': {
    follows: 'for each call of the outbox, the hash and the length of its body in the events',
    notCompared: { content_type: inNoEvent, created_at: byClock },
    removed: 'of a call that has ended: deleted after its time',
    added: 'stored before its payment is recorded, and of no effect without a call',
  },
  'tollbook.call_result': {
    follows: 'for each completed call, the hash and the length of its result in the events',
    notCompared: {
      call_id: 'a result that was moved is missing at its place',
      attempt: 'as call_id',
      lease_id: inNoEvent,
      content_type: inNoEvent,
      head: 'its hash is in the event of the completion, and an answer with another one is not repeated',
      created_at: byClock,
    },
    removed: 'deleted after its time',
    added: 'stored before its completion is recorded, and never shown without it',
  },
  'tollbook.deleted_result': {
    notFollowing: 'says when a result was deleted',
  },
  'tollbook.result_upload': {
    notFollowing:
      'parts of results in their own store; the hash of a completed one is compared with its event',
  },
  'tollbook.callback': {
    notFollowing:
      'where clients want to be called, and whether they were; of a URL an event has a part of a hash alone',
  },
  'tollbook.refund_reason': {
    notFollowing:
      'what payers wrote, which is deleted after its time: the hash of a reason that is shown is compared with its event',
  },
  'tollbook.account': {
    follows: 'the events of credit: name, balance, held and used credit',
    notCompared: {
      created_at: byClock,
      recorded_at: byClock,
      disabled_at: 'set before its event is recorded',
      closed_at: byClock,
    },
  },
  'tollbook.chat_hold': {
    follows: 'the completions under way: their account, key and held credit',
    notCompared: {
      process_id: shortLived,
      budget_from: 'of the period that the clock says',
      started_at: 'no event shows that the answer began',
      created_at: byClock,
    },
  },
  'tollbook.credit_request': {
    follows: 'bought credit and its reversal: account, amount and the balance after it',
    notCompared: { created_at: byClock },
    removed: "an operator's idempotency key, which no event has; those of bought credit are named",
    added: "an operator's idempotency key, which no event has; those of bought credit are named",
  },
  'tollbook.recovered_chat': {
    notFollowing:
      'for a day, completions whose cost may still be corrected; what is returned is checked in the events',
  },
  'tollbook.api_key': {
    follows: 'the events that made and revoked it: its account',
    notCompared: {
      hash: inNoEvent,
      name: inNoEvent,
      models: inNoEvent,
      cap: inNoEvent,
      spent: 'what was spent with it is in the completions',
      budget: inNoEvent,
      budget_period: inNoEvent,
      budget_from: 'of the period that the clock says',
      budget_spent: 'as budget_from',
      budget_used: 'as budget_from',
      budget_told: 'as budget_from',
      created_at: byClock,
      expires_at: inNoEvent,
      revoked_at: 'a time by the clock; that it was revoked is compared',
      last_used_at: byClock,
      is_of_user: inNoEvent,
    },
    removed: pruned,
  },
  'tollbook.operator_token': {
    follows: 'the events that made and revoked it: its scopes and accounts',
    notCompared: {
      name: inNoEvent,
      hash: inNoEvent,
      created_at: byClock,
      expires_at: inNoEvent,
      revoked_at: 'a time by the clock; that it was revoked is compared',
    },
    removed: pruned,
    // named as well: one that was made while verify began, or whose process ended before its event; it is to be revoked
  },
  'tollbook.log_tile': { follows: 'the hashes of the events, as far as they are sealed' },
  'tollbook.log_tree': { follows: 'the hashes of the events, and the newest head' },
  'tollbook.log_head': {
    follows: 'the root of the first events, and the note; its signature with --pubkey',
    notCompared: { at: byClock },
    removed: 'old heads that nothing refers to are deleted; the newest one and anchored ones are named',
  },
  'tollbook.log_anchored_head': {
    follows: 'a head of that size',
    removed: 'no event shows that an anchor has a head: the anchor does',
  },
  'tollbook.log_anchor': {
    notFollowing:
      'what an anchor received last: compared with the anchor itself, by gateways and with --checkpoint',
  },
  'tollbook.payment': {
    ...readModel,
    notCompared: {
      last_seq:
        'earlier versions counted events that change nothing of a payment, with some steps and not with others',
    },
  },
  'tollbook.paid_call': readModel,
  'tollbook.completion': readModel,
  'tollbook.account_credit': readModel,
  'tollbook.job_day': readModel,
  'tollbook.payee': readModel,
  'tollbook.usage_day': readModel,
  'tollbook.posting': readModel,
  'tollbook.open_item': readModel,
  'tollbook.balance_day': readModel,
  'tollbook.book_account': readModel,
  'tollbook.book_commodity': readModel,
  'tollbook.book_payee': readModel,
  'tollbook.book_credit': readModel,
  'tollbook.projection': {
    notFollowing: 'the cursor of the read models, whose rows are compared with the events up to it',
  },
  'tollbook.reconciliation': {
    follows: 'the report in it, and the root of its events',
    notCompared: { id: 'a number', at: byClock },
    removed: 'no event shows that a report was stored',
    added: 'a copy of a report is refused, and another one has its own root and figures',
  },
  'tollbook.payout': {
    follows: 'a spend that was earned; its expiry',
    notCompared: {
      status: attempts,
      attempts,
      last_reason: attempts,
      due_at: attempts,
      created_at: byClock,
      transaction: 'recorded once its block is final',
      checks: attempts,
    },
    removed: pruned,
  },
  'tollbook.spend_exposure': {
    follows: 'the spend that its stream accepted: account, contract, nonce and amount',
    notCompared: { status: attempts, created_at: byClock },
    removed: pruned,
  },
  'tollbook.follow_up': {
    follows: 'an event that needs it: its network and its block',
    notCompared: {
      first_search_block: 'found on the chain',
      tries: attempts,
      created_at: byClock,
      due_at: attempts,
      retry_at: attempts,
    },
    removed: 'one that is done is deleted',
  },
  'tollbook.task': {
    notFollowing:
      'messages that wait to be sent, and what rounds have found last: a rate in force and the call of a trigger are in their events',
  },
  'tollbook.ledger_cursor': { notFollowing: 'how far each worker has read' },
  'tollbook.price_window': { notFollowing: 'offers of the configuration; what was paid is in its quote' },
  'tollbook.lane_batch': {
    notFollowing: 'the last answer to each gateway, for an append that is sent again',
  },
  'tollbook.prune_sum': { notFollowing: 'counts of deleted rows until they are recorded' },
  'tollbook.secret': { notFollowing: 'a key' },
  'tollbook.database_identity': { notFollowing: 'which server this is' },
  'tollbook.function_file': { notFollowing: 'hashes of the functions, compared by `tollbook migrate`' },
  'tollbook.migration': { notFollowing: 'which migrations ran' },
  'identity.operator': {
    follows: 'the events that gave and took the role of a name',
    notCompared: { created_at: byClock },
    removed: 'one without a row, or without a role or a user in it, has no rights',
  },
  ...notFollowing(
    shortLived,
    'tollbook.call_progress',
    'tollbook.runner_gone',
    'tollbook.alert',
    'tollbook.alert_sender',
    'tollbook.event_allowance',
    'tollbook.rate_window',
    'tollbook.refused_request',
    'tollbook.process',
    'tollbook.gateway_process',
    'tollbook.worker_process',
    'identity.factor_guess',
  ),
  ...notFollowing(
    ofPeople,
    'tollbook.account_webhook',
    'identity.credential',
    'identity.operator_factor',
    'identity.operator_invitation',
    'identity.operator_recovery_code',
    'identity.operator_session',
    'identity.session',
    'identity.siwe_nonce',
    'identity.user',
    'identity.verification',
    'identity.wallet',
  ),
  ...notFollowing(ofConfiguration, 'tollbook.price_list'),
};
