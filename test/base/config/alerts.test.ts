import { describe, expect, it } from 'vitest';
import { bare, env, mistakesIn, parse, wrongs } from './support.ts';

const alerts = (lines: string): string => bare(`[alerts]\n${lines}`);
const url = 'https://alerts.example/hook?key=1';

describe('alerts', () => {
  it('are posted nowhere by default, and have a delay of five minutes', async () => {
    for (const text of [bare(''), alerts('')]) {
      expect((await parse(text)).config.alerts).toEqual({
        unresolvedAfterSecs: 300,
        pagerdutyUrl: 'https://events.pagerduty.com/v2/enqueue',
        source: 'tollbook',
        repeatSecs: 14_400,
      });
    }
  });

  it('go to the configured webhook, unsigned or signed with a secret from the environment or a file', async () => {
    const of = async (lines: string, variables = env) =>
      (
        await parse(
          alerts(`webhook = "${url}"\n${lines}`),
          { 'conf/s': 'a-secret-from-a-file-of-enough-length\n' },
          variables,
        )
      ).config.alerts;
    expect(await of('')).toMatchObject({ webhook: url, secret: undefined });
    const variables = { ...env, ALERTS_SECRET: 'a-secret-of-more-than-enough-length' };
    const byEnv = await of('secret = "env:ALERTS_SECRET"', variables);
    expect(byEnv).toMatchObject({ webhook: url, secret: 'a-secret-of-more-than-enough-length' });
    expect(await of('secret = "file:s"')).toMatchObject({
      webhook: url,
      secret: 'a-secret-from-a-file-of-enough-length',
    });
  });

  it.each([
    // plain http is in urls.test.ts
    ['ftp://127.0.0.1', 'is not an http or https URL'],
    ['https://u:p@alerts.example', 'must not contain credentials'],
    ['https://alerts.example/#a', 'must not have a fragment'],
  ])('do not go to %s', async (wrong, message) => {
    expect(await mistakesIn(alerts(`webhook = "${wrong}"`))).toEqual([
      expect.stringMatching(`^4 alerts\\.webhook: ${message}`),
    ]);
  });

  it('go to Slack, whose address is a secret, and to PagerDuty, by its key', async () => {
    const variables = { ...env, SLACK: 'https://hooks.slack.example/services/T/B/x', PAGER: 'a-key' };
    const lines = 'slack_url = "env:SLACK"\npagerduty_key = "env:PAGER"';
    expect(
      (await parse(bare(`ledger_name = "prod"\n[alerts]\n${lines}`), {}, variables)).config.alerts,
    ).toMatchObject({
      slackUrl: variables.SLACK,
      pagerdutyKey: 'a-key',
      source: 'prod',
    });
    expect(
      await wrongs(alerts('slack_url = "env:SLACK"'), {}, { ...env, SLACK: 'http://slack.example/T/B/x' }),
    ).toEqual(['alerts.slack_url: names a secret that must be https, or http on loopback']);
  });

  it('refuse a missing or short secret, and a secret without a webhook', async () => {
    const signed = alerts(`webhook = "${url}"\nsecret = "env:ALERTS_SECRET"\n`);
    expect(await mistakesIn(signed)).toEqual([
      '5 alerts.secret: the environment variable ALERTS_SECRET is not set',
    ]);
    expect(await wrongs(signed, {}, { ALERTS_SECRET: 'thirty-one-letters-are-too-few-' })).toEqual([
      'alerts.secret: the environment variable ALERTS_SECRET must have at least 32 characters',
    ]);
    expect(
      await mistakesIn(alerts('secret = "file:s"'), { 'conf/s': 'a-secret-from-a-file-of-enough-length' }),
    ).toEqual(['4 alerts.secret: would be ignored: there is no webhook']);
  });

  it('refuse unknown keys and values that are not tables', async () => {
    expect(await mistakesIn(bare('alerts = 1'))).toEqual(['3 alerts: must be a table']);
    expect(await mistakesIn(alerts('web_hook = "x"'))).toEqual([
      '4 alerts.web_hook: is not a known key; did you mean webhook?',
    ]);
  });
});
