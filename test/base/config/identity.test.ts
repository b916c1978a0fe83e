import { expect, test } from 'vitest';
import { oneModel } from '../../support/chat-gateway.ts';
import { mistakesIn, parse } from './support.ts';

const variables = { SECRET: 'a-secret-of-thirty-two-characters', CLIENT: 'a-client-secret', SHORT: 'short' };

/** A gateway that serves models, where people have accounts. */
function withPeople(identity: string, top = ''): string {
  return `bind_address = "127.0.0.1:8402"\nfeatures = ["chat"]\n${top}${oneModel('http://127.0.0.1:1')}\n[identity]\n${identity}`;
}

const secret = 'secret = "env:SECRET"\n';

test('[identity] switches user accounts on', async () => {
  const { config } = await parse(withPeople(`${secret}mailer = "folder"`), {}, variables);
  expect(config.identity).toEqual({
    secrets: [variables.SECRET],
    sessionDays: 7,
    trustedOrigins: [],
    siweDomain: undefined,
    siweUri: undefined,
    siweChainId: 1,
    siweRpcUrl: undefined,
    mailDir: 'conf/mail',
    smtp: undefined,
    providers: [],
  });
  const without = await parse(
    `bind_address = "127.0.0.1:8402"\nfeatures = ["chat"]\n${oneModel('http://127.0.0.1:1')}`,
  );
  expect(without.config.identity).toBeUndefined();
});

test('a secret of [identity] may be in a file relative to the configuration', async () => {
  const files = { 'conf/secret': `${variables.SECRET}\n` };
  const { config } = await parse(withPeople('secret = "file:secret"'), files);
  expect(config.identity?.secrets).toEqual([variables.SECRET]);
});

const presetTable = (preset: string): string =>
  `[[identity.providers]]\nname = "${preset}"\npreset = "${preset}"\nclient_id = "x"\nclient_secret = "env:CLIENT"\n`;

test('a provider preset sets the issuer, except GitHub, which has none', async () => {
  const { config } = await parse(
    withPeople(secret + presetTable('google') + presetTable('github')),
    {},
    variables,
  );
  expect(config.identity?.providers).toEqual([
    { name: 'google', clientId: 'x', clientSecret: 'a-client-secret', issuer: 'https://accounts.google.com' },
    { name: 'github', clientId: 'x', clientSecret: 'a-client-secret', issuer: undefined },
  ]);
});

const provider = '[[identity.providers]]\nname = "home"\nclient_id = "x"\nclient_secret = "env:CLIENT"\n';

test.each([
  ['no secret', '', 'identity.secret'],
  ['a short secret', 'secret = "env:SHORT"', 'identity.secret'],
  ['sessions of zero days', `${secret}session_days = 0`, 'identity.session_days'],
  ['a domain that is a URL', `${secret}siwe_domain = "https://x"`, 'identity.siwe_domain'],
  ['an unknown mailer', `${secret}mailer = "post"`, 'identity.mailer'],
  ['a provider without an issuer', secret + provider, 'identity.providers[0].issuer'],
  [
    'a provider with a preset and an issuer',
    `${secret}${provider}preset = "google"\nissuer = "https://x"`,
    'identity.providers[0].issuer',
  ],
  [
    'a provider over plain http',
    `${secret}${provider}issuer = "http://x.example"`,
    'identity.providers[0].issuer',
  ],
  [
    'two providers with one name',
    `${secret}${provider}preset = "google"\n${provider}preset = "gitlab"`,
    'identity.providers[1].name',
  ],
  [
    'the GitHub preset with another name',
    `${secret}${provider}preset = "github"`,
    'identity.providers[0].name',
  ],
  ['an unknown key', `${secret}secrets = 1`, 'identity.secrets'],
])('in [identity], %s is refused', async (_, identity, at) => {
  expect(await mistakesIn(withPeople(identity), {}, variables)).toEqual([expect.stringContaining(at)]);
});

test.each(['public_url = "http://gateway.example"\n', 'public_url = "https://gateway.example/below"\n'])(
  '[identity] requires a public_url with https and without a path: %s',
  async (top) => {
    expect(await mistakesIn(withPeople(secret, top), {}, variables)).toEqual([
      expect.stringContaining('public_url'),
    ]);
  },
);

test.each(['0.0.0.0:8402', '[::]:8402', '192.0.2.1:8402'])(
  '[identity] of a gateway that is bound to %s requires a public_url, named at the line of the address',
  async (bind) => {
    const text = withPeople(secret).replace('127.0.0.1:8402', bind);
    expect(await mistakesIn(text, {}, variables)).toEqual([
      expect.stringMatching(/^1 bind_address: is not on loopback, so public_url must be named/),
    ]);
    const { config } = await parse(`public_url = "https://books.example"\n${text}`, {}, variables);
    expect(config.publicUrl).toBe('https://books.example');
  },
);

const smtp =
  'mailer = "smtp"\n[identity.smtp]\nhost = "mail.example"\nfrom = "Books <no-reply@books.example>"\n';

test('[identity.smtp] names the server that takes the mails', async () => {
  const login = 'user = "gateway"\npassword = "env:CLIENT"\n';
  const { config } = await parse(withPeople(secret + smtp + login), {}, variables);
  expect(config.identity).toMatchObject({
    mailDir: undefined,
    smtp: {
      host: 'mail.example',
      port: 587,
      security: 'starttls',
      login: { user: 'gateway', password: 'a-client-secret' },
      from: 'Books <no-reply@books.example>',
    },
  });
  const { config: tls } = await parse(withPeople(`${secret}${smtp}security = "tls"`), {}, variables);
  expect(tls.identity?.smtp).toMatchObject({ port: 465, login: undefined });
});

test.each([
  ['no server', 'mailer = "smtp"', 'identity.smtp: is missing'],
  ['a server and another mailer', smtp.replace('"smtp"', '"folder"'), 'identity.smtp: would be ignored'],
  ['no encryption', `${smtp}security = "none"`, 'identity.smtp.security'],
  ['a user without a password', `${smtp}user = "x"`, 'identity.smtp.password'],
  ['a password without a user', `${smtp}password = "env:CLIENT"`, 'identity.smtp.user'],
  [
    'two senders',
    smtp.replace('Books <no-reply@books.example>', 'a@x.example, b@x.example'),
    'identity.smtp.from',
  ],
])('[identity.smtp] with %s is refused', async (_what, keys, mistake) => {
  expect((await mistakesIn(withPeople(secret + keys), {}, variables)).join('\n')).toContain(mistake);
});
