/** What an operator's token may allow. */
export const operatorScopes = [
  'audit:read',
  'calls:read',
  'calls:write',
  'keys:read',
  'keys:write',
  'credit:read',
  'credit:write',
  'status:read',
] as const;
/** The scopes that can be limited to credit accounts. */
export const accountScopes: readonly OperatorScope[] = [
  'keys:read',
  'keys:write',
  'credit:read',
  'credit:write',
];
export type OperatorScope = (typeof operatorScopes)[number];
