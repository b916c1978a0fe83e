/** What explains a break; `open`: nothing does any more. */
export const explanationClasses = [
  'known_transfer',
  'facilitator_error',
  'node_error',
  'operator_error',
  'ledger_error',
  'theft',
  'other',
  'open',
] as const;
