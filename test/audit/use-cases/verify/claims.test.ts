import { expect, test } from 'vitest';
import { checkRows } from '../../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { claimKey } from '../../../../src/ledger/store/claim-key.ts';
import { paymentFromData } from '../../../../src/payments/rules/payment.ts';
import { paymentClaim } from '../../../../src/payments/store/claims.ts';
import { createDatabase } from '../../../support/database.ts';
import { appendAll, insertClaims } from '../../../support/log.ts';
import { hex32Of, paidJob } from '../../../support/synthetic-ledger.ts';

const jobs = [paidJob(1), paidJob(2)] as const;
const [one, other] = jobs.map(([quote, , started]) => {
  if (started?.event.type !== 'settlement_started') throw new Error('no payment');
  const key = claimKey(paymentClaim(paymentFromData(started.event.data.payment), ''));
  return { stream: quote!.stream, key: key.toString('hex') };
}) as [Claimed, Claimed];
type Claimed = Readonly<Record<'stream' | 'key', string>>;

const nowhere = hex32Of('a stream without events');
const unknown = hex32Of('another key').slice(2, 34);
const ofOne = `key = '\\x${one.key}'`;
const rowOfOne = `the row of kind payment, stream ${one.stream}, key ${one.key}`;

test.each([
  [
    'is deleted, so that its payment could be used again',
    `delete from tollbook.claim where ${ofOne}`,
    [`${rowOfOne} is missing`],
  ],
  [
    'is bound to another request, so that a repetition of its payment is a replay',
    `update tollbook.claim set binding = (select o.binding from tollbook.claim o where o.key = '\\x${other.key}') where ${ofOne}`,
    [`kind payment, stream ${one.stream}, key ${one.key}: binding is`],
  ],
  [
    'is given to the stream of another payment',
    `update tollbook.claim set stream = tollbook.stream_key('${other.stream}') where ${ofOne}`,
    [`stream is "${other.stream}", by the events "${one.stream}"`],
  ],
  [
    'gets another key, so that its payment could be used again and another one is refused',
    `update tollbook.claim set key = '\\x${unknown}' where ${ofOne}`,
    [`key ${one.key} is missing`, `key ${unknown} belongs to no event`],
  ],
  [
    'is added without an event, so that a payment is refused as used',
    `insert into tollbook.claim (key, binding, stream)
      select '\\x${unknown}', binding, tollbook.stream_key('${nowhere}') from tollbook.claim limit 1`,
    [`stream ${nowhere}, key ${unknown} belongs to no event`],
  ],
])('a claim that %s is named', async (_, change, named) => {
  const database = await createDatabase();
  await appendAll(database, jobs.flat());
  await insertClaims(database);
  const wrongClaims = async () =>
    (await checkRows(database.pool)).filter(({ table }) => table === 'claim').map(({ words }) => words);
  expect(await wrongClaims()).toEqual([]);
  await database.asOwner((owner) => owner.query(change));
  const words = await wrongClaims();
  expect(words).toHaveLength(named.length);
  for (const part of named) expect(words.join('\n')).toContain(part);
});
