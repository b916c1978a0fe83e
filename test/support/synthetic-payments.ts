/** Runs a statement as the owner of the database. */
type Run = (statement: string) => Promise<{ readonly rows: readonly unknown[] }>;

/** The transaction of the payment of this number, as PostgreSQL makes it; without `0x`. */
export const transactionSql = (n: string): string => `encode(sha256(('payment ' || ${n})::bytea), 'hex')`;

/**
 * So many payments as the read models hold them, over the days before now, of fifty jobs and two tokens; one in ten thousand is
 * without a known outcome. They have no events: what is read of these is not measured.
 */
export async function fillPayments(run: Run, count: number): Promise<void> {
  const generation = '(select generation from tollbook.projection where is_active)';
  // filling a table without indexes, then building them, takes a fraction of the time
  const { rows } = await run(
    `select indexdef from pg_indexes where schemaname = 'tollbook' and tablename = 'payment' and indexname <> 'payment_pkey'`,
  );
  const indexes = rows.map((row) => (row as { readonly indexdef: string }).indexdef);
  for (const index of indexes) await run(`drop index tollbook.${/INDEX (\S+)/.exec(index)?.[1]}`);
  await run(`
    insert into tollbook.payment (generation, seq, at, service_id, job_index, network, asset, symbol, decimals, amount, payer, pay_to,
      transaction, call_id, settled_at, last_seq, block_number, state)
    select ${generation}, n, at, n % 5, n % 10, 'eip155:84532', decode(repeat('5f', 20), 'hex'), 'USDC', 6, 1000,
      decode(substr(md5('payer ' || n % 5000) || md5('x' || n % 5000), 1, 40), 'hex'), decode(repeat('90', 20), 'hex'),
      case when n % 10000 = 0 then null else decode(${transactionSql('n')}, 'hex') end, n,
      case when n % 10000 = 0 then null else at + interval '80 milliseconds' end, n, n,
      case when n % 10000 = 0 then 'settlement_unknown' else 'completed' end
    from generate_series(1, ${count}) n cross join lateral (select now() - (${count} - n) * interval '100 days' / ${count} as at) time`);
  await run(`
    insert into tollbook.paid_call (generation, call_id, seq, service_id, job_index, status, attempts, enqueued_at, ended_at)
    select ${generation}, seq, seq, service_id, job_index, 'completed', 1, settled_at, settled_at + interval '30 milliseconds'
    from tollbook.payment where settled_at is not null`);
  await run(`
    insert into tollbook.job_day (generation, day, service_id, job_index, network, asset, symbol, decimals, payments, amount, completed, dead_lettered)
    select ${generation}, current_date - day, service, job, 'eip155:84532', token, token, 6, 20, 1000, 20, 0
    from generate_series(0, 100) day, generate_series(0, 4) service, generate_series(0, 9) job, unnest(array['USDC', 'EURC']) token`);
  for (const index of indexes) await run(index);
  await run('vacuum analyze tollbook.payment, tollbook.paid_call, tollbook.job_day');
}
