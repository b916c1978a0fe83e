import { describe, expect, it } from 'vitest';
import { bare, freeModel as free, localUpstream as upstream, mistakesIn, parse, wrongs } from './support.ts';

const paid = `[[models]]
name = "vendor/paid:1"
upstreams = ["local"]
input_price = "2.50"
output_price = 10
context_length = 8192
max_output_tokens = 8192
`;

/** A gateway of the feature chat alone; `extra` goes before the first table. */
function chatConfig(tables = upstream + free + paid, extra = ''): string {
  return `bind_address = "127.0.0.1:8402"\nfeatures = ["chat"]\n${extra}${tables}`;
}

const servedBy = (list: string): string => chatConfig(upstream + free.replace('["local"]', list));

async function read(text: string, variables = {}) {
  const { config } = await parse(text, { 'conf/key': 'key-of-a-file\n' }, variables);
  if (config.chat === undefined) throw new Error('the feature chat is off');
  return config.chat;
}

describe('chat', () => {
  it('needs no keys of paid jobs', async () => {
    const { config, warnings } = await parse(chatConfig());
    expect(warnings).toEqual([]);
    expect(config.jobs).toBeUndefined();
    expect(config.chat?.models.map(({ name }) => name)).toEqual(['free', 'vendor/paid:1']);
  });

  it('is undefined when the feature is off, and its keys are checked nevertheless', async () => {
    expect((await parse(bare(upstream + free))).config.chat).toBeUndefined();
    expect(await wrongs(bare('[chat]\nkey_per_minutes = 1\n[[upstreams]]\nname = "a b"'))).toEqual([
      'chat.key_per_minutes: is not a known key; did you mean key_per_minute?',
      'upstreams[0].base_url: is missing',
      'upstreams[0].name: must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"',
    ]);
  });

  it('is refused without a model', async () => {
    expect(await wrongs(chatConfig(''))).toEqual(['models: is missing: chat needs a model']);
    expect(await wrongs(chatConfig(upstream, 'models = []\n'))).toEqual([
      'models: is missing: chat needs a model',
    ]);
  });

  it('reports all mistakes together, with path and line', async () => {
    const text = `bind_address = "127.0.0.1:8402"
features = ["chat"]

[chat]
currency = "usd"
key_per_minute = 0

[[upstreams]]
name = "a"
base_url = "http://models.example/v1"
weight = 1001

[[upstreams]]
name = "a"
base_url = "https://models.example/v1"
key = "env:NOT_SET"

[[models]]
name = "m"
upstreams = ["b", "a", "a"]
input_price = "0"
context_length = 10
max_output_tokens = 11

[[models]]
name = "m"
upstreams = []
free_tier = true
output_price = "1"
context_length = 10
max_output_tokens = 10
`;
    expect(await mistakesIn(text)).toEqual([
      '5 chat.currency: must be 3 to 8 capitals, such as "USD"',
      '6 chat.key_per_minute: must be a whole number from 1 to 1000',
      '10 upstreams[0].base_url: must be https, or http on loopback',
      '11 upstreams[0].weight: must be a whole number from 1 to 1000',
      '14 upstreams[1].name: repeats the name of upstreams[0]',
      '16 upstreams[1].key: the environment variable NOT_SET is not set',
      '18 models[0].output_price: is missing: only a model with free_tier = true has no price',
      '20 models[0].upstreams[0]: no upstream is named b; did you mean a?',
      '20 models[0].upstreams[2]: names a twice',
      '21 models[0].input_price: must be above 0 and below 1000000, with at most 9 decimals, such as "2.50"',
      '23 models[0].max_output_tokens: must not be above context_length (10)',
      '26 models[1].name: repeats the name of models[0]',
      '27 models[1].upstreams: must name at least one upstream',
      '29 models[1].output_price: would be ignored: the model is of the free tier',
    ]);
  });

  it('warns of an upstream that no model uses', async () => {
    const idle = upstream.replace('local', 'idle');
    expect((await parse(chatConfig(idle + upstream + free))).warnings).toEqual([
      'conf/gateway.toml:3  upstreams[0]: no model is served by idle',
    ]);
  });

  it.each([
    'anonymous_per_day = 0',
    'key_per_minute = 1001',
    'account_per_minute = "60"',
    'free_per_day = 1.0',
    'currency = "US"',
  ])('refuses %s', async (line) => {
    expect(await mistakesIn(chatConfig(`[chat]\n${line}\n${upstream}${free}`))).toEqual([
      expect.stringMatching(/^4 chat\./),
    ]);
  });
});

describe('upstreams', () => {
  it('get their key from the environment or a file', async () => {
    const second = upstream.replace('local', 'other');
    const { upstreams } = await read(
      chatConfig(`${upstream}key = "env:UPSTREAM_KEY"\n${second}key = "file:key"\n${free}`),
      { UPSTREAM_KEY: 'key-of-a-variable' },
    );
    expect(upstreams.map(({ key }) => key)).toEqual(['key-of-a-variable', 'key-of-a-file']);
  });

  it.each(['https://k@a.example', 'https://a.example/?key=1', 'a.example'])(
    'may not be at %s',
    async (url) => {
      expect(
        await mistakesIn(chatConfig(upstream.replace(/base_url = .*/, `base_url = "${url}"`) + free)),
      ).toEqual([expect.stringMatching(/^5 upstreams\[0\]\.base_url: /)]);
    },
  );

  it('have one time limit, from which those of pauses and of whole answers follow', async () => {
    const { upstreams } = await read(
      chatConfig(`${upstream}timeout_ms = 5\nweight = 5\nmax_concurrent = 6\n${free}`),
    );
    expect(upstreams[0]).toMatchObject({
      firstByteTimeoutMs: 5,
      idleTimeoutMs: 3,
      totalTimeoutMs: 25,
      weight: 5,
      maxConcurrent: 6,
    });
  });
});

describe('models', () => {
  it('may have another name at an upstream', async () => {
    const { models } = await read(servedBy('["local", { name = "local", model = "org/real" }]'));
    expect(models[0]?.targets).toEqual([
      { upstream: 'local', model: 'free' },
      { upstream: 'local', model: 'org/real' },
    ]);
  });

  it.each([
    ['"local"', /^8 models\[0\]\.upstreams: must be an array of names$/],
    ['[1]', /^8 models\[0\]\.upstreams\[0\]: must be a name, or \{ name, model \}$/],
    ['[{ model = "m" }]', /^8 models\[0\]\.upstreams\[0\]\.name: /],
    ['[{ name = "local", modell = "m" }]', /^8 models\[0\]\.upstreams\[0\]: /],
    ['[{ name = "local", model = "a b" }]', /^8 models\[0\]\.upstreams\[0\]\.model: /],
    ['["local", { name = "local", model = "free" }]', /^8 models\[0\]\.upstreams\[1\]: names local twice$/],
  ])('are not served by %s', async (list, message) => {
    expect(await mistakesIn(servedBy(list))).toEqual([expect.stringMatching(message)]);
  });

  it.each(['"a b"', '""', '"ü"', `"${'m'.repeat(201)}"`, '7'])('are not named %s', async (name) => {
    expect(await wrongs(chatConfig(upstream + free.replace('"free"', name)))).toHaveLength(1);
  });

  it.each(['"0"', '"-1"', '2.5', '"2,5"', '"1000000"', '"0.0000000001"', 'true'])(
    'do not cost %s',
    async (price) => {
      expect(await mistakesIn(chatConfig(upstream + paid.replace('"2.50"', price)))).toEqual([
        expect.stringMatching(/^9 models\[0\]\.input_price: /),
      ]);
    },
  );

  it('may allow more parameters than the known ones', async () => {
    const { models } = await read(
      chatConfig(`${upstream}${free}allowed_parameters = ["thinking", "top-x"]\n`),
    );
    expect(models[0]?.allowedParameters).toEqual(['thinking', 'top-x']);
    const wrong = chatConfig(`${upstream}${free}allowed_parameters = ["a b"]\n`);
    expect(await wrongs(wrong)).toEqual([
      expect.stringMatching(/^models\[0\]\.allowed_parameters\[0\]: must be 1 to 64 of/),
    ]);
  });

  it.each(['context_length', 'max_output_tokens'])('are refused without %s', async (key) => {
    const without = free.replace(new RegExp(`^${key}.*\n`, 'm'), '');
    expect(await wrongs(chatConfig(upstream + without))).toEqual([`models[0].${key}: is missing`]);
  });
});
