import { createHash, randomBytes } from 'node:crypto';
import { base32, totpStep, totpUri } from '../rules/totp.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';
import {
  addFactor,
  endOperatorSessions,
  listFactors,
  putRecoveryCodes,
  startOperatorSession,
  takeRecoveryCode,
  takeStep,
} from '../store/operators.ts';
import type { Identity } from './context.ts';
import { countGuess, type Guess, type Guesser } from './factor-guesses.ts';
import { recordInConsole } from './operators.ts';
import { checkNewPasskey, checkPasskey, type NewPasskey, type PasskeyAnswer, sealedKey } from './passkeys.ts';
import { seal, unseal } from './sealed-values.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

/** The person who proves a second factor: the user of a session, by their name as an operator. */
export interface Prover extends Guesser {
  readonly name: string;
}

type FactorKind = 'totp' | 'passkey' | 'recovery_code';

const secretBytes = 20;
const recoveryCodes = 10;

/** A secret that its person has not confirmed yet. It is only in the form: the database holds no unused ones. */
export interface OfferedSecret {
  /** As people type it. */
  readonly text: string;
  /** For an authenticator app. */
  readonly uri: string;
  /** What the form carries: the secret, sealed for this user. */
  readonly sealed: string;
}

/** A new secret for one-time codes; or the one of a form that was refused. */
export function offerSecret(
  { settings }: Pick<Identity, 'settings'>,
  { userId, name }: Prover,
  issuer: string,
  offered?: string,
): OfferedSecret {
  const known = offered === undefined ? undefined : offeredBytes({ settings }, userId, offered);
  const secret = known ?? randomBytes(secretBytes);
  const sealed = seal(settings.secrets, offerOf(userId), secret).toString('base64url');
  return { text: base32(secret), uri: totpUri(secret, issuer, name), sealed };
}

export type FactorProof =
  /** The token is for a second cookie of this session. */
  | { readonly kind: 'proven'; readonly token: string }
  | { readonly kind: 'wrong' }
  | Extract<Guess, { readonly kind: 'limited' }>;

export type FirstFactorProof =
  | { readonly kind: 'proven'; readonly token: string; readonly recoveryCodes: readonly string[] }
  | Exclude<FactorProof, { readonly kind: 'proven' }>
  /** The user has a second factor already. */
  | { readonly kind: 'not_first' };

/** What a form says of a new second factor: the first code of an authenticator app, or a new passkey. */
export type NewFactor =
  | { readonly kind: 'totp'; readonly sealed: string; readonly code: string }
  | ({ readonly kind: 'passkey' } & PasskeyAnswer);

/** Adds the first second factor of a user, proven by its first use, and starts a session of the console. */
export async function addFirstFactor(
  identity: Identity,
  prover: Prover,
  added: NewFactor,
  hours: number,
): Promise<FirstFactorProof> {
  const { userId } = prover;
  const guess = await countGuess(identity, prover, 'other');
  if (guess.kind === 'limited') return guess;
  if ((await listFactors(identity.pool, userId)).length > 0) return { kind: 'not_first' };
  const keep = await checkNew(identity, prover, added);
  if (!keep) return { kind: 'wrong' };
  const codes = Array.from({ length: recoveryCodes }, () => base32(randomBytes(10)));
  await putRecoveryCodes(
    identity.pool,
    userId,
    codes.map((one) => recoveryHash(userId, one)),
  );
  await keep();
  await guess.right();
  const token = await begin(identity, prover, added.kind, hours);
  return token === undefined ? { kind: 'wrong' } : { kind: 'proven', token, recoveryCodes: codes };
}

/** Adds another second factor for a user who passed one in this session. */
export async function addFactorBeside(
  identity: Identity,
  prover: Prover,
  added: NewFactor,
): Promise<{ readonly kind: 'added' } | Exclude<FactorProof, { readonly kind: 'proven' }>> {
  const guess = await countGuess(identity, prover, 'other');
  if (guess.kind === 'limited') return guess;
  const keep = await checkNew(identity, prover, added);
  if (!keep || !(await keep(prover.sessionId))) return { kind: 'wrong' };
  await guess.right();
  return { kind: 'added' };
}

/** What keeps a new factor that was proven, within a session while it may use the console; undefined if it was not proven. */
async function checkNew(
  identity: Identity,
  prover: Prover,
  added: NewFactor,
): Promise<((within?: string) => Promise<boolean>) | undefined> {
  if (added.kind === 'passkey') {
    const passkey = await checkNewPasskey(identity, prover, added);
    return passkey && ((within) => keepPasskey(identity, prover, passkey, within));
  }
  const secret = offeredBytes(identity, prover.userId, added.sealed);
  const step = secret && totpStep(secret, added.code, nowMsOf(identity));
  return secret === undefined || step === undefined
    ? undefined
    : (within) => keepTotp(identity, prover, secret, step, within);
}

async function keepPasskey(
  ledger: Identity,
  { name, userId }: Prover,
  { credentialId, publicKey }: NewPasskey,
  within: string | undefined,
): Promise<boolean> {
  await recordInConsole(ledger, {
    type: 'operator_factor_added',
    data: { name, user_id: userId, factor: 'passkey' },
  });
  const key = sealedKey(ledger.settings.secrets, userId, publicKey);
  return addFactor(ledger.pool, { userId, kind: 'passkey', credentialId, key, lastStep: 0 }, within);
}

/** Adds the secret of one-time codes. The ledger has it before it counts. */
export async function keepTotp(
  ledger: LedgerWriter & { readonly settings: { readonly secrets: RotatingSecret } },
  { name, userId }: Pick<Prover, 'name' | 'userId'>,
  secret: Buffer,
  lastStep: number,
  within?: string,
): Promise<boolean> {
  await recordInConsole(ledger, {
    type: 'operator_factor_added',
    data: { name, user_id: userId, factor: 'totp' },
  });
  const key = seal(ledger.settings.secrets, secretOf(userId), secret);
  return addFactor(ledger.pool, { userId, kind: 'totp', credentialId: undefined, key, lastStep }, within);
}

/** Starts a session of the console for a user with a code of the second factor, a recovery code or a passkey. */
export async function proveFactor(
  identity: Identity,
  prover: Prover,
  proof: { readonly code: string } | PasskeyAnswer,
  hours: number,
): Promise<FactorProof> {
  const checked =
    'code' in proof ? await checkCode(identity, prover, proof.code) : await checkOwn(identity, prover, proof);
  if (checked === 'wrong_code' || checked === 'wrong_passkey') {
    const { name, userId: user_id } = prover;
    const data = { name, user_id, reason: checked };
    if (identity.refusalEvents.take())
      await recordInConsole(identity, { type: 'operator_sign_in_refused', data });
    else identity.requestTally.addRefusal('operator_sign_in_refused');
    return { kind: 'wrong' };
  }
  if (typeof checked !== 'string') return checked;
  const token = await begin(identity, prover, checked, hours);
  return token === undefined ? { kind: 'wrong' } : { kind: 'proven', token };
}

/** A signature is not found by trying: whatever else is limited, a passkey is taken. */
async function checkOwn(
  identity: Identity,
  prover: Prover,
  answer: PasskeyAnswer,
): Promise<'passkey' | 'wrong_passkey'> {
  return (await checkPasskey(identity, prover, answer)) ? 'passkey' : 'wrong_passkey';
}

async function checkCode(
  identity: Identity,
  prover: Prover,
  typed: string,
): Promise<'totp' | 'recovery_code' | 'wrong_code' | Extract<Guess, { readonly kind: 'limited' }>> {
  const code = typed.replaceAll(/[\s-]/g, '');
  const isRecovery = /^[A-Za-z2-7]{16}$/.test(code);
  const guess = await countGuess(identity, prover, isRecovery ? 'other' : 'code');
  if (guess.kind === 'limited') return guess;
  const { userId } = prover;
  const isRight = isRecovery
    ? await takeRecoveryCode(identity.pool, userId, recoveryHash(userId, code.toUpperCase()))
    : await takeTotp(identity, userId, code);
  if (isRight) await guess.right();
  else guess.wrong();
  return isRight ? (isRecovery ? 'recovery_code' : 'totp') : 'wrong_code';
}

/** Uses a code of one of the user's authenticator apps up. */
async function takeTotp(identity: Identity, userId: string, code: string): Promise<boolean> {
  const { pool, settings } = identity;
  for (const { kind, key, factorId } of await listFactors(pool, userId)) {
    const secret = kind === 'totp' ? unseal(settings.secrets, secretOf(userId), key) : undefined;
    const step = secret && totpStep(secret, code, nowMsOf(identity));
    if (secret === undefined || step === undefined) continue;
    // sealed anew with the secret in use: the one before may be gone tomorrow
    const resealed = seal(settings.secrets, secretOf(userId), secret);
    if (await takeStep(pool, factorId, step, resealed)) return true;
  }
  return false;
}

/** The event is recorded before the session may do anything. Undefined if the factors were removed meanwhile. */
async function begin(
  ledger: LedgerWriter,
  { name, userId, sessionId }: Prover,
  factor: FactorKind,
  hours: number,
): Promise<string | undefined> {
  const token = randomBytes(32).toString('base64url');
  await recordInConsole(ledger, {
    type: 'operator_signed_in',
    data: { name, user_id: userId, factor, session_id: sessionId },
  });
  await startOperatorSession(ledger.pool, { tokenHash: operatorTokenHash(token), sessionId, hours });
  if ((await listFactors(ledger.pool, userId)).length > 0) return token;
  await endOperatorSessions(ledger.pool, userId);
  return undefined;
}

/** The database stores only this hash of the token. */
export function operatorTokenHash(token: string): string {
  return createHash('sha256').update(`operator:${token}`).digest('base64url');
}

/** Of 80 random bits: nothing is found by trying. */
function recoveryHash(userId: string, code: string): string {
  return createHash('sha256').update(`recovery:${userId}:${code}`).digest('base64url');
}

function offeredBytes(
  { settings }: Pick<Identity, 'settings'>,
  userId: string,
  sealed: string,
): Buffer | undefined {
  return unseal(settings.secrets, offerOf(userId), Buffer.from(sealed, 'base64url'));
}

function offerOf(userId: string): string {
  return `totp-offer:${userId}`;
}

function secretOf(userId: string): string {
  return `totp:${userId}`;
}

function nowMsOf({ lane }: Identity): number {
  return Date.now() + lane.state.clockOffsetMs;
}
