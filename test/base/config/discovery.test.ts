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
    [`${url}\nevery_secs = 59`, 'every_secs: must be a whole number from 60 to 86400'],
    [`${url}\ngrace_secs = -1`, 'grace_secs: must be a whole number from 0 to 2592000'],
    [`${url}\nmax_pages = 0`, 'max_pages: must be a whole number from 1 to 10000'],
    [`${url}\ntimeout_ms = 1.5`, 'timeout_ms: must be a whole number from 1 to 60000'],
    [`${url}\nlook_timeout_secs = 3601`, 'look_timeout_secs: must be a whole number from 1 to 3600'],
    [`${url}\ninterval = 1`, 'interval: is not a known key'],
  ])('%s is refused: %s', async (lines, mistake) => {
    expect(await mistakesIn(discovery(lines))).toEqual([expect.stringContaining(`discovery.${mistake}`)]);
  });

  it('changes with a restart alone, which a reload says', async () => {
    const { config } = await parse(discovery(url));
    const next = await parse(discovery(`${url}\nevery_secs = 60`));
    const { config: kept, requireRestart } = reloadConfig(config, next.config);
    expect([kept.discovery?.everySecs, requireRestart]).toEqual([3_600, ['discovery.every_secs']]);
  });
});
