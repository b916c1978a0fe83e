import { type KeyObject, randomBytes, sign } from 'node:crypto';
import { createBoundedCache } from '../../../base/values/bounded-cache.ts';
import { ed25519KeysOf } from '../../../base/values/ed25519.ts';
import type { FacilitatorCall } from './facilitator-auth.ts';

const validSecs = 120;
const seedBytes = 32;

/**
 * Makes the `authorization` header of one request: a bearer token as it is, or a JWT that the key `ID:KEY` signs for this request alone,
 * as the API of Coinbase's Developer Platform wants it ("JWT Authentication", November 2026). A bearer token has no colon (RFC 6750).
 * The function takes secrets of the configuration, which has checked their form; it derives a key once.
 */
export function createRequestAuthorization(): (secret: string, call: FacilitatorCall) => string {
  // the key in use, and the next one
  const keys = createBoundedCache<string, KeyObject>(2);
  const privateKeyOf = (key: string): KeyObject => {
    const { privateKey } = ed25519KeysOf(Buffer.from(key, 'base64').subarray(0, seedBytes));
    keys.set(key, privateKey);
    return privateKey;
  };
  return (secret, call) => {
    const [id = '', key] = secret.split(':');
    return `Bearer ${key === undefined ? secret : signedToken(id, keys.get(key) ?? privateKeyOf(key), call)}`;
  };
}

function signedToken(id: string, privateKey: KeyObject, { method, host, path }: FacilitatorCall): string {
  const nowSecs = Math.floor(Date.now() / 1_000);
  const head = { alg: 'EdDSA', typ: 'JWT', kid: id, nonce: randomBytes(16).toString('hex') };
  const claims = {
    iss: 'cdp',
    sub: id,
    aud: ['cdp_service'],
    iat: nowSecs,
    nbf: nowSecs,
    exp: nowSecs + validSecs,
    uris: [`${method} ${host}${path}`],
  };
  const signed = `${encoded(head)}.${encoded(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
