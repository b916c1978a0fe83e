import { startModelUpstream } from '../../src/devnet/model-upstream.ts';
import { oneModel } from './chat-gateway.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import type { TestChain } from './devnet.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { type Browser, createBrowser, identitySecret } from './identity.ts';
import { startTestRunner, type Delivery, type Reaction, type TestRunner } from './runner.ts';
import { whenOver } from './shared.ts';

export interface JobsSite extends TestGateway {
  readonly database: TestDatabase;
  readonly runner: TestRunner;
  /** What its configuration is made from, for a reload. */
  readonly options: TestGatewayOptions;
  browser(address?: string): Browser;
}

/** What marks turn around, and what a page that does not escape would run. */
export const hostile = '\u202e<img src=x onerror=alert(1)>"\'';

/** Every kind of control that a form has. */
export const richSchema = {
  type: 'object',
  title: 'Translation',
  required: ['text', 'to', 'address'],
  additionalProperties: false,
  properties: {
    text: {
      type: 'string',
      title: 'Text',
      description: 'What is translated.',
      minLength: 2,
      maxLength: 2_000,
    },
    to: { type: 'string', title: 'Language', enum: ['de', 'fr', `x"${hostile}`] },
    formal: { type: 'boolean', title: 'Formal' },
    copies: { type: 'integer', title: 'Copies', minimum: 1, maximum: 9, default: 1 },
    warmth: { type: 'number', title: 'Warmth', minimum: 0, maximum: 1, examples: [0.5] },
    tags: { type: 'array', title: 'Tags', items: { type: 'string' }, maxItems: 3 },
    styles: {
      type: 'array',
      title: 'Styles',
      uniqueItems: true,
      items: { enum: ['short', 'plain', hostile] },
    },
    address: {
      type: 'object',
      title: 'Sender',
      required: ['city'],
      properties: { city: { type: 'string', title: 'City', maxLength: 40 }, 'a/b~c d': { type: 'integer' } },
    },
    more: { title: `More ${hostile}`, anyOf: [{ type: 'object' }, { type: 'null' }] },
  },
};

const outputSchema = {
  type: 'object',
  description: `The translation, and how sure it is ${hostile}`,
  properties: {
    translation: { type: 'string', description: 'The text in the other language.' },
    score: { type: 'number', title: 'Certainty', description: '0 to 1' },
  },
};

/** A schema that is nested as deep as that. */
export function nested(depth: number): object {
  let schema: object = { type: 'string' };
  for (let at = 0; at < depth; at++)
    schema = { type: 'object', required: ['in'], properties: { in: schema } };
  return schema;
}

const policy = (index: number, more: string): string => `
[[job_policies]]
service_id = 1
job_index = ${index}
${/invocation_mode/.test(more) ? '' : 'invocation_mode = "public_paid"'}
${more}
`;

const jobs = ({ registry, rpcUrl }: Pick<TestChain, 'registry' | 'rpcUrl'>): string => `
[job_prices.1]
${[0, 1, 2, 3, 4, 5].map((index) => `${index} = "${index === 1 ? 1 : 1_000_000_000_000_000}"`).join('\n')}
6 = "1.5 USD"
${policy(0, 'name = "Translate a text"\ndescription = "Translates a text into another language, in the tone that you choose."\ninput_schema_file = "rich.json"\noutput_schema_file = "output.json"')}
${policy(1, 'name = "Echo"\ndescription = "Gives back what it gets."')}
${policy(2, `name = ${JSON.stringify(`<b>bold</b> "x" 'y' &amp;`)}\ndescription = "<script>alert(1)</script>"\ninput_schema_file = "deep.json"`)}
${policy(3, `invocation_mode = "restricted_paid"\nname = "For members"\nauth_mode = "payer_is_caller"\nnet_rpc_url = "${rpcUrl}"\nnet_contract = "${registry}"`)}
${policy(4, `invocation_mode = "restricted_paid"\nname = "For signed callers"\nauth_mode = "delegated_caller_signature"\nnet_rpc_url = "${rpcUrl}"\nnet_contract = "${registry}"`)}
${policy(5, 'name = "Sharpen a picture"\ncontent_type = "image/png"')}
${policy(6, 'name = "Any JSON"\ncontent_type = "application/json"')}
`;

/** A gateway with pages that sells jobs, whose ledger is sealed. */
export async function startJobsSite(
  chain: TestChain,
  behave: (delivery: Delivery) => Reaction | Promise<Reaction>,
  {
    tables = '',
    hasModels = true,
    ...options
  }: Partial<TestGatewayOptions> & { readonly hasModels?: boolean } = {},
): Promise<JobsSite> {
  const runner = await startTestRunner(behave);
  const database = options.database ?? (await createDatabase());
  const given: TestGatewayOptions = {
    database,
    chain,
    runnerUrl: runner.url,
    jobs: jobs(chain),
    files: {
      'rich.json': JSON.stringify(richSchema),
      'output.json': JSON.stringify(outputSchema),
      'deep.json': JSON.stringify(nested(200)),
    },
    top: `features = ["x402"${hasModels ? ', "chat"' : ''}]`,
    env: { IDENTITY_SECRET: identitySecret, LOG_KEY: '2a'.repeat(32) },
    ...options,
    tables: `
[identity]
secret = "env:IDENTITY_SECRET"
[log]
origin = "jobs.example/log"
key = "env:LOG_KEY"
[pages]
name = "Testbook"
${hasModels ? await models() : ''}
${tables}`,
  };
  const gateway = await startTestGateway(given);
  return {
    ...gateway,
    options: given,
    database,
    runner,
    browser: (address = '203.0.113.1') => createBrowser(gateway.url, address),
  };
}

async function models(): Promise<string> {
  const model = await startModelUpstream({ port: 0 });
  whenOver(() => model.close());
  return oneModel(model.url);
}

/** Answers with what it got. */
export const echo = ({ body }: Delivery): Reaction => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body,
});
