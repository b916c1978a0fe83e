-- What auditors read in SQL (docs/finance/audit.md). A view gives no rights: its reader needs that of each table (security_invoker),
-- and the role of readers has none to secrets and to what clients sent and got.

comment on schema audit is 'Views for people: docs/finance/audit.md explains them.';

-- jsonb has no place for the character U+0000 and for half of a surrogate pair, which a JSON text may name by escapes. Without its escaped
-- backslashes and its whole pairs, a text that still has one is not readable.
create or replace function audit.is_readable(p_text text) returns boolean language sql immutable parallel safe as $$
  select strpos(p_text, '\u') = 0 or regexp_replace(replace(p_text, '\\', '--'),
    '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g') !~ '\\u(?:0000|[dD][89a-fA-F])'
$$;

-- An event's data; of a text that jsonb refuses, {"unreadable": the text}.
create or replace function audit.json_of(p_text text) returns jsonb language sql stable parallel safe as $$
  select case when audit.is_readable(p_text) then p_text::jsonb else jsonb_build_object('unreadable', p_text) end
$$;

-- Atoms as a decimal number, exactly.
create or replace function audit.tokens(p_atoms numeric, p_decimals int) returns numeric language sql immutable parallel safe as $$
  select p_atoms * ('1e-' || p_decimals)::numeric
$$;
comment on function audit.tokens is 'An amount in atoms as a decimal number of tokens, exactly.';

-- A time of an event's data, in Unix seconds; null of one that no clock shows, as a node may report it.
create or replace function audit.time_of(p_secs bigint) returns timestamptz language sql immutable parallel safe as $$
  select case when p_secs between 0 and 253402300799 then to_timestamp(p_secs) end
$$;

create or replace view audit.event with (security_invoker) as
select seq, at, tollbook.stream_name(stream) as stream, version, type, audit.json_of(data) as data
from tollbook.event where lane_id = 1;
comment on view audit.event is 'Every event. Narrow it by seq or at, which have indexes; for one stream ask audit.events_of.';
comment on column audit.event.seq is 'Its number in the ledger: from 1, without gaps.';
comment on column audit.event.at is 'When it was recorded, by the database''s clock. It never goes back.';
comment on column audit.event.stream is 'What it is about: the digest of a quote (0x and 64 digits), or another name such as account:7.';
comment on column audit.event.version is 'Its number in its stream: from 1, without gaps.';
comment on column audit.event.type is 'What has happened.';
comment on column audit.event.data is 'The facts. {"unreadable": TEXT} where jsonb cannot hold them: an escaped U+0000 or half of a surrogate pair.';

-- In SQL, so that it becomes a part of the statement that asks it, and finds the events by the index on (stream, version).
create or replace function audit.events_of(p_stream text) returns setof audit.event language sql stable parallel safe as $$
  select seq, at, tollbook.stream_name(stream), version, type, audit.json_of(data)
  from tollbook.event where stream = tollbook.stream_key(p_stream) and lane_id = 1
$$;
comment on function audit.events_of is 'The events of one stream, which it finds by an index.';

create or replace view audit.as_of with (security_invoker) as
select projection.seq, (select max(lane.seq) from tollbook.lane) as last_seq, projection.touched_at as updated_at
from tollbook.projection where projection.is_active;
comment on view audit.as_of is 'How far audit.payment, audit.call, audit.posting and audit.balance have come. They follow the events within moments while a gateway runs. One row.';
comment on column audit.as_of.seq is 'The last event that they contain.';
comment on column audit.as_of.last_seq is 'The last event of the ledger.';
comment on column audit.as_of.updated_at is 'When they were written last.';

create or replace view audit.payment with (security_invoker) as
select payment.seq, payment.at, tollbook.stream_name(started.stream) as quote, payment.quote_source, payment.service_id, payment.job_index,
  payment.network, tollbook.hex_text(payment.asset) as asset, payment.symbol, payment.amount as amount_atoms,
  audit.tokens(payment.amount, payment.decimals) as amount, tollbook.hex_text(payment.payer) as payer,
  tollbook.hex_text(payment.pay_to) as pay_to, payment.state, payment.settled_at, tollbook.hex_text(payment.transaction) as transaction,
  payment.block_number, payment.call_id, case when call.status = 'completed' then call.ended_at end as delivered_at,
  payment.refund_due, payment.refund_due_since, payment.refund_requested_at, payment.refund_started_at, payment.refunded_at,
  tollbook.hex_text(payment.refund_transaction) as refund_transaction, payment.refunded_amount as refunded_atoms,
  audit.tokens(payment.refunded_amount, payment.decimals) as refunded, payment.last_seq
from tollbook.payment
left join tollbook.event started on started.lane_id = 1 and started.seq = payment.seq
left join tollbook.paid_call call on call.generation = payment.generation and call.call_id = payment.call_id
where payment.generation = (select projection.generation from tollbook.projection where projection.is_active);
comment on view audit.payment is 'Every payment that was started or recovered, in its present state. A read model: it follows the events within moments, and audit.as_of says up to which.';
comment on column audit.payment.seq is 'The event that started or recovered it: settlement_started or payment_recovered.';
comment on column audit.payment.at is 'When that was recorded.';
comment on column audit.payment.quote is 'The stream of its events: the digest of its quote, which is the invoice number; of a recovered payment the hash of its fingerprint.';
comment on column audit.payment.quote_source is 'pricing: the pricing service issued the quote. Null: a 402 answer did, or the quote is lost.';
comment on column audit.payment.service_id is 'Of the job that was paid for. Null: a recovered payment without a job.';
comment on column audit.payment.job_index is 'Of the job that was paid for.';
comment on column audit.payment.network is 'The chain, such as eip155:8453.';
comment on column audit.payment.asset is 'The token''s contract.';
comment on column audit.payment.symbol is 'The token''s name.';
comment on column audit.payment.amount_atoms is 'In atoms, the token''s smallest unit.';
comment on column audit.payment.amount is 'In tokens, with all their decimals.';
comment on column audit.payment.payer is 'Whose tokens paid.';
comment on column audit.payment.pay_to is 'The operator''s address that got them.';
comment on column audit.payment.state is 'authorized, settling, settlement_unknown, settlement_failed or settled; once its call is enqueued enqueued, delivered (a runner has it), completed or dead_lettered; refunded once all of it was given back.';
comment on column audit.payment.settled_at is 'When the settlement was recorded. Null: it is not settled.';
comment on column audit.payment.transaction is 'The transaction of its transfer.';
comment on column audit.payment.block_number is 'The block that has the transfer. Null: only the facilitator reported it so far.';
comment on column audit.payment.call_id is 'The call that it paid for, in audit.call.';
comment on column audit.payment.delivered_at is 'When the call was completed. Null: it was not.';
comment on column audit.payment.refund_due is 'Why money is owed to the payer. Null: none is.';
comment on column audit.payment.refund_due_since is 'Since when.';
comment on column audit.payment.refund_requested_at is 'When its payer asked for its money, while an operator has that to decide or to pay.';
comment on column audit.payment.refund_started_at is 'When an operator started a refund that has not ended.';
comment on column audit.payment.refunded_at is 'When the last refund was recorded.';
comment on column audit.payment.refund_transaction is 'The transaction of that refund.';
comment on column audit.payment.refunded_atoms is 'How much of it was given back, in atoms.';
comment on column audit.payment.refunded is 'The same in tokens.';
comment on column audit.payment.last_seq is 'The last event that changed it.';

create or replace view audit.call with (security_invoker) as
select call.call_id, call.seq as payment_seq, tollbook.stream_name(started.stream) as quote, call.service_id, call.job_index, call.status,
  call.attempts, call.enqueued_at, call.ended_at
from tollbook.paid_call call
left join tollbook.event started on started.lane_id = 1 and started.seq = call.seq
where call.generation = (select projection.generation from tollbook.projection where projection.is_active);
comment on view audit.call is 'Every call that a payment paid for. A read model, as audit.payment. Calls of triggers are the events call_triggered.';
comment on column audit.call.call_id is 'Its number.';
comment on column audit.call.payment_seq is 'Its payment: seq in audit.payment.';
comment on column audit.call.quote is 'The stream of its events and of its payment''s.';
comment on column audit.call.service_id is 'Of its job.';
comment on column audit.call.job_index is 'Of its job.';
comment on column audit.call.status is 'enqueued, delivered (a runner has it), completed or dead_lettered.';
comment on column audit.call.attempts is 'How often a runner has got it.';
comment on column audit.call.enqueued_at is 'When its payment was settled and it was released.';
comment on column audit.call.ended_at is 'When it was completed or dead-lettered. Null: it was not.';

create or replace view audit.caller_nonce with (security_invoker) as
select used.caller, used.service_id, used.job_index, used.nonce_sha256, used.stream as quote, used.used_at
from tollbook.caller_nonce used;
comment on view audit.caller_nonce is 'The nonces that callers of restricted jobs have used, each once for a job. A nonce is free again once its payment can never land.';
comment on column audit.caller_nonce.caller is 'The address that signed the request.';
comment on column audit.caller_nonce.service_id is 'Of the job that it called.';
comment on column audit.caller_nonce.job_index is 'Of the job that it called.';
comment on column audit.caller_nonce.nonce_sha256 is '0x and the SHA-256 of the nonce, whose text the ledger does not keep.';
comment on column audit.caller_nonce.quote is 'The quote whose payment has used it.';
comment on column audit.caller_nonce.used_at is 'When that payment was started.';

create or replace view audit.refusal with (security_invoker) as
select event.seq, event.at, event.type, 1::bigint as requests, coalesce(fact.reason, fact.code, fact.claim) as reason,
  fact.service_id, fact.job_index, fact.caller, fact.caller_nonce_sha256 as nonce_sha256, fact.used_by_quote, fact.payer,
  fact.payment_nonce, fact.quote_digest as quote, fact.account_id
from tollbook.event
cross join lateral jsonb_to_record(audit.json_of(event.data)) as fact(reason text, code text, claim text, service_id bigint, job_index bigint,
  caller text, caller_nonce_sha256 text, used_by_quote text, payer text, payment_nonce text, quote_digest text, account_id bigint)
where event.lane_id = 1 and event.type in ('payment_rejected', 'request_refused', 'auth_denied', 'payment_replay_denied', 'nonce_replay_denied',
  'enqueue_failed', 'chat_refused')
union all
select event.seq, event.at, counted.type, counted.requests::bigint, null, null, null, null, null, null, null, null, null, null
from tollbook.event cross join lateral jsonb_each_text(audit.json_of(event.data)->'counts') as counted(type, requests)
where event.lane_id = 1 and event.type = 'refusals_counted' and counted.type in ('payment_rejected', 'request_refused', 'auth_denied',
  'payment_replay_denied', 'nonce_replay_denied', 'enqueue_failed', 'chat_refused');
comment on view audit.refusal is 'Refused requests that are on record. Nothing was charged for them. Trials (dry_run_…) and sign-ins are only in audit.event.';
comment on column audit.refusal.seq is 'Its event.';
comment on column audit.refusal.at is 'When it was recorded.';
comment on column audit.refusal.type is 'payment_rejected, request_refused, auth_denied, payment_replay_denied, nonce_replay_denied, enqueue_failed or chat_refused.';
comment on column audit.refusal.requests is '1. More, and nothing but the type: refusals of one second that were only counted, because a client was over its budget, the ledger full, or strangers beyond their allowance.';
comment on column audit.refusal.reason is 'Why: a code. Of payment_replay_denied what was used before: payment, quote or payment_identifier. Null for nonce_replay_denied.';
comment on column audit.refusal.service_id is 'Of the job.';
comment on column audit.refusal.job_index is 'Of the job.';
comment on column audit.refusal.caller is 'Who asked: the address of a restricted job''s caller; of chat_refused api_key, session, spend_auth, x402 or anonymous.';
comment on column audit.refusal.nonce_sha256 is 'Of nonce_replay_denied: 0x and the SHA-256 of the nonce that was used before.';
comment on column audit.refusal.used_by_quote is 'The quote whose payment has used that nonce. Null if an earlier version recorded it: audit.caller_nonce has it.';
comment on column audit.refusal.payer is 'Whose payment was refused.';
comment on column audit.refusal.payment_nonce is 'Of the payment that was refused.';
comment on column audit.refusal.quote is 'The quote that the refused request named.';
comment on column audit.refusal.account_id is 'Of chat_refused: whose credit.';

create or replace view audit.quote with (security_invoker) as
select event.seq, event.at, tollbook.stream_name(event.stream) as quote, fact.service_id, fact.job_index, fact.price_wei, fact.options,
  nullif(fact.requester, '0x0000000000000000000000000000000000000000') as requester,
  nullif(fact.inputs_hash, '0x0000000000000000000000000000000000000000000000000000000000000000') as inputs_hash,
  audit.time_of(fact.issued_at) as issued_at, audit.time_of(fact.expires_at) as expires_at, fact.source, coalesce(fact.summarised, false) as was_counted
from tollbook.event
cross join lateral jsonb_to_record(audit.json_of(event.data)) as fact(service_id bigint, job_index bigint, price_wei numeric, options jsonb,
  requester text, inputs_hash text, issued_at bigint, expires_at bigint, source text, summarised boolean)
where event.lane_id = 1 and event.type = 'quote_issued';
comment on view audit.quote is 'Every quote that is on record with its terms. Unpaid quotes may be only counted, by the events quotes_issued.';
comment on column audit.quote.seq is 'Its event.';
comment on column audit.quote.at is 'When it was recorded: if it was only counted before, when it was paid.';
comment on column audit.quote.quote is 'Its digest, which names its stream.';
comment on column audit.quote.service_id is 'Of its job.';
comment on column audit.quote.job_index is 'Of its job.';
comment on column audit.quote.price_wei is 'The job''s price, in units of 10^-18.';
comment on column audit.quote.options is 'The ways to pay it, in their order: network, asset, symbol, decimals, amount in atoms, pay_to, and for credit credit_micros. An option that was not known when the quote was recorded is its hash.';
comment on column audit.quote.requester is 'The only address that may pay it. Null: any may.';
comment on column audit.quote.inputs_hash is 'The hash of the only body that it is for. Null: it is for any.';
comment on column audit.quote.issued_at is 'When it was issued.';
comment on column audit.quote.expires_at is 'Until when it could be paid.';
comment on column audit.quote.source is 'pricing: the pricing service issued it. Null: a 402 answer did.';
comment on column audit.quote.was_counted is 'A quotes_issued counted it before it was recorded.';

create or replace view audit.settlement with (security_invoker) as
select event.seq, event.at, tollbook.stream_name(event.stream) as quote, event.type, fact.network, fact.asset, terms.symbol,
  coalesce(fact.amount, terms.amount) as amount_atoms, audit.tokens(coalesce(fact.amount, terms.amount), terms.decimals) as amount,
  fact.payer, terms.pay_to, fact.payment_nonce, fact.transaction, fact.block_number, fact.block_hash, fact.log_index,
  audit.time_of(fact.block_time) as block_time, fact.reason, fact.evidence, fact.paid, fact.operator
from tollbook.event
cross join lateral (select audit.json_of(event.data) as data offset 0) as json
cross join lateral jsonb_to_record(json.data || case event.type when 'settlement_started' then
    (json.data->'payment') || jsonb_build_object('payment_nonce', json.data->'payment'->'nonce') else '{}' end)
  as fact(network text, asset text, amount numeric, payer text, payment_nonce text, transaction text, block_number numeric, block_hash text,
    log_index bigint, block_time bigint, reason text, evidence text, paid boolean, operator text)
left join lateral (
  -- the terms are in the event that started or recovered the payment: the last of them up to this event
  select stated.* from tollbook.event start
  cross join lateral (select audit.json_of(start.data) as data offset 0) as json
  cross join lateral jsonb_to_record(coalesce(json.data->'payment', json.data)) as stated(symbol text, decimals int, amount numeric, pay_to text)
  where start.stream = event.stream and start.version <= event.version and start.type in ('settlement_started', 'payment_recovered')
  order by start.version desc limit 1
) terms on true
where event.lane_id = 1 and event.type in ('settlement_started', 'payment_settled', 'settlement_confirmed', 'settlement_unknown', 'settlement_failed',
  'settlement_disproved', 'settlement_reorged', 'settlement_overdue', 'operator_settlement_resolved', 'payment_recovered');
comment on view audit.settlement is 'Every step of every settlement, from the events.';
comment on column audit.settlement.seq is 'Its event.';
comment on column audit.settlement.at is 'When it was recorded.';
comment on column audit.settlement.quote is 'The stream of the payment''s events, as in audit.payment.';
comment on column audit.settlement.type is 'settlement_started; payment_settled; settlement_confirmed: the chain shows what a facilitator had reported; settlement_unknown; settlement_failed; settlement_disproved and settlement_reorged: it is unknown again; settlement_overdue; operator_settlement_resolved; payment_recovered: found on the chain without a call.';
comment on column audit.settlement.network is 'The chain.';
comment on column audit.settlement.asset is 'The token''s contract.';
comment on column audit.settlement.symbol is 'The token''s name.';
comment on column audit.settlement.amount_atoms is 'The payment''s amount in atoms.';
comment on column audit.settlement.amount is 'The same in tokens.';
comment on column audit.settlement.payer is 'Whose tokens pay.';
comment on column audit.settlement.pay_to is 'The operator''s address that gets them.';
comment on column audit.settlement.payment_nonce is 'Of the payer''s authorization, which the chain accepts once.';
comment on column audit.settlement.transaction is 'The transaction, if the event names one.';
comment on column audit.settlement.block_number is 'The block that has it, if the event names one.';
comment on column audit.settlement.block_hash is 'Of that block.';
comment on column audit.settlement.log_index is 'The transfer''s place in that block.';
comment on column audit.settlement.block_time is 'The time of that block, if the node told it.';
comment on column audit.settlement.reason is 'Why it failed or is unknown: a code.';
comment on column audit.settlement.evidence is 'Of payment_settled who says so: facilitator, chain or operator. Of operator_settlement_resolved what the operator wrote.';
comment on column audit.settlement.paid is 'Of operator_settlement_resolved: what the operator decided.';
comment on column audit.settlement.operator is 'Of operator_settlement_resolved: who.';

create or replace view audit.posting with (security_invoker) as
select posting.seq, posting.leg, event.at, event.type, posting.category, debited.name as debit, credited.name as credit,
  commodity.name as commodity, commodity.network, commodity.asset, commodity.decimals, posting.atoms,
  audit.tokens(posting.atoms, commodity.decimals) as amount,
  case when posting.quote is not null then tollbook.stream_name(posting.quote)
    when posting.category in ('payment', 'confirmation', 'reversal', 'delivery', 'dead_letter', 'requeue', 'refund_grant', 'refund') then tollbook.stream_name(event.stream) end as quote,
  -- a subquery, so that only those who ask for it pay for it
  case when posting.category not in ('gas', 'gas_reversal') then (
    select coalesce(fact.refunded_to, 'account:' || fact.account_id, fact.swept_to, fact.received_from, fact.commitment, (
      select coalesce(json.data->'payment'->>'payer', json.data->>'payer', json.data->>'received_from') from tollbook.event start
      cross join lateral (select audit.json_of(start.data) as data offset 0) as json
      where start.stream = event.stream and start.version <= event.version
        and start.type in ('settlement_started', 'payment_recovered', 'operator_transfer_recorded')
      order by start.version desc limit 1))
    from jsonb_to_record(audit.json_of(event.data)) as fact(refunded_to text, account_id text, swept_to text, received_from text, commitment text)
  ) end as counterparty,
  projection.seq as derived_to
from tollbook.projection
join tollbook.posting on posting.generation = projection.generation
join tollbook.event on event.lane_id = 1 and event.seq = posting.seq
join tollbook.book_account debited on debited.generation = posting.generation and debited.id = posting.debit
join tollbook.book_account credited on credited.generation = posting.generation and credited.id = posting.credit
join tollbook.book_commodity commodity on commodity.generation = posting.generation and commodity.id = posting.commodity
where projection.is_active and projection.has_postings;
comment on view audit.posting is 'Double-entry postings: an amount on the debit side of one account and the credit side of another. A read model, as audit.payment. Those of a payment: join audit.events_of by seq. Empty after an upgrade from a version without postings or open items, until a gateway has built them.';
comment on column audit.posting.seq is 'The event that caused it.';
comment on column audit.posting.leg is 'Its number among the postings of that event, from 1.';
comment on column audit.posting.at is 'When that event was recorded.';
comment on column audit.posting.type is 'The event''s type.';
comment on column audit.posting.category is 'What it is, as in the exports: payment, confirmation, delivery, refund, credit_use and others.';
comment on column audit.posting.debit is 'The account that it is added to.';
comment on column audit.posting.credit is 'The account that it is taken from.';
comment on column audit.posting.commodity is 'What is counted, by its name in the journals, such as USDC-8453, or the currency of credit; CREDIT while no event has said that.';
comment on column audit.posting.network is 'The commodity''s chain. Null: credit.';
comment on column audit.posting.asset is 'The token''s contract. Null: credit, or the chain''s own coin.';
comment on column audit.posting.decimals is 'Those of the commodity; credit has 6.';
comment on column audit.posting.atoms is 'How much, above 0, in the smallest unit.';
comment on column audit.posting.amount is 'The same in tokens, or in units of the currency.';
comment on column audit.posting.quote is 'The payment that it is about: the stream of its events, as in audit.payment. Null: about no payment.';
comment on column audit.posting.counterparty is 'Who the other party is: a payer, who got a refund or a sweep, who sent a transfer, a credit account such as account:7, or the account of a spend. Null: gas.';
comment on column audit.posting.derived_to is 'The last event that the postings contain.';

create or replace view audit.balance with (security_invoker) as
select day.day, account.name as account, commodity.name as commodity, commodity.network, commodity.asset, commodity.decimals,
  day.debits as debit_atoms, day.credits as credit_atoms,
  sum(day.debits - day.credits) over until_day as closing_atoms,
  audit.tokens(day.debits, commodity.decimals) as debit, audit.tokens(day.credits, commodity.decimals) as credit,
  audit.tokens(sum(day.debits - day.credits) over until_day, commodity.decimals) as closing,
  projection.seq as derived_to
from tollbook.projection
join tollbook.balance_day day on day.generation = projection.generation
join tollbook.book_account account on account.generation = day.generation and account.id = day.account
join tollbook.book_commodity commodity on commodity.generation = day.generation and commodity.id = day.commodity
where projection.is_active and projection.has_postings
window until_day as (partition by account.name, commodity.name order by day.day);
comment on view audit.balance is 'What was posted to each account on each day, and its balance at the end of that day. The sums of audit.posting. A day without postings to an account has no row: the balance is that of the last day before.';
comment on column audit.balance.day is 'The day (UTC) on which the events were recorded.';
comment on column audit.balance.account is 'An account of audit.posting.';
comment on column audit.balance.commodity is 'What is counted, as in audit.posting.';
comment on column audit.balance.network is 'The commodity''s chain. Null: credit.';
comment on column audit.balance.asset is 'The token''s contract. Null: credit, or the chain''s own coin.';
comment on column audit.balance.decimals is 'Those of the commodity.';
comment on column audit.balance.debit_atoms is 'What was added on that day, in the smallest unit.';
comment on column audit.balance.credit_atoms is 'What was taken on that day.';
comment on column audit.balance.closing_atoms is 'All that was added less all that was taken up to the end of that day. Liabilities and income are below 0.';
comment on column audit.balance.debit is 'What was added on that day, in tokens or units of the currency.';
comment on column audit.balance.credit is 'What was taken on that day, in the same.';
comment on column audit.balance.closing is 'The balance at the end of that day, in the same.';
comment on column audit.balance.derived_to is 'The last event that the balances contain.';

-- In SQL as well: the view has transactions as text, which no index has, and reads every payment for one.
create or replace function audit.payments_by(p_transaction text) returns setof audit.payment language sql stable parallel safe as $$
  select payment.* from tollbook.payment found join audit.payment using (seq)
  where found.generation = (select projection.generation from tollbook.projection where projection.is_active)
    and found.transaction = tollbook.hex_bytes(p_transaction)
$$;
comment on function audit.payments_by is 'The payments that a transaction has settled, which it finds by an index.';

grant execute on function audit.is_readable, audit.json_of, audit.tokens, audit.time_of, audit.events_of, audit.payments_by to tollbook_reader;
