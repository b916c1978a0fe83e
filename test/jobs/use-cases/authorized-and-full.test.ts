import path from 'node:path';
import { expect, test } from 'vitest';
import { callerHeaders, permitted, restrictedJobs } from '../../support/caller.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { exportTo } from '../../support/log.ts';
import { header, quoteAndSign } from '../../support/payer.ts';
import { temporaryFolder } from '../../support/program.ts';

const chain = useChain();

test.each([
  ['/x402/jobs/1/0', 'payer_is_caller', {}],
  ['/x402/jobs/1/1', 'delegated_caller_signature', { caller_nonce_sha256: expect.any(String) }],
])(
  'that a caller of %s was authorized is on record also where its request then finds no room in the outbox',
  async (job, mode, nonce) => {
    const database = await createDatabase();
    const tables = '[limits]\nmax_outstanding_calls = 1\nrequests_per_minute = 0';
    const gateway = await startTestGateway({ database, chain, jobs: restrictedJobs(chain), tables });
    const send = async () => {
      const payment = await quoteAndSign(gateway, job, 'x', { account: permitted });
      return gateway.post(job, {
        body: 'x',
        headers: { ...header(payment), ...(await callerHeaders('x')) },
      });
    };
    expect((await send()).status).toBe(202);
    expect(await send()).toMatchObject({ status: 503, json: { code: 'enqueue_failed' } });
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const refused = events.find(({ type }) => type === 'enqueue_failed');
    const own = events.filter(({ stream }) => stream === refused?.stream);
    expect(own.map(({ type }) => type)).toEqual(['auth_passed', 'enqueue_failed']);
    expect(own[0]?.data).toEqual({ caller: permitted.address.toLowerCase(), mode, ...nonce });
    const file = path.join(temporaryFolder(), 'export.jsonl');
    await exportTo(file, database);
    expectIndependent(await verifyIndependently(file, []), true);
  },
);
