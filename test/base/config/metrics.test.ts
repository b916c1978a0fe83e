import { describe, expect, it } from 'vitest';
import { bare, env, mistakesIn, parse } from './support.ts';

const metrics = (lines: string): string => bare(`[metrics]\n${lines}`);
const variables = { ...env, METRICS_TOKEN: 'a-token-of-more-than-enough-length' };

describe('metrics', () => {
  it('are off by default', async () => {
    expect((await parse(bare(''))).config.metrics).toBeUndefined();
  });

  it('are on a port of their own without a token, with a warning where others may reach it', async () => {
    const local = await parse(metrics('bind_address = "127.0.0.1:9464"'));
    expect(local.config.metrics).toEqual({
      bindAddress: { host: '127.0.0.1', port: 9464 },
      token: undefined,
    });
    expect(local.warnings).toEqual([]);
    const open = await parse(metrics('bind_address = "0.0.0.0:9464"'));
    expect(open.warnings).toEqual([
      expect.stringContaining('serves the metrics to everyone who reaches it') as string,
    ]);
  });

  it('are on the port of the clients for a token only', async () => {
    const { config } = await parse(metrics('token = "env:METRICS_TOKEN"'), {}, variables);
    expect(config.metrics).toEqual({ bindAddress: undefined, token: variables.METRICS_TOKEN });
    expect(await mistakesIn(metrics(''))).toEqual([
      '3 metrics.token: is missing: on the port of the clients metrics need a token; or name a bind_address',
    ]);
  });
});
