import type { Transporter } from 'nodemailer';
import type { SmtpConfig } from '../../config/smtp.ts';
import type { Mailer } from './mailer.ts';

const timeoutMs = 10_000;
const maxConnections = 2;

/** A mail that the server did not take. Without the server's words, which may repeat the recipient's address. */
class MailNotSentError extends Error {
  override readonly name = 'MailNotSentError';
}

/** Hands each mail to an SMTP server. The library is loaded with the first one. */
export function createSmtpMailer({ host, port, security, login, from }: SmtpConfig): Mailer {
  let transporter: Transporter | undefined;
  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer');
    return (transporter ??= createTransport({
      host,
      port,
      pool: true,
      maxConnections,
      secure: security === 'tls',
      requireTLS: security === 'starttls',
      ignoreTLS: security === 'none',
      tls: { minVersion: 'TLSv1.2' },
      ...(login && { auth: { user: login.user, pass: login.password } }),
      connectionTimeout: timeoutMs,
      greetingTimeout: timeoutMs,
      socketTimeout: 2 * timeoutMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    }));
  };
  return {
    async send({ to, subject, text, html }) {
      const transport = await open();
      try {
        await transport.sendMail({
          from,
          // not as a text, which may hold several addresses
          to: { name: '', address: to },
          subject,
          text,
          ...(html !== undefined && { html }),
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
      } catch (error) {
        throw new MailNotSentError(`the SMTP server did not take a mail (${reasonOf(error)})`);
      }
    },
    async close() {
      transporter?.close();
    },
  };
}

/** A code of the library, and the number of the server's answer. */
function reasonOf(error: unknown): string {
  const { code, responseCode } = Object(error) as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
  };
  const parts = [code, responseCode].filter((part) => typeof part === 'string' || typeof part === 'number');
  return parts.filter((part) => /^\w{1,40}$/.test(String(part))).join(' ') || 'no reason';
}
