import { createHash } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { createSiweMessage } from 'viem/siwe';
import { cookieIn } from '../../../../devnet/demo-user.ts';
import type { SiweTermsJson } from '../../../../accounts/http/schemas/identity.ts';
import type { Hex } from '../../../../base/values/primitives.ts';

/** Numbers from 0 to 1 that are the same in every run: the same activity each time. */
export function numbersFrom(seed: string): () => number {
  let count = 0;
  return () => {
    count++;
    const bytes = createHash('sha256').update(`${seed}:${count}`).digest();
    return bytes.readUInt32BE() / 2 ** 32;
  };
}

/** A signed-in person, by the routes that clients have. */
export interface Person {
  post(path: string, body: object): Promise<unknown>;
  delete(path: string): Promise<unknown>;
}

/** Signs in with a wallet; its first sign-in makes the user. */
export async function signInByWallet(gatewayUrl: string, privateKey: Hex): Promise<Person> {
  const message = await signedMessage(await call(gatewayUrl, 'POST', '/api/siwe/nonce', {}), privateKey);
  return personOf(gatewayUrl, await fetchJson(gatewayUrl, 'POST', '/api/siwe/verify', message));
}

export async function signInByPassword(
  gatewayUrl: string,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<Person> {
  return personOf(
    gatewayUrl,
    await fetchJson(gatewayUrl, 'POST', '/api/auth/sign-in/email', { email, password }),
  );
}

/** Adds a wallet to a person's account. */
export async function addWallet(person: Person, privateKey: Hex): Promise<void> {
  await person.post(
    '/api/wallets',
    await signedMessage(await person.post('/api/wallets/nonce', {}), privateKey),
  );
}

async function signedMessage(terms: unknown, privateKey: Hex): Promise<object> {
  const {
    nonce,
    domain,
    uri,
    chain_id: chainId,
    statement,
  } = terms as SiweTermsJson & {
    readonly statement?: string;
  };
  const account = privateKeyToAccount(privateKey);
  const { address } = account;
  const message = createSiweMessage({
    address,
    chainId,
    domain,
    nonce,
    uri,
    version: '1',
    ...(statement !== undefined && { statement }),
  });
  return { address, message, signature: await account.signMessage({ message }) };
}

function personOf(gatewayUrl: string, response: Response): Person {
  const cookie = cookieIn(response);
  return {
    post: (path, body) => call(gatewayUrl, 'POST', path, body, { cookie }),
    delete: (path) => call(gatewayUrl, 'DELETE', path, undefined, { cookie }),
  };
}

/** The JSON of an answer. @throws for a refusal */
export async function call(
  gatewayUrl: string,
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  return (await fetchJson(gatewayUrl, method, path, body, headers)).json();
}

async function fetchJson(
  gatewayUrl: string,
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(gatewayUrl + path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!response.ok)
    throw new Error(`${method} ${path} was refused: ${response.status} ${await response.text()}`);
  return response;
}
