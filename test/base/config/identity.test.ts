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
  const { config } = await parse(withPeople(`${secret}mail_dir = "mail"`), {}, variables);
  expect(config.identity).toEqual({
    secrets: [variables.SECRET],
    sessionDays: 7,
    trustedOrigins: [],
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

const knownTable = (known: string): string =>
  `[[identity.providers]]\nname = "${known}"\nissuer = "${known}"\nclient_id = "x"\nclient_secret = "env:CLIENT"\n`;

test('a known issuer is named in a word, and so is GitHub, which has no issuer', async () => {
  const { config } = await parse(
    withPeople(secret + knownTable('google') + knownTable('github')),
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
  [
    'another origin over plain http',
    `${secret}trusted_origins = ["http://x.example"]`,
    'identity.trusted_origins[0]',
  ],
  ['a provider without an issuer', secret + provider, 'identity.providers[0].issuer'],
  ['an issuer that nobody knows', `${secret}${provider}issuer = "gogle"`, 'identity.providers[0].issuer'],
  [
    'a provider over plain http',
    `${secret}${provider}issuer = "http://x.example"`,
    'identity.providers[0].issuer',
  ],
  [
    'two providers with one name',
    `${secret}${provider}issuer = "google"\n${provider}issuer = "gitlab"`,
    'identity.providers[1].name',
  ],
  ['GitHub with another name', `${secret}${provider}issuer = "github"`, 'identity.providers[0].name'],
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

const smtp = 'smtp_url = "env:SMTP_URL"\nmail_from = "Books <no-reply@books.example>"\n';
const smtpOf = async (url: string) =>
  (await parse(withPeople(secret + smtp), {}, { ...variables, SMTP_URL: url })).config.identity?.smtp;

test('[identity] names the server that takes the mails by one URL, which is a secret', async () => {
  const from = 'Books <no-reply@books.example>';
  expect(await smtpOf('smtp://gateway%40books:a%2Fsecret@mail.example')).toEqual({
    host: 'mail.example',
    port: 587,
    security: 'starttls',
    login: { user: 'gateway@books', password: 'a/secret' },
    from,
  });
  const tls = { host: 'mail.example', port: 465, security: 'tls', login: undefined, from };
  expect(await smtpOf('smtps://mail.example')).toEqual(tls);
  expect(await smtpOf('smtps://mail.example:2465/')).toEqual({ ...tls, port: 2_465 });
  // only to this machine a mail goes without encryption
  expect(await smtpOf('smtp://127.0.0.1:25')).toMatchObject({ port: 25, security: 'none' });
  expect(await smtpOf('smtp://[::1]')).toMatchObject({ host: '::1', security: 'none' });
});

test.each([
  'mail.example',
  'https://mail.example',
  'smtp://',
  'smtp://-a b',
  'smtp://mail.example/queue',
  'smtp://mail.example?secure=false',
  'smtp://hush@mail.example',
  'smtp://:hush@mail.example',
  'smtp://u:hush%ZZ@mail.example',
])('the mail server %s is refused, and no message contains it', async (url) => {
  const found = await mistakesIn(withPeople(secret + smtp), {}, { ...variables, SMTP_URL: url });
  expect(found).toEqual([expect.stringContaining('identity.smtp_url: ')]);
  expect(found.join()).not.toMatch(/hush|mail\.example/);
});

test.each([
  ['a server without a sender', 'smtp_url = "env:CLIENT"', 'identity.mail_from: is missing'],
  ['a sender without a server', 'mail_from = "a@x.example"', 'identity.mail_from: would be ignored'],
  ['a server and a folder', `${smtp}mail_dir = "mail"`, 'identity.mail_dir: excludes smtp_url'],
  ['two senders', 'smtp_url = "env:CLIENT"\nmail_from = "a@x.example, b@x.example"', 'identity.mail_from'],
])('[identity] with %s is refused', async (_what, keys, mistake) => {
  expect((await mistakesIn(withPeople(secret + keys), {}, variables)).join('\n')).toContain(mistake);
});
