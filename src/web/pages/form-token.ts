import { createHmac, randomBytes } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import type { RotatingSecret } from '../../base/values/rotating-secret.ts';

/** A form may stay open for this long. */
const maxAgeMs = 86_400_000;
const maxSkewMs = 60_000;

/** What a form's token says: it was made for this visitor, at this time. */
export interface FormToken {
  /** Random, different for each time that a form is shown. */
  readonly id: string;
  readonly madeAtMs: number;
}

/** The token of a form, which only the visitor can send that it was shown to: `session:{id}`, or `visitor:{cookie}`. */
export function makeFormToken([secret]: RotatingSecret, visitor: string, nowMs: number): string {
  const content = `${nowMs.toString(36)}.${randomBytes(16).toString('base64url')}`;
  return `${content}.${proofOf(secret, visitor, content)}`;
}

/** The token that a form came with; undefined if it was not made for this visitor, or too long ago. */
export function readFormToken(
  secrets: RotatingSecret,
  visitor: string,
  token: string,
  nowMs: number,
): FormToken | undefined {
  const [, time = '', id = '', proof = ''] = /^([0-9a-z]{1,11})\.([\w-]{22})\.([\w-]{43})$/.exec(token) ?? [];
  const isOurs = secrets.some((secret) => areEqualSecrets(proof, proofOf(secret, visitor, `${time}.${id}`)));
  const madeAtMs = Number.parseInt(time, 36);
  if (!isOurs || madeAtMs > nowMs + maxSkewMs || madeAtMs < nowMs - maxAgeMs) return undefined;
  return { id, madeAtMs };
}

function proofOf(secret: string, visitor: string, content: string): string {
  return createHmac('sha256', secret).update(`form:${visitor}:${content}`).digest('base64url');
}
