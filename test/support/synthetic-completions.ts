/** Runs a statement as the owner of the database. */
type Run = (statement: string, values: readonly unknown[]) => Promise<unknown>;

export const rareModel = 'rare-model';
export const rareKeyId = 41;
/**
 * Of a completion: admitted, held, completed, captured, released.
 * @public its bench counts them
 */
export const eventsACompletion = 5;

/**
 * The events of completions of account 1, from the number `$1` to `$2` of `$3`, over the hundred days before now: ten models and
 * forty keys, and each ten-thousandth of another model, each next one with another key. They are what a gateway records.
 */
const statement = `
  with one as (
    select n, gen_random_uuid() as id, now() - ($3::bigint - n) * (interval '100 days' / $3::bigint) as at,
      case when n % 10000 = 0 then '${rareModel}' else 'model-' || n % 10 end as model,
      case when n % 10000 = 1 then ${rareKeyId} else n / 10 % 40 + 1 end as key_id, n % 900 + 10 as input, n % 300 + 1 as output
    from generate_series($1::bigint, $2::bigint) n
  ), charged as (
    select *, '"account_id":1' as account, (5 * input + 1) / 2 + 10 * output as cost from one
  ), told as (
    select n, id, at, step.version, step.type, step.data from charged cross join lateral (values
      (1, 'chat_admitted', format('{%s,"caller":"api_key","key_id":%s,"model":"%s","price":{"input_nanos":"2500000000","output_nanos":"10000000000"},"streaming":true}',
        account, key_id, model)),
      (2, 'credit_held', format('{%s,"amount_micros":"%s","chat_id":"%s","key_id":%s}', account, cost + 1000, id, key_id)),
      (3, 'chat_completed', format('{"completion_tokens":%s,"cost_micros":"%s","ending":"completed","first_byte_ms":20,"is_estimate":false,"latency_ms":400,"model":"%s","prompt_tokens":%s,"upstream":"model"}',
        output, cost, model, input)),
      (4, 'credit_captured', format('{%s,"amount_micros":"%s","chat_id":"%s","is_estimate":false,"key_id":%s}', account, cost, id, key_id)),
      (5, 'credit_released', format('{%s,"amount_micros":"1000","chat_id":"%s","key_id":%s}', account, id, key_id))
    ) step(version, type, data)
  )
  insert into tollbook.event (lane_id, seq, at, version, stream, type, data)
    select 1, (n - 1) * ${eventsACompletion} + version, at, version, tollbook.stream_key('chat:' || id), type, data from told order by 2`;

const atOnce = 50_000;

/** Records this many completions of account 1 in an empty ledger, as one gateway would have done in a hundred days. */
export async function recordCompletions(run: Run, count: number): Promise<void> {
  for (let from = 1; from <= count; from += atOnce)
    await run(statement, [from, Math.min(count, from + atOnce - 1), count]);
  await run('update tollbook.lane set seq = $1, at = now()', [count * eventsACompletion]);
  await run('analyze tollbook.event', []);
}
