import { isIP } from 'node:net';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { type Factor, listFactors, takeStep } from '../store/operators.ts';
import type { Identity } from './context.ts';
import { seal, unseal } from './sealed-values.ts';
import type { SessionUser } from './sessions.ts';

interface PasskeyParts extends Pick<Identity, 'pool' | 'publicUrl'> {
  readonly settings: Pick<Identity['settings'], 'secrets'>;
  readonly lane: { readonly state: { readonly clockOffsetMs: number } };
}

/** The user of a session, by the name that they have as an operator. */
type Asked = Pick<SessionUser, 'userId' | 'sessionId'> & { readonly name: string };

/** A browser's question to an authenticator (WebAuthn), and the form's value until the answer. */
export interface PasskeyQuestion {
  /** JSON: `PublicKeyCredentialCreationOptionsJSON`, or that of a request. */
  readonly options: string;
  /** The challenge and its time, sealed for this session: nothing is stored for a question. */
  readonly sealed: string;
}

/** The fields of a form with the answer of an authenticator. */
export interface PasskeyAnswer {
  readonly sealed: string;
  /** Of the passkey. */
  readonly credentialId: string;
  /** JSON, as the browser writes it. */
  readonly response: string;
}

/** A passkey whose possession was proven. */
export interface NewPasskey {
  readonly credentialId: string;
  readonly publicKey: Buffer;
}

const answeredWithinMs = 300_000;
/** Loaded once an operator is asked for a passkey. */
const webAuthn = () => import('@simplewebauthn/server');

/** Whether browsers make passkeys for the address of this gateway: for a name, not for an IP address. */
export function takesPasskeys(publicUrl: string): boolean {
  return isIP(hostOf(publicUrl)) === 0;
}

/** Asks for a new passkey; one that the user has already makes no second one. */
export async function offerPasskey(
  identity: PasskeyParts,
  asked: Asked,
  issuer: string,
): Promise<PasskeyQuestion> {
  const known = await passkeysOf(identity, asked.userId);
  const { generateRegistrationOptions } = await webAuthn();
  const options = await generateRegistrationOptions({
    rpName: issuer,
    rpID: hostOf(identity.publicUrl()),
    userName: asked.name,
    userID: new Uint8Array(Buffer.from(asked.userId)),
    timeout: answeredWithinMs,
    // which make an authenticator is, is not asked
    attestationType: 'none',
    excludeCredentials: known.map(({ id }) => ({ id })),
    authenticatorSelection: { residentKey: 'discouraged', userVerification: 'preferred' },
  });
  return questionOf(identity, newPurpose(asked), options);
}

/** The passkey that an answer to `offerPasskey` made; undefined if it is not one, was made before, or came too late. */
export async function checkNewPasskey(
  identity: PasskeyParts,
  asked: Asked,
  answer: PasskeyAnswer,
): Promise<NewPasskey | undefined> {
  const question = openQuestion(identity, newPurpose(asked), answer.sealed);
  if (!question) return undefined;
  const { verifyRegistrationResponse } = await webAuthn();
  const verified = await orUndefined(() =>
    verifyRegistrationResponse({
      ...expectedOf(identity, question),
      response: jsonValue(answer.response) as RegistrationResponseJSON,
    }),
  );
  if (!verified?.verified) return undefined;
  const { id, publicKey } = verified.registrationInfo.credential;
  const known = await passkeysOf(identity, asked.userId);
  if (known.some((passkey) => passkey.id === id)) return undefined;
  return { credentialId: id, publicKey: Buffer.from(publicKey) };
}

/** Asks for one of the user's passkeys; undefined if there is none. */
export async function askPasskey(identity: PasskeyParts, asked: Asked): Promise<PasskeyQuestion | undefined> {
  const known = await passkeysOf(identity, asked.userId);
  if (known.length === 0) return undefined;
  const { generateAuthenticationOptions } = await webAuthn();
  const options = await generateAuthenticationOptions({
    rpID: hostOf(identity.publicUrl()),
    timeout: answeredWithinMs,
    allowCredentials: known.map(({ id }) => ({ id })),
    userVerification: 'preferred',
  });
  return questionOf(identity, provePurpose(asked), options);
}

/**
 * Whether one of the user's passkeys signed the answer. The time of a question is used up with its answer: the same answer, and any to
 * an earlier question, is not taken again. Counters of authenticators are not compared, since synchronised ones have no counter.
 */
export async function checkPasskey(
  identity: PasskeyParts,
  asked: Asked,
  answer: PasskeyAnswer,
): Promise<boolean> {
  const { settings, pool } = identity;
  const question = openQuestion(identity, provePurpose(asked), answer.sealed);
  const known = await passkeysOf(identity, asked.userId);
  const passkey = known.find(({ id }) => id === answer.credentialId);
  const publicKey = passkey && unseal(settings.secrets, keyPurpose(asked.userId), passkey.factor.key);
  if (!question || !passkey || !publicKey) return false;
  const { verifyAuthenticationResponse } = await webAuthn();
  const verified = await orUndefined(() =>
    verifyAuthenticationResponse({
      ...expectedOf(identity, question),
      response: jsonValue(answer.response) as AuthenticationResponseJSON,
      credential: { id: passkey.id, publicKey: new Uint8Array(publicKey), counter: 0 },
    }),
  );
  if (!verified?.verified) return false;
  // sealed anew with the secret in use: the one before may be gone tomorrow
  const resealed = sealedKey(settings.secrets, asked.userId, publicKey);
  return takeStep(pool, passkey.factor.factorId, question.atMs, resealed);
}

/** As the database keeps a public key: sealed for its user, so that a row that somebody else wrote opens nothing. */
export function sealedKey(
  secrets: Identity['settings']['secrets'],
  userId: string,
  publicKey: Buffer,
): Buffer {
  return seal(secrets, keyPurpose(userId), publicKey);
}

async function passkeysOf(
  { pool }: Pick<Identity, 'pool'>,
  userId: string,
): Promise<{ readonly id: string; readonly factor: Factor }[]> {
  const factors = await listFactors(pool, userId);
  return factors.flatMap((factor) =>
    factor.credentialId === undefined ? [] : [{ id: factor.credentialId, factor }],
  );
}

interface Question {
  readonly challenge: string;
  readonly atMs: number;
}

function questionOf(
  identity: PasskeyParts,
  purpose: string,
  options: { readonly challenge: string },
): PasskeyQuestion {
  const question: Question = { challenge: options.challenge, atMs: nowMsOf(identity) };
  const sealed = seal(identity.settings.secrets, purpose, Buffer.from(JSON.stringify(question))).toString(
    'base64url',
  );
  return { options: JSON.stringify(options), sealed };
}

function openQuestion(identity: PasskeyParts, purpose: string, sealed: string): Question | undefined {
  const bytes = unseal(identity.settings.secrets, purpose, Buffer.from(sealed, 'base64url'));
  const question = bytes && (JSON.parse(bytes.toString()) as Question);
  return question && nowMsOf(identity) - question.atMs < answeredWithinMs ? question : undefined;
}

/** By the clock of the database, which all gateways share. */
function nowMsOf({ lane }: PasskeyParts): number {
  return Math.round(Date.now() + lane.state.clockOffsetMs);
}

function expectedOf({ publicUrl }: Pick<Identity, 'publicUrl'>, { challenge }: Question) {
  return {
    expectedChallenge: challenge,
    expectedOrigin: new URL(publicUrl()).origin,
    expectedRPID: hostOf(publicUrl()),
    // after a password, possession of the authenticator is the second factor
    requireUserVerification: false,
  };
}

/** The library throws for every unexpected answer, and for one that is not JSON. */
async function orUndefined<T>(verify: () => Promise<T>): Promise<T | undefined> {
  try {
    return await verify();
  } catch {
    return undefined;
  }
}

function hostOf(publicUrl: string): string {
  return new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, '$1');
}

function newPurpose({ userId, sessionId }: Asked): string {
  return `passkey-offer:${userId}:${sessionId}`;
}

function provePurpose({ userId, sessionId }: Asked): string {
  return `passkey-question:${userId}:${sessionId}`;
}

function keyPurpose(userId: string): string {
  return `passkey:${userId}`;
}
