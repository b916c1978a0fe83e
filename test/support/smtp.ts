import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TakenMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Head and body as they were sent. */
  readonly raw: string;
}

export interface SmtpServer {
  readonly port: number;
  readonly mails: TakenMail[];
  /** Of the logins (PLAIN), in plain text. */
  readonly logins: string[];
}

/** An SMTP server on loopback that keeps what it takes. It offers no encryption. */
export async function startSmtpServer({
  refuses = () => undefined,
}: { readonly refuses?: (recipient: string) => string | undefined } = {}): Promise<SmtpServer> {
  const mails: TakenMail[] = [];
  const logins: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    serve(socket, mails, logins, refuses);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return { port: typeof address === 'object' && address ? address.port : 0, mails, logins };
}

function serve(
  socket: Socket,
  mails: TakenMail[],
  logins: string[],
  refuses: (recipient: string) => string | undefined,
): void {
  let from = '';
  let to: string[] = [];
  let data: string[] | undefined;
  let rest = '';
  const say = (line: string): void => void socket.write(`${line}\r\n`);
  const take = (line: string): void => {
    if (data) {
      if (line !== '.') return void data.push(line.replace(/^\./, ''));
      mails.push({ from, to, raw: data.join('\n') });
      data = undefined;
      return say('250 taken');
    }
    const [, address = ''] = /<([^>]*)>/.exec(line) ?? [];
    if (/^EHLO/i.test(line)) say('250-smtp.test\r\n250 AUTH PLAIN');
    else if (/^AUTH PLAIN /i.test(line)) {
      logins.push(Buffer.from(line.slice(11), 'base64').toString('utf8'));
      say('235 welcome');
    } else if (/^MAIL FROM/i.test(line)) {
      from = address;
      to = [];
      say('250 fine');
    } else if (/^RCPT TO/i.test(line)) {
      const refusal = refuses(address);
      if (refusal === undefined) to.push(address);
      say(refusal ?? '250 fine');
    } else if (/^DATA/i.test(line)) {
      data = [];
      say('354 go on');
    } else if (/^STARTTLS/i.test(line)) say('502 not implemented');
    else say(/^QUIT/i.test(line) ? '221 bye' : '250 fine');
  };
  say('220 smtp.test');
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    const lines = (rest + bytes.toString('utf8')).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
  });
}
