/** What the bare services answer: as many bytes as a quote without x402. */
export const constantQuote = {
  digest: new Uint8Array(32).fill(1),
  signature: new Uint8Array(65).fill(2),
  operator: new Uint8Array(20).fill(3),
  seconds: 1_800_000_000,
} as const;
