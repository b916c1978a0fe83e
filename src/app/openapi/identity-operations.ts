import type { RefusalCode } from '../../base/errors/refusal.ts';
import * as identity from '../../accounts/http/schemas/identity.ts';
import { type Operation, operations } from './operation.ts';

const everyWrite = [
  'invalid_request',
  'wrong_origin',
  'body_too_large',
  'too_many_attempts',
  'request_timeout',
  'internal_error',
  'ledger_unavailable',
  'ledger_inconsistent',
] as const satisfies readonly RefusalCode[];
const ofPeople = { tag: 'People' } as const;

const ofSession = { security: 'session' } as const;

const ofAuth = {
  answers: [
    { status: 200, description: 'Done.', schema: identity.authAnswer },
    {
      status: 302,
      description: 'The page that continues the flow; after a failure its query has `error`.',
      headers: ['Location'],
    },
    ...[400, 401, 403, 404, 405, 422].map((status) => ({
      status,
      description: 'Refused.',
      schema: identity.authRefusal,
    })),
  ],
  refusals: ['too_many_attempts', 'sign_in_unavailable', 'internal_error', 'ledger_unavailable'],
} as const satisfies Partial<Operation>;

const [done, ...otherAnswers] = ofAuth.answers;

export const identityOperations = operations(ofPeople, {
  'GET /api/auth/{action}': {
    ...ofAuth,
    answers: [{ ...done, description: 'Done; `error` is a page.', bytes: 'text/html' }, ...otherAnswers],
    id: 'followAuth',
    summary: 'Read the session, or follow a link from a mail or an identity provider',
    description: `The routes of better-auth: \`get-session\`, \`verify-email\`, \`reset-password/{token}\`, \`callback/{provider}\`, \`list-accounts\`,
and \`error\`, the page of a sign-in that failed.`,
  },
  'POST /api/auth/{action}': {
    ...ofAuth,
    id: 'signIn',
    summary: 'Sign up, sign in and sign out',
    description: `JSON, as better-auth's clients send it: \`sign-up/email\`, \`sign-in/email\`, \`sign-in/social\`, \`sign-out\`,
\`revoke-sessions\` (everywhere), \`request-password-reset\`, \`reset-password\`, \`send-verification-email\`,
\`change-password\`, \`update-user\`, \`link-social\`, \`unlink-account\`.`,
    refusals: [...ofAuth.refusals, 'body_too_large', 'request_timeout'],
  },
  'POST /api/siwe/nonce': {
    id: 'createSiweNonce',
    summary: 'Get a nonce for signing in',
    description: 'A nonce can be used once and expires after a few minutes.',
    answers: [{ status: 200, description: 'The terms.', schema: identity.siweTerms }],
    refusals: everyWrite,
  },
  'POST /api/siwe/verify': {
    id: 'signInByWallet',
    summary: 'Sign in with a wallet',
    description: `Sign-In with Ethereum (EIP-4361). The first sign-in of a wallet creates its user. The signature of a contract account is
checked by calling the contract (ERC-1271), which requires that the gateway has an RPC of its chain.`,
    body: { schema: identity.siweVerify },
    answers: [
      { status: 200, description: 'Signed in: the cookie is the session.', schema: identity.signedIn },
    ],
    refusals: [...everyWrite, 'siwe_mismatch', 'user_disabled', 'sign_in_unavailable'],
  },
  'GET /api/wallets': {
    ...ofSession,
    id: 'listUserWallets',
    summary: "List the user's wallets",
    description: 'Those with which the user can sign in.',
    answers: [{ status: 200, description: 'The wallets.', schema: identity.linkedWallets }],
    refusals: ['invalid_request', 'session_required', 'internal_error', 'ledger_unavailable'],
  },
  'POST /api/wallets/nonce': {
    ...ofSession,
    id: 'createWalletNonce',
    summary: 'Get a nonce for adding a wallet',
    description: `This session alone can use it, once, within a few minutes and within ten minutes of its sign-in. The statement names the account.`,
    answers: [{ status: 200, description: 'The terms.', schema: identity.walletTerms }],
    refusals: [...everyWrite, 'session_required', 'session_not_fresh'],
  },
  'POST /api/wallets': {
    ...ofSession,
    id: 'linkUserWallet',
    summary: 'Add a wallet as a way to sign in',
    description: `For a message (EIP-4361) with the terms of this session. A wallet that signs in to another account is refused: accounts are never merged.`,
    body: { schema: identity.siweVerify },
    answers: [
      { status: 201, description: 'The wallet signs in to this account.', schema: identity.linkedWallet },
    ],
    refusals: [
      ...everyWrite,
      'session_required',
      'session_not_fresh',
      'siwe_mismatch',
      'wallet_taken',
      'sign_in_unavailable',
    ],
  },
  'DELETE /api/wallets/{address}': {
    ...ofSession,
    id: 'unlinkUserWallet',
    summary: 'Remove a wallet',
    description: `Not the only way to sign in. Sessions that the wallet began remain until they end. Signing in with it again opens a separate account.`,
    answers: [{ status: 200, description: 'The wallet is removed.', schema: identity.removedWallet }],
    refusals: [
      ...everyWrite,
      'session_required',
      'session_not_fresh',
      'wallet_not_found',
      'last_way_to_sign_in',
    ],
  },
  'GET /api/keys': {
    ...ofSession,
    id: 'listUserKeys',
    summary: "List the user's keys",
    description: 'Includes expired and revoked keys.',
    answers: [{ status: 200, description: 'The keys.', schema: identity.userKeys }],
    refusals: ['invalid_request', 'session_required', 'internal_error', 'ledger_unavailable'],
  },
  'GET /api/alert-webhook': {
    ...ofSession,
    id: 'getAlertWebhook',
    summary: "Read where messages about keys' budgets are posted",
    description: 'The secret is not shown.',
    answers: [{ status: 200, description: 'The webhook.', schema: identity.alertWebhook }],
    refusals: ['invalid_request', 'session_required', 'internal_error', 'ledger_unavailable'],
  },
  'POST /api/alert-webhook': {
    ...ofSession,
    id: 'setAlertWebhook',
    summary: "Set where messages about keys' budgets are posted",
    description: `At 50, 80 and 100 percent of a key's budget, once each in a period, \`key_budget.used\` is posted there, signed as Standard
Webhooks does, until it is answered with 2xx, for up to three days. Replaces the earlier URL and secret. A host outside the public internet is never called.`,
    body: { schema: identity.alertWebhookRequest },
    answers: [{ status: 200, description: 'The webhook.', schema: identity.newAlertWebhook }],
    refusals: [...everyWrite, 'session_required'],
  },
  'DELETE /api/alert-webhook': {
    ...ofSession,
    id: 'removeAlertWebhook',
    summary: "Stop posting messages about keys' budgets",
    description: 'Mails continue.',
    answers: [{ status: 200, description: 'There is no webhook.', schema: identity.alertWebhook }],
    refusals: [...everyWrite, 'session_required'],
  },
  'POST /api/keys': {
    ...ofSession,
    id: 'createUserKey',
    summary: 'Create a key',
    description: "The key spends from the user's credit account.",
    body: { schema: identity.keyRequest },
    answers: [{ status: 201, description: 'The key. It is not shown again.', schema: identity.madeKey }],
    refusals: [...everyWrite, 'session_required', 'too_many_keys'],
  },
  'DELETE /api/keys/{key_id}': {
    ...ofSession,
    id: 'revokeUserKey',
    summary: 'Revoke a key',
    description: 'Permanent, and effective immediately in every process. May be repeated.',
    answers: [{ status: 200, description: 'The key is revoked.', schema: identity.revokedKey }],
    refusals: [...everyWrite, 'session_required', 'key_not_found'],
  },
  'DELETE /api/keys': {
    ...ofSession,
    id: 'revokeUserKeys',
    summary: "Revoke all of the user's keys",
    description: 'For instance after a password was changed, which ends other sessions and no keys.',
    answers: [{ status: 200, description: 'The keys are revoked.', schema: identity.revokedKeys }],
    refusals: [...everyWrite, 'session_required'],
  },
});
