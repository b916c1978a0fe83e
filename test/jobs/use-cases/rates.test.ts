import { expect, onTestFinished, test, vi } from 'vitest';
import { laneOn } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway, testConfig, type TestGateway } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, signOffer, v1Header } from '../../support/payer.ts';
import { operatorOf } from '../../support/operator.ts';
import { startRateSource, type TestRateSource } from '../../support/rate-source.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';

const httpSource = (source: TestRateSource, keys = '') =>
  `[[accepted_tokens.rates]]\nkind = "http"\nurl = "${source.url}"\npointer = "/rate"\n${keys}\n`;

/** The first token's rate is from these sources; the second one is not accepted unless asked for. */
function withSources(sources: string, { keys = '', keepsEuros = false } = {}) {
  return (text: string): string => {
    const [head = '', usdc = '', euros = ''] = text.split('[[accepted_tokens]]');
    const [, rest = ''] = euros.split(/(?=\n\[job_prices)/);
    const tokens = `${head}[[accepted_tokens]]${usdc}${keys}\n${sources}\n`;
    return keepsEuros ? `${tokens}[[accepted_tokens]]${euros}` : tokens + rest;
  };
}

const bodyAt = (secs: number): string => JSON.stringify({ rate: '3200', at: secs });
const nowSecs = (): number => Math.floor(Date.now() / 1_000);

/** Has the sources asked at once, in place of some time before the rate is too old. */
const askSoon = ({ asOwner }: TestDatabase) =>
  asOwner((owner) => owner.query(`update tollbook.task set due_at = now() where kind = 'rate'`));

async function amountOf(gateway: TestGateway): Promise<string | undefined> {
  const { json } = await gateway.get(`${job}/price`);
  return json.settlement_options[0]?.amount;
}

test('a payer pays what one gateway quoted where the rate moves by 10 % before the payment at another one, in both versions', async () => {
  const source = await startRateSource('{"rate": 3200.00}');
  const database = await createDatabase();
  const change = withSources(httpSource(source));
  const first = await startTestGateway({ database, chain, change });
  const second = await startTestGateway({ database, chain, change });
  const amounts = () => Promise.all([first, second].map(amountOf));
  await eventually(async () => expect(await amounts()).toEqual(['3264000', '3264000']));
  const offer = offerOf(await first.post(job, { body: 'x' }));
  const offerV1 = offerOf(await first.post(job, { body: 'y' }));
  source.body = '{"rate": "3520.0"}';
  await askSoon(database);
  await eventually(async () => expect(await amounts()).toEqual(['3590400', '3590400']));

  const paid = await second.post(job, { body: 'x', headers: header(await signOffer(offer)) });
  expect(paid).toMatchObject({ status: 202, json: { payment: { amount: '3264000' } } });
  const paidV1 = await second.post(job, { body: 'y', headers: v1Header(await signOffer(offerV1)) });
  expect(paidV1).toMatchObject({ status: 202, json: { payment: { amount: '3264000' } } });

  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const changes = events.filter(({ type }) => type === 'rate_changed').map(({ data }) => data);
  const named = { network: 'eip155:84532', asset: chain.token, symbol: 'USDC' };
  expect(changes).toEqual([
    expect.objectContaining({ ...named, rate: '3200' }),
    expect.objectContaining({ ...named, previous_rate: '3200', rate: '3520' }),
  ]);
});

test('the offer of a token whose source is frozen beyond its age is gone from every gateway within a second, and comes back', async () => {
  const source = await startRateSource(bodyAt(nowSecs()));
  const database = await createDatabase();
  const change = withSources(httpSource(source, 'time_pointer = "/at"'), { keys: 'rate_max_age_secs = 3' });
  const gateway = await startTestGateway({ database, chain, change });
  const other = await startTestGateway({ database, chain, change });
  let frozenAt = 0;
  const offer = await eventually(async () => {
    frozenAt = nowSecs();
    source.body = bodyAt(frozenAt);
    const answer = await other.post(job, { body: 'x' });
    expect(answer.status).toBe(402);
    expect(await amountOf(gateway)).toBe('3264000');
    return offerOf(answer);
  });
  let lastOfferedAt = 0;
  await eventually(async () => {
    const askedAt = Date.now() / 1_000;
    const amounts = await Promise.all([gateway, other].map(amountOf));
    if (amounts.some((amount) => amount !== undefined)) lastOfferedAt = askedAt;
    expect(amounts).toEqual([undefined, undefined]);
  });
  // an answer may come late on a busy machine, and its question may not
  expect(lastOfferedAt).toBeLessThan(frozenAt + 3 + 1);
  expect((await gateway.get(`${job}/price`)).json).toMatchObject({
    price_wei: '1000000000000000',
    settlement_options: [],
    unavailable: { reason: 'no_current_rate' },
  });
  const refused = await gateway.post(job, { body: 'y' });
  expect(refused).toMatchObject({ status: 503, json: { code: 'no_current_rate' } });
  expect(refused.headers.get('retry-after')).toBe('5');
  const payment = await signOffer(offer);
  const { payload } = payment;
  for (const value of ['abc', '0x31ce00', '1e6', `1${'0'.repeat(90)}`, '3264001']) {
    const signed = { ...payload, authorization: { ...payload.authorization, value } };
    const answer = await gateway.post(job, { body: 'x', headers: v1Header({ payload: signed }) });
    expect(answer).toMatchObject({ status: 503, json: { code: 'no_current_rate' } });
  }
  const paid = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(paid).toMatchObject({ status: 202, json: { payment: { amount: '3264000' } } });

  await eventually(async () => {
    const events = await allEvents(database.db);
    expect(events.filter(({ type }) => type === 'rate_changed').at(-1)?.data).toMatchObject({
      previous_rate: '3200',
      reason: 'too_few_sources',
    });
  });
  await eventually(async () => {
    source.body = bodyAt(nowSecs());
    expect(await Promise.all([gateway, other].map(amountOf))).toEqual(['3264000', '3264000']);
  });
});

test('sources that disagree take their token out of the offers immediately, and the other token stays', async () => {
  const [first, second] = [await startRateSource('{"rate": 3200}'), await startRateSource('{"rate": 3210}')];
  const database = await createDatabase();
  const change = withSources(httpSource(first) + httpSource(second), { keepsEuros: true });
  const gateway = await startTestGateway({ database, chain, change });
  const offered = async (): Promise<string[]> => {
    const { json } = await gateway.get(`${job}/price`);
    return json.settlement_options.map(({ symbol, amount }: Record<string, string>) => `${amount} ${symbol}`);
  };
  await eventually(async () => expect(await offered()).toEqual(['3269100 USDC', '3264000 EURC']));
  second.body = '{"rate": 4000}';
  await askSoon(database);
  await eventually(async () => expect(await offered()).toEqual(['3264000 EURC']));
  const { json } = await gateway.get(`${job}/price`);
  expect(json.not_offered).toEqual([
    { network: 'eip155:84532', asset: chain.token, symbol: 'USDC', reason: 'no_current_rate' },
  ]);
  const answer = await gateway.post(job, { body: 'x' });
  expect(answer.status).toBe(402);
  expect(answer.json.not_offered).toEqual(json.not_offered);
  expect(offerOf(answer).accepts).toHaveLength(1);

  // a version 1 payment names no token: its signature does
  expect(answer.json.accepts).toEqual([expect.objectContaining({ asset: chain.secondToken })]);
  const signV1 = async () => v1Header(await signOffer(offerOf(answer)));
  const paid = { status: 202, json: { payment: { amount: '3264000', symbol: 'EURC' } } };
  expect(await gateway.post(job, { body: 'x', headers: await signV1() })).toMatchObject(paid);
  const late = await signV1();
  second.body = '{"rate": 3210}';
  await eventually(async () => expect(await offered()).toEqual(['3269100 USDC', '3264000 EURC']));
  expect(await gateway.post(job, { body: 'x', headers: late })).toMatchObject(paid);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a payment that landed is recognised by a ledger that lost it, also in a token whose rate that never knew', async () => {
  const offering = await startTestGateway({ database: await createDatabase(), chain });
  const offer = offerOf(await offering.post(job, { body: 'x' }));
  const payment = await signOffer(offer);
  const again = offerOf(await offering.post(job, { body: 'x' }));
  const paymentV1 = await signOffer(again, { option: 1 });
  for (const headers of [header(payment), header(paymentV1)])
    expect((await offering.post(job, { body: 'x', headers })).status).toBe(202);

  const source = await startRateSource('');
  const change = (text: string): string =>
    `${text.replace('rate_per_native_unit = "3200.00"', '')}\n`.replaceAll(
      /(eip712_version = "2"\n)/g,
      `$1${httpSource(source)}`,
    );
  const gateway = await startTestGateway({ database: await createDatabase(), chain, change });
  const named = await gateway.post(job, { body: 'x', headers: header(payment) });
  expect(named).toMatchObject({ status: 503, json: { code: 'payment_unrecorded' } });
  // version 1 names no offer: the payee is this ledger's alone
  const unnamed = await gateway.post(job, { body: 'x', headers: v1Header(paymentV1) });
  expect(unnamed).toMatchObject({ status: 409, json: { code: 'payment_recovered' } });
});

test('two gateways share the rounds of a rate: one of them asks, and both offer the new rate', async () => {
  const source = await startRateSource('{"rate": 3200}');
  const database = await createDatabase();
  const options = { database, chain, change: withSources(httpSource(source)) };
  const gateways = [await startTestGateway(options), await startTestGateway(options)];
  const amounts = () => Promise.all(gateways.map(amountOf));
  await eventually(async () => expect(await amounts()).toEqual(['3264000', '3264000']));
  expect(source.asked).toBe(1);
  source.body = '{"rate": 3520}';
  await askSoon(database);
  await eventually(async () => expect(await amounts()).toEqual(['3590400', '3590400']));
  expect(source.asked).toBe(2);
  const events = await allEvents(database.db);
  const changes = events.filter((event) => event.type === 'rate_changed');
  expect(changes.map(({ data }) => data)).toEqual([
    expect.objectContaining({ rate: '3200' }),
    expect.objectContaining({ rate: '3520' }),
  ]);

  // a gateway that is killed behind its event ends no round: the next one records what is in force
  const [stream, data] = [changes[1]!.stream, { ...changes[1]!.data, rate: '9999' }];
  const lane = laneOn(database);
  onTestFinished(() => lane.close());
  await lane.append({ stream, events: [{ type: 'rate_changed', data }] });
  await askSoon(database);
  await eventually(async () =>
    expect((await allEvents(database.db)).at(-1)?.data).toMatchObject({
      previous_rate: '9999',
      rate: '3520',
    }),
  );
  expect(await amounts()).toEqual(['3590400', '3590400']);

  // the database's clock goes back by an hour: neither is the next round an hour away, nor does this one last this long
  source.body = '{"rate": 3200}';
  await database.moveClock(-3_600);
  await eventually(async () => expect(await amounts()).toEqual(['3264000', '3264000']));
});

test('a rate ends by the clock of the database, whatever the clock of the machine does', async () => {
  const source = await startRateSource('{"rate": 3200}');
  const database = await createDatabase();
  const change = withSources(httpSource(source), { keys: 'rate_max_age_secs = 2' });
  const gateway = await startTestGateway({ database, chain, change });
  await eventually(async () => expect(await amountOf(gateway)).toBe('3264000'));
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  source.status = 500;
  await eventually(async () => expect(await amountOf(gateway)).toBe(undefined));
});

test('a fixed rate that is older than allowed is still offered, and /status, the alert and the metric say that it is old until it is changed', async () => {
  const database = await createDatabase();
  const options = {
    database,
    chain,
    change: (text: string) => text.replaceAll(/^eip712_version = .*$/gm, '$&\nrate_max_age_secs = 60'),
    tables: '[metrics]\ntoken = "env:METRICS_TOKEN"',
    env: { METRICS_TOKEN: 'a-token-of-the-metrics-with-32-letters' },
  };
  await startTestGateway(options);
  await database.asOwner((owner) =>
    eventually(async () => {
      const { rowCount } = await owner.query(
        `update tollbook.task
         set payload = jsonb_set(payload::jsonb, '{observed_at}', to_jsonb(extract(epoch from now()) - 61))
         where kind = 'rate' and payload->>'observed_at' is not null`,
      );
      expect(rowCount).toBe(2);
    }),
  );
  const gateway = await startTestGateway(options);
  const operator = await operatorOf(database, ['status:read']);
  const old = {
    ok: false,
    detail: expect.stringMatching(/^the fixed rate is \d+ s old, and 60 s are allowed$/),
  };
  await eventually(async () =>
    expect((await gateway.get('/status', operator)).json).toMatchObject({
      jobs: { status: 'degraded', rates: { 'USDC on eip155:84532': old, 'EURC on eip155:84532': old } },
    }),
  );
  expect(await amountOf(gateway)).toBe('3264000');
  const rateCurrent = async (symbol: string): Promise<string | undefined> => {
    const { text } = await gateway.get('/metrics', { authorization: `Bearer ${options.env.METRICS_TOKEN}` });
    const line = `tollbook_rate_current{network="eip155:84532",symbol="${symbol}"} `;
    return text
      .split('\n')
      .find((one) => one.startsWith(line))
      ?.slice(line.length);
  };
  expect(await Promise.all(['USDC', 'EURC'].map(rateCurrent))).toEqual(['0', '0']);
  await eventually(async () => {
    const { rows } = await database.pool.query(
      `select subject from tollbook.alert where kind = 'rate_old' and is_firing order by subject`,
    );
    expect(rows.map(({ subject }) => subject)).toEqual(['EURC on eip155:84532', 'USDC on eip155:84532']);
  });
  await gateway.reload(
    await testConfig({ ...options, change: (text) => text.replace('3200.00', '3201.00') }),
  );
  await eventually(async () =>
    expect(await Promise.all(['USDC', 'EURC'].map(rateCurrent))).toEqual(['1', '1']),
  );
});
