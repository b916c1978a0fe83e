import { describe, expect, it } from 'vitest';
import { bare, env, mistakesIn, parse } from './support.ts';

const traces = (lines: string): string => bare(`[traces]\n${lines}`);
const local = 'endpoint = "http://127.0.0.1:4318/"';
const withHeaders = (text: string) => ({ ...env, OTLP_HEADERS: text });

describe('traces', () => {
  it('are off by default', async () => {
    expect((await parse(bare(''))).config.traces).toBeUndefined();
  });

  it('need no more than a collector', async () => {
    const { config, warnings } = await parse(traces(local));
    expect(config.traces).toEqual({
      endpoint: 'http://127.0.0.1:4318',
      sampleRatio: 1,
      serviceName: 'tollbook',
      headers: {},
    });
    expect(warnings).toEqual([]);
  });

  it('go to https, to this machine or to a private network', async () => {
    for (const good of ['https://otel.example/otlp', 'http://collector:4318', 'http://10.0.0.7:4318'])
      expect((await parse(traces(`endpoint = "${good}"`))).config.traces?.endpoint).toBe(good);
    for (const [bad, mistake] of [
      ['http://otel.example:4318', 'must be https, or http on loopback or a private network'],
      ['https://user:word@otel.example', 'must not contain credentials: a secret has its own key'],
      ['https://otel.example?key=word', 'must not have a query: paths are appended to it'],
      ['otel.example', 'is not an http or https URL'],
    ])
      expect(await mistakesIn(traces(`endpoint = "${bad}"`))).toEqual([`4 traces.endpoint: ${mistake}`]);
    expect(await mistakesIn(traces(''))).toEqual(['3 traces.endpoint: is missing']);
  });

  it('are recorded in part, by a ratio that is an integer or a float', async () => {
    for (const [ratio, value] of [
      ['0.25', 0.25],
      ['0', 0],
      ['1', 1],
    ] as const) {
      const { config } = await parse(traces(`${local}\nsample_ratio = ${ratio}`));
      expect(config.traces?.sampleRatio).toBe(value);
    }
    for (const ratio of ['-0.1', '2', '"0.5"', 'nan'])
      expect(await mistakesIn(traces(`${local}\nsample_ratio = ${ratio}`))).toEqual([
        '5 traces.sample_ratio: must be a number from 0 to 1',
      ]);
  });

  it('are sent with headers from the environment, which no message repeats', async () => {
    const text = traces(`${local}\nheaders = "env:OTLP_HEADERS"`);
    const { config } = await parse(text, {}, withHeaders('Authorization=Basic%20dXNlcjp3b3Jk,x-team=a=b'));
    expect(config.traces?.headers).toEqual({ authorization: 'Basic dXNlcjp3b3Jk', 'x-team': 'a=b' });
    for (const bad of ['canary-value', 'a=canary%zz', 'a b=canary', 'a=canary,', 'a=canary%0Ab'])
      expect(await mistakesIn(text, {}, withHeaders(bad)).catch(String)).toEqual([
        expect.not.stringContaining('canary') as string,
      ]);
    expect(await mistakesIn(text, {}, withHeaders('a=%'))).toEqual([
      '5 traces.headers: must name headers as name=value,name=value, with percent-encoded values',
    ]);
  });
});
