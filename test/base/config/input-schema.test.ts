import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/config/mistakes.ts';
import { parseConfig } from '../../../src/base/config/load.ts';

const text = `bind_address = "127.0.0.1:8402"
facilitator_url = "http://127.0.0.1:8413"
rate_per_native_unit = "3200"
[[networks]]
id = "eip155:84532"
rpc_url = "http://127.0.0.1:8412"
[[accepted_tokens]]
network = "eip155:84532"
asset = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
symbol = "USDC"
decimals = 6
pay_to = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
eip712_name = "USD Coin"
eip712_version = "2"
[job_prices.1]
0 = "1"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
`;

function load(policy: string, schema: string) {
  return parseConfig(text + policy, {
    file: '/etc/tollbook/tollbook.toml',
    env: {},
    readFile: async (path) => {
      if (path !== '/etc/tollbook/in.json') throw Object.assign(new Error('no'), { code: 'ENOENT' });
      return schema;
    },
  });
}

async function mistakeOf(policy: string, schema = '{}'): Promise<unknown> {
  const error: unknown = await load(policy, schema).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConfigError);
  return (error as ConfigError).mistakes;
}

test('a schema is read relative to the configuration, and implies JSON when no content type is configured', async () => {
  const { config } = await load('input_schema_file = "in.json"', '{"type":"object"}');
  expect(config.jobs?.jobPolicies.get('1/0')?.input).toEqual({
    contentType: 'application/json',
    schema: { type: 'object' },
  });
});

test.each([
  ['a missing file', 'input_schema_file = "other.json"', '{}', /there is no such file/],
  ['a file that is not JSON', 'input_schema_file = "in.json"', '{', /JSON/],
  ['a schema that is a list', 'input_schema_file = "in.json"', '[]', /it is not a JSON object/],
  ['a schema that does not compile', 'input_schema_file = "in.json"', '{"type":"objekt"}', /draft 2020-12/],
  ['an unknown keyword', 'input_schema_file = "in.json"', '{"requierd":["a"]}', /requierd/],
  [
    'a schema that must be fetched',
    'input_schema_file = "in.json"',
    '{"$ref":"https://example.org/x"}',
    /example\.org/,
  ],
])('for an input schema, %s is reported with its line', async (_, policy, schema, message) => {
  expect(await mistakeOf(policy, schema)).toMatchObject([
    { path: 'job_policies[0].input_schema_file', line: 21, message: expect.stringMatching(message) },
  ]);
});

test('a content type with parameters is refused in an input schema', async () => {
  expect(await mistakeOf('content_type = "text/plain; charset=utf-8"')).toMatchObject([
    { path: 'job_policies[0].content_type', line: 21 },
  ]);
});
