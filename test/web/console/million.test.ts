import { expect, test } from 'vitest';
import { processEnvironment } from '../../../src/base/config/environment.ts';
import { searchPayments } from '../../../src/payments/store/payment-search.ts';
import { listLatestPayments } from '../../../src/ledger/store/payments.ts';
import { browserOf, signInOperator } from '../../support/console.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { fastestMs } from '../../support/fastest.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { fillPayments, transactionSql } from '../../support/synthetic-payments.ts';
import { slowness } from '../../support/processor.ts';
import { timeLimits } from '../../support/time-limits.ts';

const chain = useChain();

/** A million with `PAYMENTS=1000000`, which takes minutes to fill in, and says the times. */
const { PAYMENTS: asked } = processEnvironment();
const payments = Number(asked ?? 30_000);
const timeMs = asked === undefined ? timeLimits.testMs : timeLimits.rigMs;

test(
  'the overview and the search for payments take under 100 ms with many payments',
  async () => {
    const database = await createDatabase();
    const { pool } = database;
    const [transaction, payer] = await database.asOwner(async (owner) => {
      await fillPayments((statement) => owner.query(statement), payments);
      // pages name the quotes of the rows that they show, by the events that began their payments; nothing is to be folded
      await owner.query(
        `insert into tollbook.event (lane_id, seq, stream, version, type, at, data)
       select 1, seq, sha256(('stream ' || seq)::bytea), 2, 'settlement_started', at, '{}' from tollbook.payment
       where seq > ${payments - 60} or payer = (select payer from tollbook.payment where seq = 777)`,
      );
      await owner.query(`update tollbook.projection set seq = ${payments}`);
      const { rows } = await owner.query<{ transaction: string; payer: string }>(
        `select ${transactionSql('n')} as transaction, substr(md5('payer ' || n % 5000), 1, 12) as payer from (select 777 as n) one`,
      );
      return [rows[0]?.transaction ?? '', rows[0]?.payer ?? ''];
    });
    const site = await startJobsSite(chain, echo, { database, tables: '[console]\n' });
    const ada = browserOf(site, await signInOperator(site));
    const search = async (digits: string, found: number): Promise<void> =>
      expect((await searchPayments(pool, digits, 50)).map(({ seq }) => seq)).toHaveLength(found);
    const list = async (state?: string): Promise<void> =>
      expect((await listLatestPayments(pool, { state }, undefined, 51)).rows.length).toBeGreaterThan(2);
    const ofPayer = Math.min(50, payments / 5_000);
    const looks = {
      overview: async () => expect((await ada.get('/console')).text).toContain('unknown settlement'),
      'the page of payments': async () => expect((await ada.get('/console/payments')).status).toBe(200),
      'the page of a search': async () => {
        const { text } = await ada.get(`/console/payments?q=${payer}`);
        expect(text).toContain(payer);
      },
      'the newest payments': () => list(),
      'payments of a state': () => list('settlement_unknown'),
      'the beginning of a transaction': () => search(transaction.slice(0, 12), 1),
      'a middle of a transaction': () => search(transaction.slice(21, 33), 1),
      'the end of a transaction': () => search(transaction.slice(-12), 1),
      'the shortest part': async () => {
        const found = await searchPayments(pool, transaction.slice(18, 25), 50);
        expect(found.map((row) => row.transaction)).toContain(`0x${transaction}`);
      },
      'the beginning of a payer': () => search(payer, ofPayer),
      'what no payment has': () => search('0123456789abcdef', 0),
    };
    const times: Record<string, number> = {};
    const enoughMs = 100 * slowness;
    for (const [name, look] of Object.entries(looks)) times[name] = await fastestMs(enoughMs, look);
    if (asked !== undefined) console.info(payments, times);
    expect(Object.entries(times).filter(([, ms]) => ms >= enoughMs)).toEqual([]);
  },
  timeMs,
);
