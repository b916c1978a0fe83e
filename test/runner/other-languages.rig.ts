import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { type Answer, runnerSecret, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { expectSound } from '../support/invariants.ts';
import { payFor } from '../support/payer.ts';
import { signalProcessesAround } from '../support/processes.ts';
import { soonMs } from '../support/time-limits.ts';
import { eventually } from '../support/wait.ts';
import {
  type Language,
  languageRunner,
  missingFor,
  pythonRunner,
  startRudeProxy,
} from './other-languages.ts';
import { keyOf, post, pushed } from './support.ts';

const chain = useChain();
const languages: readonly Language[] = ['Python', 'shell'];
const missing = new Map(languages.map((language) => [language, missingFor(language).length > 0]));

function startGateway(
  database: TestDatabase,
  more: { bind?: string; url?: string } = {},
): Promise<TestGateway> {
  const mode = more.url === undefined ? 'mode = "lease"' : `mode = "push"\nurl = "${more.url}"`;
  return startTestGateway({
    database,
    chain,
    tables: `[[runners]]\nservices = [1]\n${mode}\ntoken = "env:RUNNER_TOKEN"`,
    // a runner may be away for seconds
    constants: { delivery: { backoffCapMs: 100, maxAttempts: 1_000 } },
    ...(more.bind === undefined ? {} : { bind: more.bind }),
  });
}

async function pay(gateway: TestGateway, body: string): Promise<Answer> {
  const paid = await payFor(gateway, '/x402/jobs/1/0', body);
  expect(paid.status).toBe(202);
  return paid;
}

function receiptOf(gateway: TestGateway, { json }: Answer): Promise<Answer> {
  const headers = { authorization: `Bearer ${json.receipt_token}` };
  return gateway.get(`/x402/receipts/${json.quote_digest}`, headers);
}

async function resultOf(gateway: TestGateway, paid: Answer, state = 'completed') {
  return eventually(async () => {
    const { json } = await receiptOf(gateway, paid);
    expect(json.state).toBe(state);
    return json.result && { ...json.result, text: Buffer.from(json.result.body_base64, 'base64').toString() };
  });
}

async function lease(
  gateway: TestGateway,
  waitSecs = 0,
): Promise<{ call_id: number; lease_id: string; attempt: number }[]> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${runnerSecret}` };
  const body = JSON.stringify({ max: 1, lease_secs: 60, wait_secs: waitSecs });
  return (await gateway.post('/runner/leases', { body, headers })).json.calls;
}

const linesOf = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

describe.each(languages.filter((language) => !missing.get(language)))(
  'the runner in %s that leases calls',
  (language) => {
    test('completes, refuses and retries calls as its job says', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const runner = languageRunner(language);
      const program = runner.start({ gatewayUrl: gateway.url });
      const odd = 'two\nlines \u0000 and ü';
      const [echoed, refused, later] = [
        await pay(gateway, odd),
        await pay(gateway, 'refuse'),
        await pay(gateway, 'later'),
      ];
      expect(await resultOf(gateway, echoed)).toMatchObject({ content_type: 'application/x-odd', text: odd });
      await resultOf(gateway, refused, 'dead_lettered');
      expect(await resultOf(gateway, later)).toMatchObject({ text: 'later' });
      const { rows } = await database.pool.query('select last_error, attempt from tollbook.call');
      expect(rows).toEqual([{ last_error: expect.stringContaining('no such model') as string, attempt: 1 }]);
      expect(runner.runs()).toHaveLength(4);
      program.kill('SIGTERM');
      expect(await program.ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('stopped') as string,
      });
      await expectSound(database);
    });

    test('continues after the gateway was restarted, and reports what it finished meanwhile', async () => {
      const database = await createDatabase();
      const bind = `127.0.0.1:${await freePort()}`;
      const first = await startGateway(database, { bind });
      const runner = languageRunner(language);
      runner.start({ gatewayUrl: first.url });
      const paid = await pay(first, 'wait for me');
      await eventually(() => expect(runner.runs()).toHaveLength(1));
      await first.stop();
      runner.go();
      const second = await startGateway(database, { bind });
      expect(await resultOf(second, paid)).toMatchObject({ text: 'wait for me' });
      expect(await resultOf(second, await pay(second, 'another'))).toMatchObject({ text: 'another' });
      expect(runner.runs()).toHaveLength(2);
      await expectSound(database);
    });

    test('reports nothing for a call whose lease it has lost, and takes the next one', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const runner = languageRunner(language);
      const program = runner.start({ gatewayUrl: gateway.url });
      const paid = await pay(gateway, 'wait until the lease is lost');
      await eventually(() => expect(runner.runs()).toHaveLength(1));
      let ahead = 0;
      const [stolen] = await eventually(async () => {
        await database.moveClock((ahead += 60));
        const calls = await lease(gateway);
        expect(calls).toHaveLength(1);
        return calls;
      });
      // the shell's runner ends its command; that of Python cannot end a thread
      if (language === 'Python') runner.go();
      else await program.says(/lost/);
      const done = { lease_id: stolen?.lease_id, result: { body_base64: 'bXkgb3du' } };
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${runnerSecret}` };
      const path = `/runner/calls/${stolen?.call_id}/complete`;
      if (language === 'Python') await program.says(/another lease has it now/);
      expect((await gateway.post(path, { body: JSON.stringify(done), headers })).status).toBe(200);
      expect(await resultOf(gateway, paid)).toMatchObject({ text: 'my own' });
      expect(await resultOf(gateway, await pay(gateway, 'next'))).toMatchObject({ text: 'next' });
      await expectSound(database);
    });

    test('waits after 429, 503 and cut connections, and loses neither a call nor an attempt', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const proxy = await startRudeProxy(gateway.url);
      const busy = [{ status: 429, headers: { 'retry-after': '1' } }, { status: 503 }, 'cut'] as const;
      proxy.rule = (_, nth) => busy[nth - 1];
      const runner = languageRunner(language);
      runner.start({ gatewayUrl: `${proxy.url}/` });
      const paid = await pay(gateway, 'patience');
      expect(await resultOf(gateway, paid)).toMatchObject({ text: 'patience' });
      expect([proxy.seen('/leases') >= 4, proxy.seen('/complete')]).toEqual([true, 4]);
      const { rows } = await database.pool.query(
        `select data::json->>'attempt' as attempt from tollbook.event where type = 'completed'`,
      );
      expect(rows).toEqual([{ attempt: '1' }]);
      expect(runner.runs()).toHaveLength(1);
    });

    test('ends with an error when the gateway refuses its token', async () => {
      const gateway = await startGateway(await createDatabase());
      const proxy = await startRudeProxy(gateway.url);
      proxy.rule = () => ({ status: 401 });
      const ended = await languageRunner(language).start({ gatewayUrl: proxy.url }).ended;
      expect(ended).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/refuses this runner: 401/) as string,
      });
    });

    test('finishes and reports the call that runs when it is stopped, and takes no other', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const runner = languageRunner(language);
      const program = runner.start({ gatewayUrl: gateway.url });
      const paid = await pay(gateway, 'wait for the end');
      await eventually(() => expect(runner.runs()).toHaveLength(1));
      // to every process of it, as systemd does
      signalProcessesAround(runner.folder, 'SIGTERM');
      const next = await pay(gateway, 'next');
      runner.go();
      expect(await program.ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('stopped') as string,
      });
      expect(await resultOf(gateway, paid)).toMatchObject({ text: 'wait for the end' });
      expect(await lease(gateway, 5)).toMatchObject([{ call_id: next.json.call_id, attempt: 1 }]);
      expect(runner.runs()).toHaveLength(1);
    });

    test('ends immediately when it is stopped while it waits for a call, which the next runner gets as its first attempt', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const proxy = await startRudeProxy(gateway.url);
      const program = languageRunner(language).start({ gatewayUrl: proxy.url });
      await eventually(() => expect(proxy.seen('/leases')).toBe(1));
      const startedAt = performance.now();
      program.kill('SIGINT');
      // as from `timeout`, which sends its signal to the process and to its group
      program.kill('SIGTERM');
      expect(await program.ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('stopped') as string,
      });
      // it would have waited 20 seconds for a call
      expect(performance.now() - startedAt).toBeLessThan(soonMs(1_000));
      await pay(gateway, 'for the next runner');
      expect(await lease(gateway, 5)).toMatchObject([{ attempt: 1 }]);
    });

    test('reports a result that it could not report before it was killed, without a second run', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const proxy = await startRudeProxy(gateway.url);
      proxy.rule = (end) => (end === '/complete' ? { status: 503 } : undefined);
      const runner = languageRunner(language);
      const killed = runner.start({ gatewayUrl: proxy.url });
      const paid = await pay(gateway, 'once');
      await eventually(() => expect(proxy.seen('/complete')).toBeGreaterThan(0));
      killed.kill('SIGKILL');
      await killed.exited;
      await database.moveClock(60);
      runner.start({ gatewayUrl: gateway.url });
      expect(await resultOf(gateway, paid)).toMatchObject({ text: 'once' });
      expect(runner.runs()).toHaveLength(1);
      const { rows } = await database.pool.query(
        `select data::json->>'attempt' as attempt from tollbook.event where type = 'completed'`,
      );
      expect(rows).toEqual([{ attempt: '2' }]);
      await expectSound(database);
    });

    test('reports a result that the gateway refuses as a dead letter', async () => {
      const database = await createDatabase();
      const gateway = await startGateway(database);
      const proxy = await startRudeProxy(gateway.url);
      proxy.rule = (end) => (end === '/complete' ? { status: 413 } : undefined);
      languageRunner(language).start({ gatewayUrl: proxy.url });
      await resultOf(gateway, await pay(gateway, 'too large'), 'dead_lettered');
      const { rows } = await database.pool.query('select last_error from tollbook.call');
      expect(rows).toEqual([{ last_error: 'the gateway refused the result: 413' }]);
    });
  },
);

async function startPython() {
  const database = await createDatabase();
  const port = await freePort();
  const runner = languageRunner('Python');
  const program = runner.start({ port });
  await program.says(/listening/);
  return { database, runner, program, url: `http://127.0.0.1:${port}/calls` };
}

/** A call as the gateway signs it. */
const call = (change: Parameters<typeof pushed>[0] = {}) => pushed({ ...change, secret: runnerSecret });

describe.skipIf(missing.get('Python'))('the runner in Python that calls are pushed to', () => {
  test('completes, refuses and retries calls as its job says', async () => {
    const { database, runner, url } = await startPython();
    const gateway = await startGateway(database, { url });
    const [echoed, refused, later] = [
      await pay(gateway, 'some words'),
      await pay(gateway, 'refuse'),
      await pay(gateway, 'later'),
    ];
    expect(await resultOf(gateway, echoed)).toMatchObject({
      content_type: 'application/x-odd',
      text: 'some words',
    });
    await resultOf(gateway, refused, 'dead_lettered');
    expect(await resultOf(gateway, later)).toMatchObject({ text: 'later' });
    const { rows } = await database.pool.query('select last_error from tollbook.call');
    expect(rows).toEqual([{ last_error: 'status 422: no such model' }]);
    expect(runner.runs()).toHaveLength(4);
    await expectSound(database);
  });

  test('runs no call that is not signed, that it has no job for, or that another trigger made', async () => {
    const { runner, url } = await startPython();
    const signed = call();
    const { 'x-net-metadata-signature': _, ...without } = signed.headers;
    const wrong = [
      { ...signed, body: Buffer.from('another body') },
      { ...signed, headers: { ...signed.headers, 'x-net-caller': '0x01' } },
      { ...signed, headers: without },
      pushed({}),
    ];
    const statuses = async (calls: readonly ReturnType<typeof pushed>[]) =>
      Promise.all(calls.map(async (one) => (await post(url, one)).status));
    expect(await statuses(wrong)).toEqual([401, 401, 401, 401]);
    expect(await statuses([call({ serviceId: 9 }), call({ trigger: 'cron' })])).toEqual([422, 422]);
    expect(runner.runs()).toEqual([]);
  });

  test('runs a call once that is delivered again, while it runs, later and after a restart', async () => {
    const { runner, program, url } = await startPython();
    const twice = [post(url, call({ body: 'wait' })), post(url, call({ body: 'wait', attempt: 2 }))];
    await eventually(() => expect(runner.runs()).toHaveLength(1));
    runner.go();
    const answers = await Promise.all(twice);
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual(['wait', 'wait']);
    expect(await (await post(url, call({ body: 'wait', attempt: 3 }))).text()).toBe('wait');
    program.kill('SIGTERM');
    expect((await program.ended).code).toBe(0);
    await runner.start({ port: Number(new URL(url).port) }).says(/listening/);
    expect(await (await post(url, call({ body: 'wait', attempt: 4 }))).text()).toBe('wait');
    expect(runner.runs()).toEqual([expect.stringMatching(new RegExp(`^${keyOf(7)} [12]$`))]);
  });

  test('answers the call that runs when it is stopped, then ends', async () => {
    const { database, runner, program, url } = await startPython();
    const gateway = await startGateway(database, { url });
    const paid = await pay(gateway, 'wait for the end');
    await eventually(() => expect(runner.runs()).toHaveLength(1));
    program.kill('SIGTERM');
    const next = await pay(gateway, 'for the next runner');
    runner.go();
    expect((await program.ended).code).toBe(0);
    expect(await resultOf(gateway, paid)).toMatchObject({ text: 'wait for the end' });
    runner.start({ port: Number(new URL(url).port) });
    expect(await resultOf(gateway, next)).toMatchObject({ text: 'for the next runner' });
    expect(runner.runs()).toHaveLength(2);
    await expectSound(database);
  });

  test('accepts and refuses the test vectors of the signatures as the gateway does', () => {
    const program = `
import base64, json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from runner import verify
for case in map(json.loads, open(sys.argv[2])):
    try:
        verify(case["token"], case["headers"], base64.b64decode(case["body_base64"]), case["now_secs"])
        refusal = None
    except ValueError as reason:
        refusal = str(reason)
    print(json.dumps([case["name"], refusal]))
`;
    const vectors = new URL('../payments/rules/call-signature.vectors.jsonl', import.meta.url).pathname;
    const { PATH = '' } = processEnvironment();
    const args = ['-c', program, new URL('.', `file://${pythonRunner}`).pathname, vectors];
    const printed = execFileSync('python3', args, { encoding: 'utf8', env: { PATH } });
    const found = linesOf(printed);
    const cases = linesOf(readFileSync(vectors, 'utf8')) as { name: string; refusal: string | null }[];
    expect(found).toEqual(cases.map(({ name, refusal }) => [name, refusal]));
    expect(found.length).toBe(64);
  });
});
