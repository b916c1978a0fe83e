import { describe, expect, it } from 'vitest';
import { bare, env, mistakesIn, parse, runner, wrongs } from './support.ts';

function push(url: string): string {
  return bare(`[[runners]]\nservices = [1]\nmode = "push"\nurl = "${url}"\ntoken = "env:RUNNER_TOKEN"\n`);
}

describe('runners', () => {
  it('get a name from their position, and their token from the environment or a file', async () => {
    const second =
      '[[runners]]\nname = "b"\nservices = [2, 1]\nmode = "push"\nurl = "https://b.example/x"\ntoken = "file:t"';
    const { config } = await parse(bare(`${runner}${second}`), {
      'conf/t': 'a-token-from-a-file-of-enough-characters\n',
    });
    expect(config.runners).toEqual([
      {
        name: 'runner-1',
        services: [1],
        mode: 'lease',
        tokens: [env.RUNNER_TOKEN],
      },
      {
        name: 'b',
        services: [2, 1],
        mode: 'push',
        url: 'https://b.example/x',
        tokens: ['a-token-from-a-file-of-enough-characters'],
      },
    ]);
  });

  it('need a URL with mode push, and must have none with mode lease', async () => {
    expect(await wrongs(bare(runner.replace('lease', 'push')))).toEqual([
      'runners[0].url: is missing: push needs it',
    ]);
    expect(await wrongs(bare(`${runner}url = "https://r.example"`))).toEqual([
      'runners[0].url: would be ignored: a lease runner fetches its calls',
    ]);
  });

  it.each([
    'http://10.1.2.3',
    'http://172.31.0.1',
    'http://192.168.1.1',
    'http://[fd00::1]',
    'http://runner:80',
    'http://a.internal',
  ])('are pushed to at %s with a warning', async (url) => {
    expect((await parse(push(url))).warnings).toEqual([
      expect.stringContaining('conf/gateway.toml:6  runners[0].url: is plain http'),
    ]);
  });

  it.each([
    'http://runner.example',
    'http://8.8.8.8',
    'http://172.32.0.1',
    'http://[2001:db8::1]',
    'ftp://127.0.0.1',
    'https://u:p@r.example',
  ])('are not pushed to at %s', async (url) => {
    expect(await mistakesIn(push(url))).toEqual([expect.stringMatching(/^6 runners\[0\]\.url: /)]);
  });

  it('must have a token, long enough and valid in a header', async () => {
    const one = bare(runner);
    expect(await wrongs(one.replace('token = "env:RUNNER_TOKEN"', ''))).toEqual([
      'runners[0].token: is missing: say where it is, as "env:NAME" or "file:/path"',
    ]);
    expect(await wrongs(one, {}, {})).toEqual([
      'runners[0].token: the environment variable RUNNER_TOKEN is not set',
    ]);
    expect(await wrongs(one, {}, { RUNNER_TOKEN: 'thirty-one-letters-are-too-few-' })).toEqual([
      'runners[0].token: the environment variable RUNNER_TOKEN must have at least 32 characters',
    ]);
    expect(await wrongs(one, {}, { RUNNER_TOKEN: 'thirty-two letters or more, with blanks' })).toEqual([
      expect.stringContaining('must have only visible ASCII characters'),
    ]);
  });

  it('may have it in the file that the variable with _FILE names', async () => {
    const one = bare(runner);
    const variables = { RUNNER_TOKEN_FILE: '/run/secrets/runner' };
    const { config } = await parse(one, { '/run/secrets/runner': `${env.RUNNER_TOKEN}\n` }, variables);
    expect(config.runners[0]?.tokens).toEqual([env.RUNNER_TOKEN]);
    expect(await wrongs(one, {}, variables)).toEqual([
      'runners[0].token: RUNNER_TOKEN_FILE names /run/secrets/runner, which cannot be read: there is no such file',
    ]);
    expect(await wrongs(one, {}, { ...env, ...variables })).toEqual([
      'runners[0].token: RUNNER_TOKEN_FILE is set, and so is RUNNER_TOKEN: set one of them',
    ]);
  });

  it('must differ in name, and in token where they lease', async () => {
    const named = `${runner}name = "runner-2"\n`;
    const other = { ...env, OTHER_TOKEN: 'another-token-of-enough-characters' };
    expect(await mistakesIn(bare(named + runner.replace('RUNNER', 'OTHER')), {}, other)).toEqual([
      '8 runners[1].name: "runner-2" is the name of runners[0] too',
    ]);
    expect(await wrongs(bare(runner + runner))).toEqual([
      'runners: runner-1 and runner-2 lease with the same token: the gateway could not tell them apart',
    ]);
  });

  it.each(['[]', '[1, 1]', '[-1]', '[1.0]', '["1"]', '1', '[9007199254740992]'])(
    'refuse the services %s',
    async (services) => {
      expect(await mistakesIn(bare(runner.replace('[1]', services)))).toEqual([
        expect.stringMatching(/^4 runners\[0\]\.services/),
      ]);
    },
  );
});
