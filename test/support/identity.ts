import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import type { Address } from '../../src/base/values/primitives.ts';
import { siweMessage, type SiweMessage } from '../../src/accounts/rules/siwe.ts';
import {
  chatConfigText,
  type ChatGateway,
  type ChatGatewayOptions,
  startChatGateway,
} from './chat-gateway.ts';
import { eventually } from './wait.ts';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import { allEvents } from './invariants.ts';
import { useShared, whenOver } from './shared.ts';

export const identitySecret = 'a secret of thirty-two characters, or more'.replaceAll(' ', '-');

export interface IdentityOptions extends ChatGatewayOptions {
  /** TOML: keys of `[identity]`, and tables below it. */
  readonly identity?: string;
  /** Default: true. */
  readonly mails?: boolean;
}

export interface IdentityGateway extends ChatGateway {
  readonly mailDir: string;
  /** Reloads with another session secret, and a second one beside it. */
  replaceSecret(inUse: string, second?: string): Promise<readonly string[]>;
  /** Its own browser, at this client address. */
  browser(address?: string): Browser;
  /** The mails to an address, oldest first; waits until there are `count`. */
  mails(to: string, count?: number): Promise<string[]>;
}

/** A gateway where people have accounts, whose mails go to a folder. */
export async function startIdentityGateway(options: IdentityOptions = {}): Promise<IdentityGateway> {
  const mailDir = mkdtempSync(path.join(tmpdir(), 'tollbook-mail-'));
  whenOver(() => rmSync(mailDir, { recursive: true, force: true }));
  const configured = (inUse: string, second?: string): ChatGatewayOptions => ({
    ...options,
    env: { IDENTITY_SECRET: inUse, SECOND_SECRET: second ?? '', ...options.env },
    tables: `
[identity]
secret = ${second === undefined ? '"env:IDENTITY_SECRET"' : '["env:IDENTITY_SECRET", "env:SECOND_SECRET"]'}
${options.mails === false ? '' : `mail_dir = "${mailDir}"`}
${options.identity ?? ''}
${options.tables ?? ''}
`,
  });
  const gateway = await startChatGateway(configured(identitySecret));
  return {
    ...gateway,
    mailDir,
    async replaceSecret(inUse, second) {
      const upstreamUrl = options.upstreamUrl ?? gateway.model.url;
      return gateway.reload(await chatConfigText({ upstreamUrl, ...configured(inUse, second) }));
    },
    browser: (address = '203.0.113.1') => createBrowser(gateway.url, address),
    mails: (to, count = 1) =>
      eventually(async () => {
        const found = (await allMails(mailDir)).filter((mail) => mail.startsWith(`To: ${to}\n`));
        if (found.length < count) throw new Error(`${found.length} mails to ${to} so far`);
        return found;
      }),
  };
}

export interface SharedIdentityGateway extends IdentityGateway {
  /** An address of mail that no other test uses. */
  readonly email: string;
  /** The events since the test began. */
  newEvents(): Promise<readonly RecordedEvent[]>;
}

/**
 * One gateway for all tests of a file that do not disturb each other. Each test has its own email address, and clients of its own: the
 * addresses that it names stand for others that are different for each test.
 */
export function useIdentityGateway(
  options?: IdentityOptions,
  start = startIdentityGateway,
): () => Promise<SharedIdentityGateway> {
  const shared = useShared(() => start(options));
  let tests = 0;
  return async () => {
    const gateway = shared();
    const test = ++tests;
    const before = (await allEvents(gateway.database.db)).length;
    return {
      ...gateway,
      email: `ada${test}@example.org`,
      newEvents: async () => (await allEvents(gateway.database.db)).slice(before),
      browser: ownClients(gateway, test),
    };
  };
}

/** The clients of one of the tests that share a gateway: what it names by one address is another client for each test. */
export function ownClients(gateway: IdentityGateway, test: number): IdentityGateway['browser'] {
  return (address = '203.0.113.1') => {
    const [network, , , host] = address.split('.');
    return gateway.browser(`10.${test}.${network}.${host}`);
  };
}

export async function allMails(mailDir: string): Promise<string[]> {
  const names = (await readdir(mailDir)).filter((name) => name.endsWith('.txt')).toSorted();
  return Promise.all(names.map((name) => readFile(path.join(mailDir, name), 'utf8')));
}

export interface Browser {
  readonly cookies: Map<string, string>;
  /** As a page of the gateway itself would, unless the headers say otherwise. Redirects are not followed. */
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers whose shape they assert
  readonly json: any;
}

/** Its own browser, at a client address. */
export function createBrowser(origin: string, address: string): Browser {
  const cookies = new Map<string, string>();
  const browser: Browser = {
    cookies,
    async request(method, where, body, headers = {}) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(new URL(where, origin), {
        method,
        redirect: 'manual',
        headers: {
          'x-forwarded-for': address,
          ...(method === 'GET' ? {} : { origin }),
          ...(cookie && { cookie }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      keep(cookies, response.headers.getSetCookie());
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: parsed(text) };
    },
    post: (where, body = {}, headers) => browser.request('POST', where, body, headers),
    get: (where, headers) => browser.request('GET', where, undefined, headers),
  };
  return browser;
}

/** What a browser keeps of `Set-Cookie`: name and value, gone if it is said to be over. */
export function keep(cookies: Map<string, string>, headers: readonly string[]): void {
  for (const header of headers) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
    if (/;\s*max-age=0\b/i.test(header)) cookies.delete(name);
    else cookies.set(name, value);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export const goodPassword = 'correct horse battery';

/** Signs up and follows the link of the mail. */
export async function signUp(gateway: IdentityGateway, browser: Browser, email: string): Promise<void> {
  const { status, text } = await browser.post('/api/auth/sign-up/email', {
    email,
    password: goodPassword,
    name: 'Ada',
  });
  if (status !== 200) throw new Error(`signing up: ${status} ${text}`);
  const [mail = ''] = await gateway.mails(email);
  const { status: verified } = await browser.get(linkIn(mail));
  if (verified !== 302 && verified !== 200) throw new Error(`following the link: ${verified}`);
}

export function signIn(browser: Browser, email: string, password = goodPassword): Promise<Answer> {
  return browser.post('/api/auth/sign-in/email', { email, password });
}

export function linkIn(mail: string): string {
  const link = /^https?:\S+$/m.exec(mail)?.[0];
  if (link === undefined) throw new Error(`no link in: ${mail}`);
  return link;
}

export function newWallet(): PrivateKeyAccount {
  return privateKeyToAccount(generatePrivateKey());
}

/** A message as the gateway wants it, but for what is said otherwise. */
export async function siweFor(
  browser: Browser,
  account: PrivateKeyAccount,
  otherwise: Partial<SiweMessage> = {},
): Promise<{ address: string; message: string; signature: string }> {
  const { json: terms } = await browser.post('/api/siwe/nonce');
  const message = siweMessage({
    domain: terms.domain,
    address: account.address.toLowerCase() as Address,
    uri: terms.uri,
    chainId: terms.chain_id,
    nonce: terms.nonce,
    issuedAt: new Date().toISOString(),
    ...otherwise,
  });
  return { address: account.address, message, signature: await account.signMessage({ message }) };
}

/** Signs in with a wallet, and returns the answer. */
export async function signInByWallet(browser: Browser, account = newWallet()): Promise<Answer> {
  return browser.post('/api/siwe/verify', await siweFor(browser, account));
}

/** On loopback over HTTP. */
export const sessionCookie = 'tollbook.session_token';

/** The id of the signed-in user; undefined without a session. */
export async function userId(browser: Browser): Promise<string | undefined> {
  return (await browser.get('/api/auth/get-session')).json?.user?.id;
}
