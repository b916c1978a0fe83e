import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { header, quoteAndSign } from '../../support/payer.ts';
import { type Reaction, startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';
import { pay, reachesState } from './relay-support.ts';

const chain = useChain();

test('the limit of a job holds for the calls that all processes push, and each is delivered once', async () => {
  const database = await createDatabase();
  const answers = Array.from({ length: 5 }, () => Promise.withResolvers<Reaction>());
  let arrived = 0;
  const runner = await startTestRunner(() => answers[arrived++]?.promise ?? { status: 500 });
  const jobs = `[job_prices.1]
0 = "1"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
max_concurrent = 2`;
  const options = { database, chain, runnerUrl: runner.url, jobs };
  const gateways = [await startTestGateway(options), await startTestGateway(options)] as const;
  const calls = await Promise.all(answers.map((_, index) => pay(gateways[index % 2 === 0 ? 0 : 1])));
  for (const [index, { resolve }] of answers.entries()) {
    await eventually(() => expect(runner.deliveries).toHaveLength(Math.min(5, index + 2)));
    resolve({ status: 200, body: 'done' });
  }
  for (const call of calls) await reachesState(call, 'completed');
  expect(runner.mostAtOnce()).toBe(2);
  expect(runner.deliveries).toHaveLength(5);
});

test('calls that a header orders are pushed one after another in the order of their payments, each tenant for itself', async () => {
  const database = await createDatabase();
  const answers = new Map<string, PromiseWithResolvers<Reaction>>();
  const answerTo = (body: string) => {
    const answer = answers.get(body) ?? Promise.withResolvers<Reaction>();
    answers.set(body, answer);
    return answer;
  };
  const runner = await startTestRunner(({ body }) => answerTo(body.toString()).promise);
  const jobs = `[job_prices.1]
0 = "1"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
order_by = "header:X-Tenant"`;
  const options = { database, chain, runnerUrl: runner.url, jobs };
  const gateways = [await startTestGateway(options), await startTestGateway(options)] as const;
  const path = '/x402/jobs/1/0';
  const payAs = async (tenant: string | undefined, body: string, at: 0 | 1) => {
    const gateway = gateways[at];
    const headers = {
      ...header(await quoteAndSign(gateway, path, body)),
      ...(tenant === undefined ? {} : { 'x-tenant': tenant }),
    };
    expect((await gateway.post(path, { body, headers })).status).toBe(202);
  };
  const arrived = () => runner.deliveries.map(({ body }) => body.toString());
  for (const [index, at] of ([0, 1, 0] as const).entries()) await payAs('one', `one ${index}`, at);
  await payAs('two', 'two', 1);
  await payAs(undefined, 'none', 1);
  await payAs(undefined, 'none too', 0);
  const free = ['none', 'none too', 'one 0', 'two'];
  await eventually(() => expect(arrived().toSorted((a, b) => a.localeCompare(b))).toEqual(free));
  for (const body of free) answerTo(body).resolve({ status: 200 });
  await eventually(() => expect(arrived().slice(4)).toEqual(['one 1']));
  answerTo('one 1').resolve({ status: 400 });
  await eventually(() => expect(arrived().slice(4)).toEqual(['one 1', 'one 2']));
  answerTo('one 2').resolve({ status: 200 });
});
