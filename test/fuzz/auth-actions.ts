import type { FuzzDocument } from './requests.ts';
import type { JsonSchema } from './values.ts';

const text = (...examples: string[]): JsonSchema => ({ type: 'string', examples });
const email = text('ada@example.org', 'Grace@Example.org', 'a@b', 'x'.repeat(300));
const password = text('correct horse battery', 'short', 'x'.repeat(200));
const link = text('/', '/account', 'https://other.example/', '//other.example', 'javascript:alert(1)');
const token = text('x'.repeat(24), 'eyJhbGciOiJIUzI1NiJ9.e30.x', '../x');
const provider = text('github', 'google', 'credential', 'none');
const body = (properties: Readonly<Record<string, JsonSchema>>, ...required: string[]) => ({
  requestBody: {
    content: { 'application/json': { schema: { type: 'object', properties, required } } },
  },
});
const query = (...names: string[]) => ({
  parameters: names.map((name) => ({
    name,
    in: 'query',
    schema: { token, callbackURL: link, error: text('x', '<script>') }[name] ?? text('x', 'true'),
  })),
});
const ofPath = (name: string, schema: JsonSchema) => ({ name, in: 'path', schema });
const security = [{ session: [] }];

/** The routes of better-auth: its own document has bodies for them, the gateway's has one path for all. */
const actions = {
  'get-session': {
    get: { ...query('disableCookieCache', 'disableRefresh'), security },
    post: { ...body({}), security },
  },
  ok: { get: {} },
  'verify-email': { get: query('token', 'callbackURL') },
  'reset-password/{token}': {
    get: { parameters: [ofPath('token', token), ...query('callbackURL').parameters] },
  },
  'callback/{provider}': {
    get: { parameters: [ofPath('provider', provider), ...query('code', 'state', 'error').parameters] },
    post: body({ code: text('x'), state: text('x') }),
  },
  error: { get: query('error', 'error_description') },
  'sign-up/email': {
    post: body({ email, password, name: text('Ada'), callbackURL: link, image: link }, 'email', 'password'),
  },
  'sign-in/email': {
    post: body({ email, password, callbackURL: link, rememberMe: { type: 'boolean' } }, 'email', 'password'),
  },
  'sign-in/social': { post: body({ provider, callbackURL: link, errorCallbackURL: link }, 'provider') },
  'sign-out': { post: { ...body({}) } },
  'revoke-sessions': { post: body({}) },
  'request-password-reset': { post: body({ email, redirectTo: link }, 'email') },
  'reset-password': { post: body({ newPassword: password, token }, 'newPassword') },
  'send-verification-email': { post: body({ email, callbackURL: link }, 'email') },
  'change-password': {
    post: {
      ...body({ newPassword: password, currentPassword: password }, 'newPassword', 'currentPassword'),
      security,
    },
  },
  'update-user': { post: { ...body({ name: text('Ada', ''), image: link }), security } },
  'link-social': { post: { ...body({ provider, callbackURL: link }, 'provider'), security } },
  'unlink-account': { post: { ...body({ providerId: provider, accountId: text('x') }), security } },
  'list-accounts': { get: { security } },
  // not offered
  'list-sessions': { get: { security } },
  'delete-user': { post: { ...body({ password, token }), security } },
} as const;

/** The document with a path for each route of better-auth beside the one that stands for all. */
export function withAuthActions(document: FuzzDocument): FuzzDocument {
  const paths = Object.entries(actions).map(([action, methods]) => [`/api/auth/${action}`, methods] as const);
  return { ...document, paths: { ...document.paths, ...Object.fromEntries(paths) } };
}

/** The path as the gateway's document has it. */
export function documentedPath(path: string): string {
  return path.replace(/^\/api\/auth\/[^?]+/, '/api/auth/x');
}
