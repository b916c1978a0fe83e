import { expect, onTestFinished, test } from 'vitest';
import type { SmtpConfig } from '../../../../src/base/config/smtp.ts';
import { createSmtpMailer } from '../../../../src/base/peers/mail/smtp.ts';
import { goodPassword } from '../../../support/identity.ts';
import { sendForm, startSite } from '../../../support/site.ts';
import { startSmtpServer } from '../../../support/smtp.ts';
import { eventually } from '../../../support/wait.ts';

function mailerAt(port: number, more: Partial<SmtpConfig> = {}) {
  const from = 'Testbook <no-reply@books.example>';
  const mailer = createSmtpMailer({
    host: '127.0.0.1',
    port,
    security: 'none',
    login: undefined,
    from,
    ...more,
  });
  onTestFinished(() => mailer.close?.());
  return mailer;
}

const mail = { subject: 'Hello', text: 'as text', html: '<p>as HTML</p>' };

test('a mail is handed to the server as text and as HTML, to one recipient, with the login', async () => {
  const server = await startSmtpServer();
  const mailer = mailerAt(server.port, { login: { user: 'gateway', password: 'of the gateway' } });
  await mailer.send({ ...mail, to: 'ada@example.org' });
  expect(server.logins).toEqual(['\0gateway\0of the gateway']);
  const [taken] = server.mails;
  expect(taken).toMatchObject({ from: 'no-reply@books.example', to: ['ada@example.org'] });
  for (const part of [
    'Subject: Hello',
    'Auto-Submitted: auto-generated',
    'multipart/alternative',
    'as text',
    '<p>as HTML</p>',
  ])
    expect(taken?.raw).toContain(part);
});

test.each([
  'ada@example.org, eve@other.example',
  'ada@example.org\r\nBcc: eve@other.example',
  '<eve@other.example> ada@example.org',
])('the address %j reaches no other recipient', async (to) => {
  const server = await startSmtpServer();
  await mailerAt(server.port)
    .send({ ...mail, to })
    .catch(() => undefined);
  expect(server.mails.flatMap((taken) => taken.to)).not.toContain('eve@other.example');
  expect(server.mails.map(({ raw }) => raw).join('\n')).not.toMatch(/^Bcc:/m);
});

test('a server’s refusal is reported without the recipient', async () => {
  const server = await startSmtpServer({ refuses: (to) => `550 no such user <${to}>` });
  const sent = mailerAt(server.port).send({ ...mail, to: 'ada@example.org' });
  const error = await sent.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(String(error)).toContain('EENVELOPE 550');
  expect(`${String(error)} ${JSON.stringify(error)} ${(error as Error).stack ?? ''}`).not.toContain('ada@');
});

test('nothing is sent to a server without encryption, unless the configuration says so', async () => {
  const server = await startSmtpServer();
  const sent = mailerAt(server.port, { security: 'starttls' }).send({ ...mail, to: 'ada@example.org' });
  await expect(sent).rejects.toThrow('did not take a mail');
  expect(server.mails).toEqual([]);
});

test('a person signs up with the link of a mail that came by SMTP, and the names in it are text', async () => {
  const server = await startSmtpServer();
  const gateway = await startSite({
    mails: false,
    identity: 'smtp_url = "env:SMTP_URL"\nmail_from = "no-reply@books.example"',
    env: { SMTP_URL: `smtp://127.0.0.1:${server.port}` },
  });
  const browser = gateway.browser();
  const typed = { email: 'ada@example.org', name: '<b>Ada</b>', password: goodPassword };
  expect((await sendForm(browser, '/sign-up', typed)).status).toBe(303);
  const raw = await eventually(() => {
    const [taken] = server.mails;
    if (!taken) throw new Error('no mail yet');
    return Promise.resolve(taken.raw.replaceAll('=\n', '').replaceAll('=3D', '='));
  });
  expect(raw).not.toContain('<b>Ada');
  const [link = ''] = /^http\S+verify-email\S+$/m.exec(raw) ?? [];
  expect((await browser.get(link)).headers.get('location')).toBe('/sign-in?notice=verified');
  const { status } = await sendForm(browser, '/sign-in', { email: typed.email, password: goodPassword });
  expect(status).toBe(303);
});

test('whether an address waits for its confirmation is not revealed by a mail server that refuses the mail', async () => {
  const server = await startSmtpServer({ refuses: () => '550 no' });
  const gateway = await startSite({
    mails: false,
    identity: 'smtp_url = "env:SMTP_URL"\nmail_from = "no-reply@books.example"',
    env: { SMTP_URL: `smtp://127.0.0.1:${server.port}` },
  });
  const browser = gateway.browser();
  const typed = { email: 'ada@example.org', name: 'Ada', password: goodPassword };
  expect((await sendForm(browser, '/sign-up', typed)).status).toBe(303);
  const again = async (email: string) => {
    const form = { action: '/sign-up/again' };
    const { status, headers } = await sendForm(browser, '/sign-up/sent', { email }, form);
    return [status, headers.get('location')?.replace(encodeURIComponent(email), 'ADDRESS')];
  };
  const [known, unknown] = [await again(typed.email), await again('eve@example.org')];
  expect(known).toEqual(unknown);
  expect(known[0]).toBe(303);
});
