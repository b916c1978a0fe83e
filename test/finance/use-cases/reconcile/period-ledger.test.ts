import { expect, onTestFinished, test } from 'vitest';
import { reportText } from '../../../../src/finance/rules/reconcile/report.ts';
import { ledgerInDatabase } from '../../../../src/finance/use-cases/reconcile/ledger-source.ts';
import { reconcile } from '../../../../src/finance/use-cases/reconcile/reconcile.ts';
import { createScanner } from '../../../../src/payments/peers/chain/transfer-scan.ts';
import { useChain } from '../../../support/devnet.ts';
import { testVerifier } from '../../../support/log.ts';
import { rareTypes } from '../../../../src/finance/store/period-events.ts';
import { createDatabase } from '../../../support/database.ts';
import { exceptionsIn, paid } from '../../../support/reconcile.ts';

const chain = useChain();
const network = 'eip155:84532';

/** Reconciles the six payments of a gateway, and lets an insider change the database. */
async function sixPayments() {
  const { database, from, to } = await paid(chain);
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl: chain.rpcUrl, timeoutMs: 30_000 });
  onTestFinished(() => scanner.close());
  const report = async ({ isProven = true } = {}) =>
    reconcile({
      period: { fromMs: Date.parse(from), toMs: Date.parse(to) },
      source: await ledgerInDatabase(database.pool, isProven ? testVerifier : undefined, undefined),
      chains: new Map([[network, scanner]]),
      accepted: [],
      pinned: new Map(),
      twice: false,
      resumeFile: undefined,
      onProgress: () => {},
    });
  const change = (statement: string): Promise<Record<string, unknown>[]> =>
    database.asOwner(async (owner) => {
      await owner.query('set session_replication_role = replica');
      return (await owner.query<Record<string, unknown>>(statement)).rows;
    });
  return { report, change };
}

test('an event of the period that an insider has edited is named, and the report says what the edited ledger would be', async () => {
  const { report, change } = await sixPayments();
  const sound = await report();
  expect(sound.ledger.fault).toBe(null);
  const [edited] = await change(
    `update tollbook.event set data = regexp_replace(data, '"amount":"', '"amount":"9')
      where seq = (select min(seq) from tollbook.event where type = 'payment_settled') returning seq::int, tollbook.stream_name(stream) as stream`,
  );
  const wrong = await report();
  const words =
    'its bytes differ from the sealed ones: the event was changed, replaced or moved after sealing';
  expect(wrong.ledger).toMatchObject({ root: sound.ledger.root, fault: { seq: edited?.['seq'], words } });
  expect(wrong.result).toBe('breaks');
  expect(exceptionsIn(wrong)).toEqual([`amount_mismatch ${String(edited?.['stream'])}`]);
});

test('an event of the period that an insider has removed ends the reconciliation, and one that was moved to another stream is named', async () => {
  const { report, change } = await sixPayments();
  const [moved] = await change(
    `update tollbook.event set stream = sha256(stream) where seq = (select max(seq) from tollbook.event where type = 'delivered') returning seq::int`,
  );
  expect((await report()).ledger.fault).toMatchObject({ seq: moved?.['seq'] });
  await change(`delete from tollbook.event where type = 'delivered'`);
  await expect(report()).rejects.toMatchObject({ code: 'ledger_too_short' });
});

test('a log whose tiles an insider has changed with the event does not lead to the signed head', async () => {
  const { report, change } = await sixPayments();
  await change(`update tollbook.event set data = regexp_replace(data, '"amount":"', '"amount":"9')
    where seq = (select min(seq) from tollbook.event where type = 'payment_settled')`);
  await change(`update tollbook.log_tile tile set hashes = overlay(hashes placing changed.hash from changed.place)
    from (
      select sha256('\\x00'::bytea || tollbook.leaf(event)) as hash, ((event.seq - 1) * 32 + 1)::int as place
      from tollbook.event where event.seq = (select min(seq) from tollbook.event where type = 'payment_settled')
    ) changed where tile.level = 0 and tile.tile = 0`);
  const words = 'its place in the log does not lead to the signed root: the log was changed';
  expect((await report()).ledger.fault).toMatchObject({ seq: 1, words });
});

test('without a public key nothing is proven, and the report is otherwise the same', async () => {
  const { report } = await sixPayments();
  const [proven, unproven] = [await report(), await report({ isProven: false })];
  const { size, root } = proven.ledger;
  expect(unproven.ledger).toEqual({ size, root, checkpoint: null, fault: null });
  expect(reportText({ ...unproven, ledger: proven.ledger })).toBe(reportText(proven));
});

test('a reconciliation is refused while the read models have no postings, and says what adds them', async () => {
  const { report, change } = await sixPayments();
  await change('update tollbook.projection set has_postings = false');
  await expect(report()).rejects.toMatchObject({
    code: 'no_books',
    message: expect.stringContaining('tollbook projections rebuild'),
  });
});

test('the index of rare events has the types of events that a reconciliation looks for outside of its period', async () => {
  const { pool } = await createDatabase();
  const { rows } = await pool.query<{ type: string }>(
    `select (regexp_matches(pg_get_expr(indpred, indrelid), $1, 'g'))[1] as type
      from pg_index where indexrelid = 'tollbook.event_rare'::regclass`,
    ["'([a-z_]+)'"],
  );
  expect(rows.map(({ type }) => type).toSorted()).toEqual(rareTypes.toSorted());
});
