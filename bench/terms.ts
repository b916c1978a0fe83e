/** The job on sale, the same on every server. */
export const terms = {
  network: 'eip155:84532',
  chainId: 84_532,
  asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
  symbol: 'USDC',
  decimals: 6,
  eip712: { name: 'USDC', version: '2' },
  payTo: '0x90f79bf6eb2c4f870365e785982e1f101e93b906',
  /** In the token's atoms: 0.001 native units at 3200. */
  amount: '3200000',
  priceWei: '1000000000000000',
  rate: '3200.00',
  path: '/x402/jobs/1/0',
  maxTimeoutSecs: 3_600,
} as const;
