import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { llmsText } from '../../../src/jobs/http/llms-text.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();

const policy = (service: number, index: number, keys: string) =>
  `[[job_policies]]\nservice_id = ${service}\njob_index = ${index}\n${keys}\n`;
const jobs = `
[job_prices.10]
0 = "1000000000000000"
[job_prices.2]
1 = "1"
0 = "1000000000000000"
2 = "5"
${policy(10, 0, 'invocation_mode = "public_paid"\nname = "Reverse"\ndescription = "Reverses a text"')}
${policy(2, 1, 'invocation_mode = "public_paid"\ndescription = "[evil](https://evil.example) # not a heading"\ninput_schema_file = "in.json"')}
${policy(2, 0, 'invocation_mode = "disabled"\nname = "a name of what is not sold"')}`;
const restricted = (registry: string, rpcUrl: string) =>
  policy(
    2,
    2,
    `invocation_mode = "restricted_paid"\nauth_mode = "payer_is_caller"\nnet_rpc_url = "${rpcUrl}"\nnet_contract = "${registry}"`,
  );

async function start(options: { runnerUrl?: string; top?: string } = {}) {
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain,
    jobs: jobs + restricted(chain.registry, chain.rpcUrl),
    files: { 'in.json': '{"type":"object","required":["text"]}' },
    change: (text) => text.replace('services = [1]', 'services = [10]'),
    ...options,
  });
  return { gateway, check: await documentOf(gateway) };
}

/** The parts of a text in the form of llmstxt.org; throws if it has another form. */
function readLlmsText(text: string) {
  const match = /^# ([^\n]+)\n\n> ([^\n]+)\n\n([^]*?)\n\n(?=## )([^]*)$/.exec(text);
  if (!match) throw new Error('no H1, summary and sections');
  const [, title = '', summary = '', notes = '', rest = ''] = match;
  if (/^#/m.test(notes)) throw new Error('a heading among the notes');
  const sections = rest.split(/^## /m).slice(1);
  return {
    title,
    summary,
    notes,
    sections: new Map(
      sections.map((section) => {
        const [heading = '', blank, ...lines] = section.trimEnd().split('\n');
        if (blank !== '' && blank !== undefined) throw new Error(`text below ${heading}`);
        const links = lines.map((line) => {
          const link = /^- \[((?:\\.|[^[\]\\])+)\]\(([^()\s]+)\): (.+)$/.exec(line);
          if (!link) throw new Error(`no link: ${line}`);
          return { name: link[1]!, url: link[2]!, about: link[3]! };
        });
        return [heading, links] as const;
      }),
    ),
  };
}

test('an agent that follows the text of /llms.txt alone buys a call and reads its result', async () => {
  const runner = await startTestRunner(({ body }) => ({
    status: 200,
    headers: { 'content-type': 'text/plain' },
    body: body.toString().split('').toReversed().join(''),
  }));
  const { gateway } = await start({ runnerUrl: runner.url });
  const { notes, sections } = readLlmsText((await gateway.get('/llms.txt')).text);
  const { url } = sections.get('Jobs')!.find(({ about }) => about.startsWith('Reverses a text.'))!;

  // 1: what is asked for is in the header that the text names
  const [asked, paid] = [...notes.matchAll(/`(PAYMENT-[A-Z]+)`/g)].map(([, name = '']) => name);
  const first = await fetch(url, { method: 'POST', body: 'stressed' });
  const required = JSON.parse(Buffer.from(first.headers.get(asked!)!, 'base64').toString());
  // 2: the type that the text writes out, in the domain that it describes
  const [, type, fields = ''] = /`(\w+)\((address from[^)]+)\)`/.exec(notes)!;
  const types = fields.split(',').map((field) => {
    const [kind = '', name = ''] = field.split(' ');
    return { type: kind, name };
  });
  const [entry] = required.accepts;
  const account = privateKeyToAccount(devnetKeys.payer);
  const authorization = {
    from: account.address,
    to: entry.payTo as Hex,
    value: entry.amount as string,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1_000) + entry.maxTimeoutSeconds),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  const signature = await account.signTypedData({
    domain: {
      name: entry.extra.name,
      version: entry.extra.version,
      chainId: Number(entry.network.split(':')[1]),
      verifyingContract: entry.asset,
    },
    types: { [type!]: types },
    primaryType: type!,
    message: authorization,
  });
  // 3
  const payment = { x402Version: 2, accepted: entry, payload: { signature, authorization } };
  const second = await fetch(url, {
    method: 'POST',
    body: 'stressed',
    headers: { [paid!]: Buffer.from(JSON.stringify(payment)).toString('base64') },
  });
  expect(second.status).toBe(202);
  // 4 and 5
  const { receipt_url: receiptUrl, receipt_token: token } = (await second.json()) as Record<string, string>;
  await eventually(async () => {
    const answer = await fetch(receiptUrl!, { headers: { authorization: `Bearer ${token}` } });
    const receipt = (await answer.json()) as { state: string; result: { body_base64: string } };
    expect(receipt.state).toBe('completed');
    expect(Buffer.from(receipt.result.body_base64, 'base64').toString()).toBe('desserts');
  });
});

test('the catalogue, /llms.txt and /.well-known/x402 list exactly the jobs that are sold, at the price of each', async () => {
  const { gateway, check } = await start();
  const catalogue = await gateway.get('/x402/jobs');
  expect(check('GET', '/x402/jobs', catalogue)).toEqual([]);
  const ids = ['2/1', '2/2', '10/0'];
  const prices = await Promise.all(ids.map((id) => gateway.get(`/x402/jobs/${id}/price`)));
  expect(catalogue.json).toEqual({ jobs: prices.map(({ json }) => json), next: null });
  expect(catalogue.json.jobs.map((job: { auth_mode?: string }) => job.auth_mode)).toEqual([
    undefined,
    'payer_is_caller',
    undefined,
  ]);
  expect(catalogue.json.jobs[0].input).toEqual({
    content_type: 'application/json',
    json_schema: { type: 'object', required: ['text'] },
  });

  const text = await gateway.get('/llms.txt');
  expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(check('GET', '/llms.txt', text)).toEqual([]);
  const urls = ids.map((id) => `${gateway.url}/x402/jobs/${id}`);
  const { sections } = readLlmsText(text.text);
  expect(sections.get('Jobs')!.map(({ url }) => url)).toEqual(urls);
  expect(sections.get('Jobs')!.map(({ name }) => name)).toEqual(['Job 2/1', 'Job 2/2', 'Reverse (Job 10/0)']);
  expect(sections.get('Jobs')![2]!.about).toBe(
    'Reverses a text. Price: 3.264000 USDC on eip155:84532 or 3.264000 EURC on eip155:84532. Body: any.',
  );
  for (const { url } of [...sections.get('Documents')!, ...sections.get('Optional')!])
    expect((await fetch(url)).status).toBe(200);

  const known = await gateway.get('/.well-known/x402');
  expect(check('GET', '/.well-known/x402', known)).toEqual([]);
  // what x402scan's crawler reads
  const crawled = z.object({ version: z.literal(1), resources: z.array(z.url()), instructions: z.string() });
  expect(crawled.parse(known.json).resources).toEqual(urls);
  const accepts = known.json.items.map((item: { accepts: { amount: string }[] }) =>
    item.accepts.map(({ amount }) => amount),
  );
  expect(accepts).toEqual(
    prices.map(({ json }) => json.settlement_options.map(({ amount }: { amount: string }) => amount)),
  );

  for (const answer of [catalogue, text, known]) {
    expect(answer.text).not.toContain('a name of what');
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
  }
  for (const path of ['/x402/jobs', '/llms.txt', '/.well-known/x402']) {
    const tag = (await gateway.get(path)).headers.get('etag') ?? '';
    expect(await gateway.get(path, { 'if-none-match': tag })).toMatchObject({ status: 304, text: '' });
  }
});

test('the pages of the catalogue are linked by cursors; another cursor and another limit are refused', async () => {
  const { gateway, check } = await start();
  const seen: string[] = [];
  let next: string | null = '';
  while (next !== null) {
    const path: string = `/x402/jobs?limit=1${next === '' ? '' : `&cursor=${next}`}`;
    const { json } = await gateway.get(path);
    expect(json.jobs).toHaveLength(1);
    seen.push(`${json.jobs[0].service_id}/${json.jobs[0].job_index}`);
    next = json.next;
  }
  expect(seen).toEqual(['2/1', '2/2', '10/0']);
  // a job that is no longer sold was a place all the same
  expect((await gateway.get('/x402/jobs?cursor=2-0')).json.jobs).toHaveLength(3);
  for (const [query, code] of [
    ['cursor=2', 'invalid_cursor'],
    ['cursor=02-1', 'invalid_cursor'],
    ['cursor=2-99999999999', 'invalid_cursor'],
    ['limit=0', 'invalid_request'],
    ['limit=101', 'invalid_request'],
    ['offset=1', 'invalid_request'],
  ]) {
    const answer = await gateway.get(`/x402/jobs?${query}`);
    expect([answer.status, answer.json.code]).toEqual([400, code]);
    expect(check('GET', '/x402/jobs', answer)).toEqual([]);
  }
});

const endpoint = 'https://jobs.example/x402/jobs/1/0';
const option = {
  protocol: 'x402',
  scheme: 'exact',
  network: 'eip155:8453',
  asset: `0x${'1'.repeat(40)}`,
  symbol: 'USDC',
  decimals: 6,
  amount: '3264000',
  pay_to: `0x${'2'.repeat(40)}`,
  x402_endpoint: endpoint,
} as const;

test("no text of the operator changes the form of /llms.txt: each job stays one line, and its link stays the job's", () => {
  const markdown = fc.constantFrom(
    '[',
    ']',
    '(',
    ')',
    '<',
    '>',
    '`',
    '*',
    '_',
    '#',
    '|',
    '~',
    '!',
    '\\',
    '-',
    ':',
    '\n',
    '\r',
    '\t',
    '\u2028',
    ' ',
    'https://evil.example',
    '## ',
    '](x)',
  );
  const anyText = fc.string({
    unit: fc.oneof(markdown, fc.string({ maxLength: 3 })),
    minLength: 1,
    maxLength: 20,
  });
  const texts = fc.array(fc.record({ name: anyText, description: anyText }), { maxLength: 4 });
  fc.assert(
    fc.property(texts, (said) => {
      const sold = said.map((each, index) => ({
        service_id: 1,
        job_index: index,
        ...each,
        price: '0.000000000000000001 ether',
        price_wei: '1',
        invocation_mode: 'public_paid' as const,
        settlement_options: [option],
        x402_endpoint: endpoint,
      }));
      const publicUrl = 'https://jobs.example';
      const read = readLlmsText(llmsText({ publicUrl, jobs: sold, total: sold.length }));
      expect([...read.sections.keys()]).toEqual(['Jobs', 'Documents', 'Optional']);
      expect(read.sections.get('Jobs')!.map(({ url }) => url)).toEqual(sold.map(() => endpoint));
      for (const { about } of read.sections.get('Jobs')!) expect(about).not.toMatch(/(?<!\\)[[\]<>`]/);
    }),
    propertyRuns(),
  );
});
