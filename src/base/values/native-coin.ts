const coins: Readonly<Record<string, readonly number[]>> = {
  ETH: [
    1, 10, 130, 324, 8453, 34_443, 42_161, 59_144, 81_457, 84_532, 421_614, 534_352, 11_155_111, 11_155_420,
  ],
  POL: [137, 80_002],
  AVAX: [43_113, 43_114],
  BNB: [56, 97],
  XDAI: [100],
  CELO: [42_220],
  S: [146],
  SEI: [1_329],
};

/** The symbol of the coin in which a chain is paid for gas, of 18 decimals; `COIN` if it is not known here. */
export function nativeSymbol(chainId: number): string {
  return Object.entries(coins).find(([, chainIds]) => chainIds.includes(chainId))?.[0] ?? 'COIN';
}

export const nativeDecimals = 18;
