import type { RefusalCode } from '../../domain/errors/refusal.ts';
import * as identity from '../schemas/identity.ts';
import type { Operation } from './operation.ts';

const everyWrite = [
  'invalid_request',
  'wrong_origin',
  'body_too_large',
  'request_timeout',
  'internal_error',
  'ledger_unavailable',
] as const satisfies readonly RefusalCode[];
const ofPeople = { tag: 'People' } as const;

export const siweNonceOperation: Operation = {
  ...ofPeople,
  method: 'post',
  path: '/api/siwe/nonce',
  id: 'createSiweNonce',
  summary: 'What to sign for',
  description: 'A nonce serves once, and not for long.',
  answers: [{ status: 200, description: 'The terms.', schema: identity.siweTerms }],
  refusals: [...everyWrite, 'too_many_attempts'],
};

export const siweVerifyOperation: Operation = {
  ...ofPeople,
  method: 'post',
  path: '/api/siwe/verify',
  id: 'signInByWallet',
  summary: 'Sign in with a wallet',
  description: `Sign-In with Ethereum (EIP-4361). The first time makes a user. An ordinary account's signature is checked here, a
contract's by asking it (ERC-1271), where the gateway has a chain to ask.`,
  body: { schema: identity.siweVerify },
  answers: [{ status: 200, description: 'Signed in: the cookie is the session.', schema: identity.signedIn }],
  refusals: [...everyWrite, 'siwe_mismatch', 'too_many_attempts', 'sign_in_unavailable'],
};

const ofSession = { ...ofPeople, security: 'session' } as const;

export const listKeysOperation: Operation = {
  ...ofSession,
  method: 'get',
  path: '/api/keys',
  id: 'listUserKeys',
  summary: 'The keys of the user',
  description: 'Those that hold no more, too.',
  answers: [{ status: 200, description: 'The keys.', schema: identity.userKeys }],
  refusals: ['invalid_request', 'session_required', 'internal_error', 'ledger_unavailable'],
};

export const createKeyOperation: Operation = {
  ...ofSession,
  method: 'post',
  path: '/api/keys',
  id: 'createUserKey',
  summary: 'Make a key',
  description: "It spends from the user's account of credit.",
  body: { schema: identity.keyRequest },
  answers: [{ status: 201, description: 'The key, this once.', schema: identity.madeKey }],
  refusals: [...everyWrite, 'session_required', 'too_many_keys', 'too_many_attempts'],
};

export const revokeKeyOperation: Operation = {
  ...ofSession,
  method: 'delete',
  path: '/api/keys/{key_id}',
  id: 'revokeUserKey',
  summary: 'Revoke a key',
  description: 'For good, in every process at once. It may be asked for again.',
  answers: [{ status: 200, description: 'Revoked.', schema: identity.revokedKey }],
  refusals: [...everyWrite, 'session_required', 'key_not_found'],
};

const ofAuth = {
  ...ofPeople,
  path: '/api/auth/{action}',
  answers: [
    { status: 200, description: 'Done.', schema: identity.authAnswer },
    { status: 302, description: 'Where to go on; `error` in its query says what was wrong.' },
    ...[400, 401, 403, 404, 422].map((status) => ({
      status,
      description: 'Refused.',
      schema: identity.authRefusal,
    })),
  ],
  refusals: ['too_many_attempts', 'sign_in_unavailable', 'internal_error', 'ledger_unavailable'],
} as const satisfies Partial<Operation>;

export const authGetOperation: Operation = {
  ...ofAuth,
  method: 'get',
  id: 'followAuth',
  summary: 'The session, and the links that lead here',
  description: `As better-auth has them: \`get-session\`, \`verify-email\`, \`reset-password/{token}\`, \`callback/{provider}\`.`,
};

export const authPostOperation: Operation = {
  ...ofAuth,
  method: 'post',
  id: 'signIn',
  summary: 'Sign up, in and out',
  description: `JSON, as better-auth's clients send it: \`sign-up/email\`, \`sign-in/email\`, \`sign-in/social\`, \`sign-out\`,
\`revoke-sessions\` (everywhere), \`request-password-reset\`, \`reset-password\`, \`send-verification-email\`,
\`change-password\`, \`update-user\`, \`link-social\`, \`unlink-account\`, \`list-accounts\`.`,
  refusals: [...ofAuth.refusals, 'body_too_large', 'request_timeout'],
};
