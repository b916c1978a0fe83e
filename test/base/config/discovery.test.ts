import { describe, expect, it } from 'vitest';
import { reloadConfig } from '../../../src/base/config/reload.ts';
import { bare, minimal, mistakesIn, parse } from './support.ts';

const discovery = (lines: string): string => `${minimal()}[discovery]\n${lines}`;
const url = 'url = "https://facilitator.example/x402/"';

describe('discovery', () => {
  it('is watched where the table is there and paid jobs are on', async () => {
    expect((await parse(minimal())).config.discovery).toBeUndefined();
    expect((await parse(bare(`[discovery]\n${url}`))).config.discovery).toBeUndefined();
    expect((await parse(discovery(url))).config.discovery).toEqual({
      url: 'https://facilitator.example/x402',
      everySecs: 3_600,
      graceSecs: 7_200,
      maxPages: 500,
      timeoutMs: 10_000,
      lookTimeoutSecs: 300,
    });
  });

  it.each([
    ['', 'url: is missing'],
    ['url = "http://facilitator.example"', 'url: must be https, or http on loopback'],
    ['url = "https://facilitator.example?a=b"', 'url: must not have a query: paths are appended to it'],
    ['url = "https://user:word@facilitator.example"', 'url: must not contain credentials'],
    ['url = "ftp://facilitator.example"', 'url: is not an http or https URL'],
    [`${url}\ninterval = 1`, 'interval: is not a known key'],
  ])('%s is refused: %s', async (lines, mistake) => {
    expect(await mistakesIn(discovery(lines))).toEqual([expect.stringContaining(`discovery.${mistake}`)]);
  });

  it('changes only with a restart, which a reload says', async () => {
    const { config } = await parse(discovery(url));
    const next = await parse(discovery('url = "https://other.example"'));
    const { config: kept, requireRestart } = reloadConfig(config, next.config);
    expect([kept.discovery?.url, requireRestart]).toEqual([config.discovery?.url, ['discovery.url']]);
  });
});
