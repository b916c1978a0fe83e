/** What an operator's token may allow. */
export const operatorScopes = [
  'audit:read',
  'calls:read',
  'calls:write',
  'keys:read',
  'keys:write',
  'credit:read',
  'credit:write',
] as const;
export type OperatorScope = (typeof operatorScopes)[number];
